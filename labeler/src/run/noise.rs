//! The noise floor: how often an answer changes when nothing is hidden, or when the same window is hidden again.
//!
//! Both rates must be zero here, since a row depends on its own tokens only. They are still measured on some windows of
//! each run, because a rate of flips has no meaning without its noise floor.

use epikv_model::Model;
use epikv_model::session::Ledger;
use serde::Serialize;

use crate::error::Result;
use crate::run::config::Config;
use crate::run::regenerate::{Context, Regenerated, regenerate};

/// What was repeated, and how much of it came out otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct NoiseFloor {
    /// Windows that were checked.
    pub n_windows: usize,
    /// Of these, the windows overwritten by their own tokens after which the text was not that of the control.
    pub n_identity_changed: usize,
    /// Of these, the windows occluded once more, from a fresh pass and token by token, after which the text was another.
    pub n_repeated_changed: usize,
}

/// Every so many windows that `most` of `n` are taken.
pub(crate) fn sample(n: usize, most: usize) -> Vec<usize> {
    let n = if most == 0 { 0 } else { n };
    (0..n).step_by(n.div_ceil(most.max(1)).max(1)).collect()
}

/// Regenerates `contexts` and counts those that do not give the ids that are expected of them.
pub(crate) fn count_changed(
    model: &Model,
    contexts: impl ExactSizeIterator<Item = epikv_model::Result<Context>> + Send,
    expected: &[Option<&Regenerated>],
    config: &Config,
    ledger: &mut Ledger,
) -> Result<usize> {
    let mut n_changed = 0;
    let (n, contexts) = (contexts.len(), contexts.enumerate().map(|(key, context)| Ok((key, context?))));
    *ledger += regenerate(model, n, contexts, config, |key, result| {
        n_changed += usize::from(expected[key].is_none_or(|expected| expected.ids != result.ids));
        Ok(())
    })?;
    Ok(n_changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_and_never_too_large() {
        assert_eq!(sample(10, 4), [0, 3, 6, 9]);
        assert_eq!(sample(3, 8), [0, 1, 2]);
        assert_eq!((sample(0, 8).len(), sample(9, 0).len()), (0, 0));
        assert!((1..50).all(|n| (1..20).all(|most| sample(n, most).len() <= most)));
    }
}
