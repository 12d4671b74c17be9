//! Protection: tokens that a policy keeps whatever their score.

use std::fmt;
use std::str::FromStr;

use epikv_model::cache::{Pos, SlotMap};

use crate::error::{Error, Result};
use crate::policy::forms::{number, percent, wrong};

/// The values of the part.
pub(crate) const FORMS: &str =
    "nothing, or prompt, sinks(N), recency, recency(N), recency(N%) of the budget, joined by +";

/// What is kept whatever it scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protect {
    /// The prompt.
    pub prompt: bool,
    /// So many of the first tokens.
    pub sinks: usize,
    /// The newest tokens.
    pub recency: Recency,
}

/// How many of the newest tokens are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recency {
    /// None.
    None,
    /// As many as the budget says: `min(128, floor(K/4))`.
    Budget,
    /// So many.
    Tokens(usize),
    /// So many percent of the budget, rounded down; below 100.
    Percent(u8),
}

impl fmt::Display for Protect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recency = match self.recency {
            Recency::None => None,
            Recency::Budget => Some("recency".to_owned()),
            Recency::Tokens(tokens) => Some(format!("recency({tokens})")),
            Recency::Percent(percent) => Some(format!("recency({percent}%)")),
        };
        let sinks = (self.sinks > 0).then(|| format!("sinks({})", self.sinks));
        let parts: Vec<String> =
            self.prompt.then(|| "prompt".to_owned()).into_iter().chain(sinks).chain(recency).collect();
        f.write_str(&if parts.is_empty() { "nothing".to_owned() } else { parts.join("+") })
    }
}

impl FromStr for Protect {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut protect = Self { prompt: false, sinks: 0, recency: Recency::None };
        if text == "nothing" {
            return Ok(protect);
        }
        for part in text.split('+').map(str::trim) {
            if part == "prompt" {
                protect.prompt = true;
            } else if part == "recency" {
                protect.recency = Recency::Budget;
            } else if let Some(tokens) = number(part, "recency") {
                protect.recency = Recency::Tokens(tokens);
            } else if let Some(percent) = percent(part, "recency") {
                protect.recency = Recency::Percent(percent);
            } else if let Some(sinks) = number(part, "sinks") {
                protect.sinks = sinks;
            } else {
                return Err(wrong("protect", FORMS, text));
            }
        }
        // Positions are 32 bits; sums of larger counts would mean nothing.
        let fits = |n: usize| u32::try_from(n).is_ok();
        let recency = if let Recency::Tokens(tokens) = protect.recency { tokens } else { 0 };
        if fits(protect.sinks) && fits(recency) { Ok(protect) } else { Err(wrong("protect", FORMS, text)) }
    }
}

/// Protected positions: the first so many, and the newest so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Protected {
    /// Positions below are protected.
    pub(crate) n_first: u32,
    /// So many of the newest positions are protected.
    pub(crate) recency: u32,
}

impl Protected {
    /// Whether the token at `pos` is protected while `newest` is the latest position fed.
    pub(crate) fn contains(self, pos: Pos, newest: Pos) -> bool {
        pos.0 < self.n_first || pos.0 + self.recency > newest.0
    }

    /// The places, in the order of positions, of the tokens that are not protected among `n` held. All protected tokens are
    /// held, so they are the first and the last.
    pub(crate) fn candidates(self, n: usize) -> std::ops::Range<usize> {
        let from = (self.n_first as usize).min(n);
        from..n.saturating_sub(self.recency as usize).max(from)
    }

    /// How many tokens are protected when `newest` is the latest position fed.
    pub(crate) fn len(self, newest: Pos) -> usize {
        let fed = newest.0 + 1;
        let first = self.n_first.min(fed);
        (first + self.recency.min(fed - first)) as usize
    }

    /// Protected positions that a kept set lacks.
    ///
    /// Positions ascend and are distinct, so all of `0..n` are there if and only if the `n`-th is `n - 1`, and likewise
    /// from the end: two look-ups, and a count only where something is missing.
    pub(crate) fn n_missing(self, set: &SlotMap, newest: Pos) -> usize {
        let fed = newest.0 + 1;
        let (first, recent) = (self.n_first.min(fed), self.recency.min(fed));
        let first_there = first == 0 || set.nth(first as usize - 1) == Some(Pos(first - 1));
        let oldest_recent = set.len().checked_sub(recent as usize).and_then(|place| set.nth(place));
        if first_there && (recent == 0 || oldest_recent == Some(Pos(fed - recent))) {
            return 0;
        }
        self.len(newest) - set.positions().filter(|&pos| self.contains(pos, newest)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_tokens_are_counted_as_they_are_found() {
        for (n_first, recency) in [(6, 5), (6, 0), (0, 5), (0, 0)] {
            let protected = Protected { n_first, recency };
            for newest in 0..40 {
                let found = (0..=newest).filter(|&p| protected.contains(Pos(p), Pos(newest))).count();
                assert_eq!(found, protected.len(Pos(newest)), "{protected:?} at {newest}");
            }
        }
    }
}
