//! Scores made of the steps of bands of layers: parts and variants of [`Epikv`](crate::Epikv).
//!
//! ```text
//! g_S(t)   = mean over layers l in S of |x_{l+1}(t) - x_{l+1}(t-1)|
//! score(t) = sum over terms of w z_S(t)          z_S the rolling z-score of g_S over 64 tokens, as in `epikv`
//! ```
//!
//! | signal | terms |
//! | --- | --- |
//! | `epikv_a` | `+z_10` |
//! | `epikv_b` | `-z_21`: higher is kept, so the band that goes against importance is taken with a minus |
//! | `band_adaptive` | `1.29 z_{7..13} - z_{18..25}`, layers averaged before the z-score |
//! | none, since the layer is a parameter | `+z_l` or `-z_l` of one layer: what a choice among single layers can give |
//!
//! Layers of the first three are those of 32, mapped to other depths by [`map_layer`]. 1.29 is the ratio of two coefficients
//! that the authors measured on MATH-500, on which they then evaluated the score.
//!
//! Cost: `O(d)` a token and layer on the device and `O(64)` here; state: a window a term.

use std::ops::RangeInclusive;

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};
use epikv_stats::{Rolling, RollingSpec};

use super::signal::{Signal, SignalSpec};
use super::smoother::DEFAULT_WINDOW;
use crate::error::{Error, Result};
use crate::layers::map_layer;
use crate::taps::Chunk;

pub(crate) static BAND_A: SignalSpec = SignalSpec {
    name: "epikv_a",
    doc: "Rolling z-score (window 64) of hs_l2 at layer 10 alone; other depths map the layer",
    unit: "1",
    source: "the ablation of EpiKV (arXiv 2606.26472) that leaves out band B",
};

pub(crate) static BAND_B: SignalSpec = SignalSpec {
    name: "epikv_b",
    doc: "Negative rolling z-score (window 64) of hs_l2 at layer 21 alone; other depths map the layer",
    unit: "1",
    source: "the ablation of EpiKV (arXiv 2606.26472) that leaves out band A",
};

pub(crate) static ADAPTIVE: SignalSpec = SignalSpec {
    name: "band_adaptive",
    doc: "1.29 times the z-score of hs_l2 averaged over layers 7-13, less that over layers 18-25; other depths map the \
          layers",
    unit: "1",
    source: "`band_adaptive_hs` in the code of EpiKV's authors (arXiv 2606.26472)",
};

static LAYER: SignalSpec = SignalSpec {
    name: "layer_z",
    doc: "Rolling z-score (window 64) of hs_l2 at one layer, or its negative",
    unit: "1",
    source: "the part of EpiKV (arXiv 2606.26472), section 4, that belongs to one layer",
};

pub(crate) fn band_a(n_layers: usize) -> Result<Box<dyn Signal>> {
    BandScore::build(&BAND_A, &[(1.0, 10..=10)], n_layers)
}

pub(crate) fn band_b(n_layers: usize) -> Result<Box<dyn Signal>> {
    BandScore::build(&BAND_B, &[(-1.0, 21..=21)], n_layers)
}

pub(crate) fn adaptive(n_layers: usize) -> Result<Box<dyn Signal>> {
    BandScore::build(&ADAPTIVE, &[(1.29, 7..=13), (-1.0, 18..=25)], n_layers)
}

/// A weighted sum of z-scores of bands.
#[derive(Debug, Clone)]
pub struct BandScore {
    spec: &'static SignalSpec,
    terms: Vec<Term>,
}

#[derive(Debug, Clone)]
struct Term {
    weight: f64,
    layers: RangeInclusive<usize>,
    window: Rolling,
}

impl Term {
    fn new(weight: f64, layers: RangeInclusive<usize>) -> Result<Self> {
        Ok(Self { weight, layers, window: Rolling::new(RollingSpec::new(DEFAULT_WINDOW)?) })
    }
}

impl BandScore {
    /// The z-score at a layer of a model of `n_layers`, with a minus if `minus`.
    ///
    /// # Errors
    /// If the model lacks the layer.
    pub fn at_layer(layer: usize, minus: bool, n_layers: usize) -> Result<Self> {
        if layer >= n_layers {
            return Err(Error::Layer { signal: LAYER.name, layer, n_layers });
        }
        let weight = if minus { -1.0 } else { 1.0 };
        Ok(Self { spec: &LAYER, terms: vec![Term::new(weight, layer..=layer)?] })
    }

