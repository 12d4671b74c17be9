//! How many rows run together: as typed, or as many as fit into half of the memory that is free.

use std::str::FromStr;

use epikv_model::Model;

/// `--batch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batch {
    /// By free memory.
    Auto,
    /// So many.
    Rows(usize),
}

/// Rows of an automatic batch at most: more of them share no further reading of the weights worth the latency.
const MOST: usize = 32;

/// Rows that can be asked for: more of them wait for one another and for memory.
const MOST_TYPED: usize = 1 << 12;

/// Rows where the system does not tell what is free.
const USUAL: usize = 8;

impl Batch {
    /// Rows for sequences of up to `n_tokens`, the model's context at most.
    pub(crate) fn rows(self, model: &Model, n_tokens: usize) -> usize {
        let shape = model.decoder.config();
        // A growing cache doubles, and holds its old half while it does.
        let a_row = 2 * shape.kv_bytes_per_token() * n_tokens.min(shape.max_positions).max(1);
        match self {
            Self::Rows(n) => n,
            Self::Auto => free_bytes().map_or(USUAL, |free| (free / 2 / a_row).clamp(1, MOST)),
        }
    }
}

impl FromStr for Batch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(n) if (1..=MOST_TYPED).contains(&n) => Ok(Self::Rows(n)),
            _ if text == "auto" => Ok(Self::Auto),
            _ => Err(format!("expected auto or a whole number from 1 to {MOST_TYPED}")),
        }
    }
}

/// Memory that the system can give without swapping.
fn free_bytes() -> Option<usize> {
    let text = epikv_schemas::fs::read_text(std::path::Path::new("/proc/meminfo"), 1 << 20).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_auto() {
        assert_eq!("auto".parse(), Ok(Batch::Auto));
        assert_eq!("3".parse(), Ok(Batch::Rows(3)));
        assert!(["0", "-1", "Auto", "", "4097"].iter().all(|text| text.parse::<Batch>().is_err()));
    }
}
