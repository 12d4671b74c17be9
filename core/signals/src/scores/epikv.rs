//! The `EpiKV` score, as the signal [`Epikv`] gives it to generated tokens: `epikv` by z-scores, `epikv-raw` by means.
//!
//! `epikv(3+7)` compares layers 3 and 7 of this model, `epikv(window16)` has rolling windows of 16 tokens.

use std::fmt;

use super::row::{Form, ScoreRow};
use super::score::{Need, Score, ScoreSpec};
use super::signal_score::SignalScore;
use crate::error::Result;
use crate::signals::Epikv;

/// Tokens of a rolling window at most.
const LONGEST: usize = 1 << 20;

pub(crate) static SPEC: ScoreSpec = ScoreSpec {
    name: "epikv",
    doc: "Rolling z-score (window 64) of the change of the residual stream at layer 10 less that at layer 21",
    source: "EpiKV (arXiv 2606.26472), section 4; `hs_variance_detrend` in its authors' code",
    needs: &[Need::Residual],
    forms: &["LAYER+LAYER", "windowN"],
    frozen: true,
    ..ScoreSpec::BLANK
};

pub(crate) static RAW: ScoreSpec = ScoreSpec {
    name: "epikv-raw",
    doc: "Rolling mean (window 64) of the change of the residual stream at layer 10 less that at layer 21",
    source: "EpiKV (arXiv 2606.26472), equation 1; `hs_variance` in its authors' code",
    needs: &[Need::Residual],
    forms: &["LAYER+LAYER", "windowN"],
    frozen: true,
    ..ScoreSpec::BLANK
};

/// The argument of `epikv` and `epikv-raw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bands {
    /// The layers of this model; those that 10 and 21 of 32 map to where not given.
    pub layers: Option<[usize; 2]>,
    /// Length of the rolling window; 64 where not given.
    pub window: Option<usize>,
}

impl Bands {
    /// Reads an argument; `None` for one that is wrong.
    pub fn parse(argument: &str) -> Option<Self> {
        let (mut layers, mut window) = (Vec::new(), None);
        for part in argument.split('+').filter(|_| !argument.is_empty()) {
            match part.strip_prefix("window") {
                Some(digits) => window = Some(digits.parse().ok().filter(|n| (1..=LONGEST).contains(n))?),
                None => layers.push(part.parse().ok()?),
            }
        }
        match layers[..] {
            [] => Some(Self { layers: None, window }),
            [a, b] => Some(Self { layers: Some([a, b]), window }),
            _ => None,
        }
    }

    fn signal(self, n_layers: usize) -> Result<Epikv> {
        let signal = match self.layers {
            Some(layers) => Epikv::new(layers, n_layers)?,
            None => Epikv::of_depth(n_layers)?,
        };
        match self.window {
            Some(window) => signal.with_window(window),
            None => Ok(signal),
        }
    }
}

impl fmt::Display for Bands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers = self.layers.map(|[a, b]| format!("{a}+{b}"));
        let window = self.window.map(|window| format!("window{window}"));
        f.write_str(&layers.into_iter().chain(window).collect::<Vec<_>>().join("+"))
    }
}

/// The rows of the table.
pub(crate) const ROW: ScoreRow = ScoreRow::with_argument(&SPEC, |argument| {
    let bands = Bands::parse(argument)?;
    Some(Form::new(bands, move |setup| Ok(score(&SPEC, bands.signal(setup.n_layers)?))))
});
pub(crate) const RAW_ROW: ScoreRow = ScoreRow::with_argument(&RAW, |argument| {
    let bands = Bands::parse(argument)?;
    Some(Form::new(bands, move |setup| Ok(score(&RAW, bands.signal(setup.n_layers)?.raw()))))
});

fn score(spec: &'static ScoreSpec, signal: Epikv) -> Box<dyn Score> {
    let layers = signal.layers();
    Box::new(SignalScore::new(spec, Box::new(signal)).of_layers(layers))
}
