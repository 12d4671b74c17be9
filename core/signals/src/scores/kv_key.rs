//! The variance of keys over their channels, smoothed, as the signal [`KvKey`] gives it to generated tokens.

use super::row::ScoreRow;
use super::score::{Need, ScoreSpec};
use super::signal_score::SignalScore;
use crate::signals::KvKey;

pub(crate) static SPEC: ScoreSpec = ScoreSpec {
    name: "kv-key",
    doc: "Rolling mean (window 64) of the variance of the key over its channels, mean over layers and KV heads",
    source: "EpiKV (arXiv 2606.26472), the key-variance variant; `kv_key` in its authors' code",
    needs: &[Need::Keys],
    frozen: true,
    ..ScoreSpec::BLANK
};

/// The row of the table.
pub(crate) const ROW: ScoreRow =
    ScoreRow::plain(&SPEC, |setup| Ok(Box::new(SignalScore::new(&SPEC, Box::new(KvKey::new(setup.n_layers)?)))));
