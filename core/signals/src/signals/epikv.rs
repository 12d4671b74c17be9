//! The `EpiKV` score: how unusual a step is at an early layer, less how unusual it is at a late one.
//!
//! ```text
//! score(t) = z_a(t) - z_b(t)
//! z_l(t)   = (g_l(t) - mean(win_l)) / (sd(win_l) + 1e-6)      0 where the window holds fewer than two values
//! ```
//!
//! `g_l` is the step norm of the signal `hs_l2`, `win_l` its last 64 values, that of `t` included, `sd` the population
//! deviation, and `a`, `b` are layers 10 and 21 of 32, mapped to other depths by [`map_layer`]. Each token is scored once,
//! as it is fed; `|score| <= 2 sqrt(63)`.
//!
//! The raw form, without z-scores, is the difference of the rolling means:
//!
//! ```text
//! raw(t) = mean(win_a) - mean(win_b)
//! ```
//!
//! Cost: `O(d)` a token on the device and `O(64)` here; state: two windows.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};
use epikv_stats::{Rolling, RollingSpec};

use super::signal::{Signal, SignalSpec};
use super::smoother::DEFAULT_WINDOW;
use crate::error::{Error, Result};
use crate::layers::map_layer;
use crate::taps::Chunk;

/// Layers of the reference model whose difference is the published score.
pub const EPIKV_LAYERS: [usize; 2] = [10, 21];

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "epikv",
    doc: "Rolling z-score (window 64) of hs_l2 at layer 10 less that at layer 21; other depths map the layers",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), section 4; `hs_variance_detrend` in its authors' code",
};

pub(crate) static RAW_SPEC: SignalSpec = SignalSpec {
    name: "epikv_raw",
    doc: "Rolling mean (window 64) of hs_l2 at layer 10 less that at layer 21; other depths map the layers",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), equation 1; `hs_variance` in its authors' code",
};

/// What is taken of each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statistic {
    ZScore,
    Mean,
}

/// The score at two layers of a model.
#[derive(Debug, Clone)]
pub struct Epikv {
    layers: [usize; 2],
    windows: [Rolling; 2],
    statistic: Statistic,
}

impl Epikv {
    /// The score of two layers of a model of `n_layers`: the first less the second.
    ///
    /// # Errors
    /// If the model lacks one of them, or they are the same.
    pub fn new(layers: [usize; 2], n_layers: usize) -> Result<Self> {
        if let Some(&layer) = layers.iter().find(|&&layer| layer >= n_layers) {
            return Err(Error::Layer { signal: SPEC.name, layer, n_layers });
        }
        if layers[0] == layers[1] {
            return Err(Error::SameLayer { signal: SPEC.name, layer: layers[0], n_layers });
        }
        let window = Rolling::new(RollingSpec::new(DEFAULT_WINDOW)?);
        Ok(Self { layers, windows: [window.clone(), window], statistic: Statistic::ZScore })
    }

    /// The same with rolling means in the place of z-scores.
    #[must_use]
    pub fn raw(self) -> Self {
        Self { statistic: Statistic::Mean, ..self }
    }

    /// The same with windows of another length, empty.
    ///
    /// # Errors
    /// If the length is 0.
    pub fn with_window(self, window: usize) -> Result<Self> {
        let window = Rolling::new(RollingSpec::new(window)?);
        Ok(Self { windows: [window.clone(), window], ..self })
    }

    /// The score of a model of `n_layers`, at the layers that 10 and 21 map to.
    ///
    /// # Errors
    /// If both map to the same layer.
    pub fn of_depth(n_layers: usize) -> Result<Self> {
        Self::new(EPIKV_LAYERS.map(|layer| map_layer(layer, n_layers)), n_layers)
    }

    /// The layers that are compared.
    pub fn layers(&self) -> [usize; 2] {
        self.layers
    }

    /// The score of the next token from its two step norms.
    fn next(&mut self, norms: [Option<f32>; 2]) -> Option<f32> {
        let [early, late] = &mut self.windows;
        let (a, b) = (norms[0]?, norms[1]?);
        let (a, b) = (early.push(f64::from(a)), late.push(f64::from(b)));
        let (a, b) = (a?, b?);
        Some(match self.statistic {
            Statistic::ZScore => a.z - b.z,
            Statistic::Mean => a.mean - b.mean,
        } as f32)
    }
}

