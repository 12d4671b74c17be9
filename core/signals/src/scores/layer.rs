//! The z-score of the step at one layer of this model, as [`BandScore`] gives it: `layer(5)`, or its negative `layer(-5)`.

use std::fmt;

use super::row::{Form, ScoreRow};
use super::score::{Need, ScoreSpec};
use super::signal_score::SignalScore;
use crate::signals::BandScore;

pub(crate) static SPEC: ScoreSpec = ScoreSpec {
    name: "layer",
    doc: "Rolling z-score (window 64) of the change of the residual stream at one layer of this model, or its negative",
    source: "one half of the EpiKV score (arXiv 2606.26472)",
    needs: &[Need::Residual],
    forms: &["LAYER", "-LAYER"],
    frozen: true,
    ..ScoreSpec::BLANK
};

/// The row of the table.
pub(crate) const ROW: ScoreRow = ScoreRow::with_argument(&SPEC, |argument| {
    let one = OneLayer::parse(argument)?;
    let signal = move |n_layers| BandScore::at_layer(one.layer, one.minus, n_layers);
    Some(Form::new(one, move |setup| Ok(Box::new(SignalScore::new(&SPEC, Box::new(signal(setup.n_layers)?))))))
});

/// A layer of this model whose z-score is the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneLayer {
    /// The layer, 0-based.
    pub layer: usize,
    /// Small steps are kept.
    pub minus: bool,
}

impl OneLayer {
    /// Reads an argument; `None` for one that is wrong.
    fn parse(argument: &str) -> Option<Self> {
        let (digits, minus) = argument.strip_prefix('-').map_or((argument, false), |digits| (digits, true));
        Some(Self { layer: digits.parse().ok()?, minus })
    }
}

impl fmt::Display for OneLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.minus { "-" } else { "" }, self.layer)
    }
}
