//! How spread out a token's channels are on the scale of the chunk of tokens *after* it, as `LagKV` has it.
//!
//! ```text
//! x'_d(t) = (x_d(t) - min_d) / (max_d - min_d + 1e-9)         min, max of channel d over the chunk after that of t
//! s(t)    = softmax over the chunk of t of Std_d(x'(t))       unbiased
//! value   = mean over layers and KV heads of s of the keys + s of the values
//! ```
//!
//! Chunks hold 128 tokens and are counted from the first of the sequence. A token has a value once the chunk after its own is
//! full ([`LateSignal`]); those of the last chunks have none.
//!
//! **Differs from `LagKV` in:** chunks are not of survivors and no sinks are set apart; `1e-9` keeps a constant channel finite.
//!
//! Cost: `O(H_kv D)` a token and layer; state: a chunk of keys and values a layer.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};

use super::late::LateSignal;
use super::signal::SignalSpec;
use crate::error::{Error, Result};
use crate::formulas::spread::weights;
use crate::taps::Chunk;

/// Tokens of a chunk.
const CHUNK: usize = 128;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "lag_next",
    doc: "Softmax over a chunk of 128 tokens of the standard deviation over channels, scaled by the extremes of the \
          next chunk; key plus value",
    unit: "1",
    source: "LagKV (arXiv 2504.04704)",
};

pub(crate) fn build(n_layers: usize) -> Result<Box<dyn LateSignal>> {
    if n_layers == 0 {
        return Err(Error::Layer { signal: SPEC.name, layer: 0, n_layers });
    }
    let points = (0..n_layers).flat_map(|layer| [TapPoint::KeyPostRope(layer), TapPoint::Value(layer)]);
    Ok(Box::new(LagNext { n_layers, series: points.map(Series::new).collect(), n: 0 }))
}

/// The sum over all keys and values.
#[derive(Debug, Clone)]
struct LagNext {
    n_layers: usize,
    series: Vec<Series>,
    n: usize,
}

/// The keys, or values, of one layer.
#[derive(Debug, Clone)]
struct Series {
    point: TapPoint,
    head_dim: usize,
    /// Tokens whose value is not known yet, at most two chunks, `[tokens, H_kv D]`.
    waiting: Vec<f32>,
    /// Mean over heads, one a token that has a value.
    scores: Vec<f64>,
}

impl Series {
    fn new(point: TapPoint) -> Self {
        Self { point, head_dim: 0, waiting: Vec::new(), scores: Vec::new() }
    }

    /// Takes one token, `[H_kv D]`.
    fn next(&mut self, token: &[f32]) {
        self.waiting.extend_from_slice(token);
        let width = token.len();
        if self.waiting.len() < 2 * CHUNK * width {
            return;
        }
        let (chunk, after) = self.waiting.split_at(CHUNK * width);
        let mut sums = vec![0.0; CHUNK];
        for head in (0..width).step_by(self.head_dim) {
            let own = |tokens: &[f32]| -> Vec<Vec<f64>> {
                let channels =
                    |token: &[f32]| token[head..head + self.head_dim].iter().map(|&x| f64::from(x)).collect();
                tokens.chunks_exact(width).map(channels).collect()
            };
            sums.iter_mut().zip(weights(&own(chunk), &own(after))).for_each(|(sum, weight)| *sum += weight);
        }
        let n_heads = (width / self.head_dim) as f64;
        self.scores.extend(sums.into_iter().map(|sum| sum / n_heads));
        self.waiting.drain(..CHUNK * width);
    }
}

impl LateSignal for LagNext {
    fn spec(&self) -> &'static SignalSpec {
        &SPEC
    }

    fn plan(&self) -> ProbePlan {
        self.series.iter().fold(ProbePlan::default(), |plan, series| plan.tap(series.point, Reduce::Full))
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        for series in &mut self.series {
            series.head_dim = chunk.head_dim(SPEC.name, series.point)?;
            chunk.lend(SPEC.name, series.point, Reduce::Full, |all, width| {
                all.chunks_exact(width).for_each(|token| series.next(token));
            })?;
        }
        self.n += chunk.len();
        Ok(())
    }

    fn finish(&mut self) -> Vec<Option<f32>> {
        let n = std::mem::take(&mut self.n);
        let n_layers = self.n_layers as f64;
        let value = |at: usize| {
            let sum: Option<f64> = self.series.iter().map(|series| series.scores.get(at).copied()).sum();
            sum.map(|sum| (sum / n_layers) as f32).filter(|v| v.is_finite())
        };
        let values = (0..n).map(value).collect();
        self.series.iter_mut().for_each(|series| *series = Series::new(series.point));
        values
    }
}
