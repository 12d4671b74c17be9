//! Upper limits of sizes. Larger ones are refused before anything is allocated.

use std::path::Path;

use crate::config::ModelConfig;
use crate::error::{Error, Result};

/// Positions; tables made for all of them would take gigabytes, so nothing may be sized by this number alone.
const MAX_POSITIONS: usize = 1 << 24;

/// Checks every size and constant of `config`; `path` is the file that they come from.
pub(super) fn check(config: &ModelConfig, path: &Path) -> Result<()> {
    let fail = |field: &str, expected: String, got: String| {
        Err(Error::Config { path: path.to_owned(), field: field.to_owned(), expected, got })
    };
    let sizes = [
        ("vocabulary size", config.vocab_size, 1 << 22),
        ("hidden size", config.hidden_size, 1 << 17),
        ("layers", config.n_layers, 1000),
        ("query heads", config.n_heads, 1 << 12),
        ("key/value heads", config.n_kv_heads, 1 << 12),
        ("head size", config.head_dim, 1 << 12),
        ("MLP width", config.intermediate_size, 1 << 20),
        ("context", config.max_positions, MAX_POSITIONS),
    ];
    for (field, size, max) in sizes {
        if size == 0 || size > max {
            return fail(field, format!("1 to {max}"), size.to_string());
        }
    }
    if !config.n_heads.is_multiple_of(config.n_kv_heads) {
        return fail(
            "key/value heads",
            format!("a divisor of {} query heads", config.n_heads),
            config.n_kv_heads.to_string(),
        );
    }
    if !config.head_dim.is_multiple_of(2) {
        return fail("head size", "an even number, since RoPE turns pairs".to_owned(), config.head_dim.to_string());
    }
    if !(config.rms_norm_eps.is_finite() && config.rms_norm_eps >= 0.0) {
        return fail("RMS norm epsilon", "a finite number of at least 0".to_owned(), config.rms_norm_eps.to_string());
    }
    if !(config.rope_theta.is_finite() && config.rope_theta > 0.0) {
        return fail("RoPE base", "a finite number above 0".to_owned(), config.rope_theta.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::RandomSpec;

    fn refused(change: impl Fn(&mut ModelConfig)) -> String {
        let mut config = "random:0".parse::<RandomSpec>().unwrap().config();
        check(&config, Path::new("c")).unwrap();
        change(&mut config);
        check(&config, Path::new("c")).unwrap_err().to_string()
    }

    #[test]
    fn zero_and_absurd_sizes_are_refused_by_name() {
        assert_eq!(refused(|c| c.n_layers = 1001), "c: layers: expected 1 to 1000, got 1001");
        assert!(refused(|c| c.vocab_size = (1 << 22) + 1).contains("vocabulary size"));
        assert!(refused(|c| c.vocab_size = 0).contains("got 0"));
        assert!(refused(|c| c.max_positions = usize::MAX).contains("context"));
    }

    #[test]
    fn heads_must_divide_and_pair() {
        assert!(refused(|c| c.n_kv_heads = 3).contains("divisor of 4 query heads"));
        assert!(refused(|c| c.head_dim = 15).contains("even"));
    }

    #[test]
    fn constants_must_be_numbers() {
        assert!(refused(|c| c.rms_norm_eps = f64::NAN).contains("epsilon"));
        assert!(refused(|c| c.rope_theta = 0.0).contains("RoPE base"));
    }
}