    fn build(
        spec: &'static SignalSpec,
        terms: &[(f64, RangeInclusive<usize>)],
        n_layers: usize,
    ) -> Result<Box<dyn Signal>> {
        if n_layers == 0 {
            return Err(Error::Layer { signal: spec.name, layer: 0, n_layers });
        }
        let term = |(weight, layers): &(f64, RangeInclusive<usize>)| {
            Term::new(*weight, map_layer(*layers.start(), n_layers)..=map_layer(*layers.end(), n_layers))
        };
        let terms = terms.iter().map(term).collect::<Result<Vec<_>>>()?;
        if let [a, b] = terms.as_slice()
            && a.layers == b.layers
        {
            return Err(Error::SameLayer { signal: spec.name, layer: *a.layers.start(), n_layers });
        }
        Ok(Box::new(Self { spec, terms }))
    }

    /// The score of the next token from the mean step of each band.
    fn next(&mut self, means: &[Option<f64>]) -> Option<f32> {
        let means: Vec<f64> = means.iter().copied().collect::<Option<_>>()?;
        let z = self.terms.iter_mut().zip(means).map(|(term, g)| Some(term.weight * term.window.push(g)?.z));
        z.sum::<Option<f64>>().map(|score| score as f32)
    }
}

impl Signal for BandScore {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        let layers = self.terms.iter().flat_map(|term| term.layers.clone());
        layers.fold(ProbePlan::default(), |plan, layer| plan.tap(TapPoint::ResidPost(layer), Reduce::StepNorm))
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let mut means = vec![vec![None; self.terms.len()]; chunk.len()];
        for (at, term) in self.terms.iter().enumerate() {
            let mut sums = vec![Some(0.0); chunk.len()];
            for layer in term.layers.clone() {
                let steps = chunk.steps(self.spec.name, TapPoint::ResidPost(layer), Reduce::StepNorm)?;
                for (sum, step) in sums.iter_mut().zip(steps) {
                    *sum = sum.zip(step).map(|(sum, g): (f64, f32)| sum + f64::from(g));
                }
            }
            let n = term.layers.clone().count() as f64;
            means.iter_mut().zip(sums).for_each(|(token, sum)| token[at] = sum.map(|sum| sum / n));
        }
        Ok(means.iter().map(|token| self.next(token)).collect())
    }

    fn reset(&mut self) {
        self.terms.iter_mut().for_each(|term| term.window.reset());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_windows_by_hand() {
        let term = |weight, layers| Term::new(weight, layers).expect("not empty");
        let mut score = BandScore { spec: &ADAPTIVE, terms: vec![term(1.29, 1..=2), term(-1.0, 3..=3)] };
        let mut next = |a, b| score.next(&[a, b]);
        assert_eq!(next(Some(1.0), Some(5.0)), Some(0.0));
        // Two values lie one deviation from their mean.
        assert!((next(Some(3.0), Some(9.0)).expect("defined") - 0.29).abs() < 1e-5);
        assert_eq!(next(None, Some(9.0)), None);
    }

    #[test]
    fn one_layer_is_its_z_score_or_the_negative_bit_for_bit() {
        let mut plus = BandScore::at_layer(3, false, 4).expect("a layer");
        let mut minus = BandScore::at_layer(3, true, 4).expect("a layer");
        let mut window = Rolling::new(RollingSpec::new(DEFAULT_WINDOW).expect("not empty"));
        for step in [1.0, 3.0, 0.1, 2.7] {
            let z = window.push(step).expect("finite").z;
            assert_eq!(plus.next(&[Some(step)]).map(f32::to_bits), Some((z as f32).to_bits()));
            assert_eq!(minus.next(&[Some(step)]).map(f32::to_bits), Some((-z as f32).to_bits()));
            assert_eq!((plus.next(&[None]), minus.next(&[None])), (None, None));
        }
        assert!(matches!(BandScore::at_layer(4, true, 4), Err(Error::Layer { layer: 4, n_layers: 4, .. })));
    }

    #[test]
    fn bands_are_mapped_and_must_differ() {
        let plan = |n_layers| adaptive(n_layers).expect("deep enough").plan();
        let taps = |layers: &[usize]| {
            layers.iter().fold(ProbePlan::default(), |p, &l| p.tap(TapPoint::ResidPost(l), Reduce::StepNorm))
        };
        assert_eq!(plan(4), taps(&[0, 1, 2, 3]));
        assert_eq!(plan(32), taps(&[7, 8, 9, 10, 11, 12, 13, 18, 19, 20, 21, 22, 23, 24, 25]));
        assert!(matches!(adaptive(1), Err(Error::SameLayer { layer: 0, n_layers: 1, .. })));
        assert!(band_a(0).is_err());
    }
}