impl Signal for Epikv {
    fn spec(&self) -> &'static SignalSpec {
        match self.statistic {
            Statistic::ZScore => &SPEC,
            Statistic::Mean => &RAW_SPEC,
        }
    }

    fn plan(&self) -> ProbePlan {
        let tap = |plan: ProbePlan, layer| plan.tap(TapPoint::ResidPost(layer), Reduce::StepNorm);
        self.layers.iter().fold(ProbePlan::default(), |plan, &layer| tap(plan, layer))
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let [early, late] =
            self.layers.map(|layer| chunk.steps(self.spec().name, TapPoint::ResidPost(layer), Reduce::StepNorm));
        Ok(early?.zip(late?).map(|(a, b)| self.next([a, b])).collect())
    }

    fn reset(&mut self) {
        self.windows.iter_mut().for_each(Rolling::reset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(early: &[f32], late: &[f32]) -> Vec<Option<f32>> {
        let mut score = Epikv::of_depth(32).expect("deep enough");
        early.iter().zip(late).map(|(&a, &b)| score.next([Some(a), Some(b)])).collect()
    }

    #[test]
    fn by_hand() {
        let got = scores(&[1.0, 2.0, 4.0], &[1.0; 3]);
        assert_eq!(got[0], Some(0.0), "one value has no deviation");
        // (2 - 1.5) / 0.5 and (4 - 7/3) / sqrt(14/9)
        assert!((got[1].expect("defined") - 1.0).abs() < 1e-5);
        assert!((got[2].expect("defined") - 1.336_30).abs() < 1e-5);
        let mirrored = scores(&[1.0; 3], &[1.0, 2.0, 4.0]);
        assert_eq!(mirrored[2], got[2].map(|x| -x));
    }

    #[test]
    fn only_the_last_64_values_count() {
        let mut early = vec![1000.0];
        early.extend((0..70).map(|i| (i % 5) as f32));
        let with_outlier = scores(&early, &[1.0; 71]);
        let without = scores(&early[1..], &[1.0; 70]);
        assert_ne!(with_outlier[63], without[62], "the outlier is still in the window");
        assert_eq!(with_outlier[64..], without[63..]);
    }

    #[test]
    fn an_undefined_step_is_left_out_of_the_windows() {
        let mut score = Epikv::of_depth(32).expect("deep enough");
        assert_eq!(score.next([None, None]), None);
        for (g, z) in [(1.0, 0.0), (2.0, 1.0)] {
            assert!((score.next([Some(g), Some(1.0)]).expect("defined") - z).abs() < 1e-5);
        }
        score.reset();
        assert_eq!(score.next([Some(9.0), Some(1.0)]), Some(0.0), "the window starts empty again");
    }

    #[test]
    fn the_raw_form_is_the_difference_of_means() {
        let mut score = Epikv::of_depth(32).expect("deep enough").raw();
        let got: Vec<_> = [1.0, 2.0, 6.0].into_iter().map(|a| score.next([Some(a), Some(0.5)])).collect();
        assert_eq!(got, [Some(0.5), Some(1.0), Some(2.5)]);
        let mut short = Epikv::of_depth(32).expect("deep enough").raw().with_window(1).expect("not empty");
        assert_eq!([3.0, 7.0].map(|a| short.next([Some(a), Some(1.0)])), [Some(2.0), Some(6.0)]);
        assert!(short.with_window(0).is_err());
    }

    #[test]
    fn layers_are_mapped_and_must_differ() {
        for (n_layers, layers) in [(32, [10, 21]), (16, [5, 10]), (4, [1, 2]), (2, [0, 1])] {
            assert_eq!(Epikv::of_depth(n_layers).expect("deep enough").layers(), layers);
        }
        assert!(matches!(Epikv::of_depth(1), Err(Error::SameLayer { layer: 0, n_layers: 1, .. })));
        assert!(matches!(Epikv::new([0, 4], 4), Err(Error::Layer { layer: 4, .. })));
    }
}
