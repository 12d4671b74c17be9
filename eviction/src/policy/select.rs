//! How the kept tokens are chosen among those that are not protected.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::policy::forms::wrong;

/// The values of the part.
pub(crate) const FORMS: &str = "top-k, or draw (at random, in proportion to the score); +values(N%) reserves N % of \
                                the budget for the largest value ranges";

/// How the kept tokens are chosen among those that are not protected.
///
/// First those of the largest value range, so many percent of the budget less the protected first tokens; then by score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Select {
    /// Drawn without replacement with a chance in proportion to the score; else the highest scores, among equals the newer
    /// token. A score of zero is drawn last.
    pub draw: bool,
    /// Percent of the budget that is kept for the largest value ranges.
    pub values: u8,
}

impl Select {
    /// The highest scores.
    pub const TOP_K: Self = Self { draw: false, values: 0 };

    /// Whether a score decides alone.
    pub(crate) fn by_score(self) -> bool {
        self == Self::TOP_K
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.draw { "draw" } else { "top-k" })?;
        if self.values == 0 { Ok(()) } else { write!(f, "+values({}%)", self.values) }
    }
}

impl FromStr for Select {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (draw, values) =
            text.split_once('+').map_or((text, None), |(draw, values)| (draw.trim(), Some(values.trim())));
        let draw = match draw {
            "top-k" => false,
            "draw" => true,
            _ => return Err(wrong("select", FORMS, text)),
        };
        let percent =
            |values: &str| values.strip_prefix("values(")?.strip_suffix("%)")?.parse().ok().filter(|n| *n <= 100);
        let values = values.map_or(Some(0), percent).ok_or_else(|| wrong("select", FORMS, text))?;
        Ok(Self { draw, values })
    }
}
