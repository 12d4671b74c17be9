//! How spread out a token's channels are on the scale of the chunk of tokens before it.
//!
//! ```text
//! x'_d(t) = (x_d(t) - min_d) / (max_d - min_d + 1e-9)      min, max of channel d over the chunk before that of t
//! s(t)    = Std_d(x'(t))                                   unbiased; of x itself in the first chunk
//! ```
//!
//! Chunks hold 128 tokens and are counted from where windows start: the first decoded token, unless told otherwise. Two
//! forms:
//!
//! | signal | `x` | mean over |
//! | --- | --- | --- |
//! | `lag_key`, `lag_val` | key after rotation or value of layer `l`, each KV head for itself | KV heads |
//! | `lag_kv_key`, `lag_kv` | keys of all layers **averaged channel by channel first**, as the authors do; `lag_kv` adds the same of the values | KV heads |
//!
//! **Differs from the authors' policy in:** there the chunks are of the slots that are held, prompt included, and all
//! tokens are scored again at each eviction; here a token has the one value that was known when it was fed.
//! **Differs from `LagKV` in:** `LagKV` scales by the chunk *after* a token, so that nothing is known until that is full, and
//! takes a softmax over the chunk: that is `lag_next`.
//!
//! Cost: `O(H_kv D)` a token and layer; state: two pairs of extremes a channel.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};

use super::per_layer::At;
use super::signal::{Signal, SignalSpec};
use crate::error::{Error, Result};
use crate::formulas::spread::{Extremes, spreads};
use crate::taps::Chunk;

/// Tokens of a chunk.
const CHUNK: usize = 128;

pub(crate) static KEY: SignalSpec = SignalSpec {
    name: "lag_key",
    doc: "Standard deviation over channels of the token's key at layer l, scaled by the extremes of the previous chunk \
          of 128 tokens",
    unit: "1",
    source: "LagKV (arXiv 2504.04704), scaled by the previous chunk instead of the next",
};

pub(crate) static VALUE: SignalSpec = SignalSpec {
    name: "lag_val",
    doc: "Standard deviation over channels of the token's value at layer l, scaled by the extremes of the previous \
          chunk of 128 tokens",
    unit: "1",
    source: "LagKV (arXiv 2504.04704), scaled by the previous chunk instead of the next",
};

pub(crate) static AUTHORS_KEY: SignalSpec = SignalSpec {
    name: "lag_kv_key",
    doc: "As lag_key, of the keys of all layers averaged channel by channel",
    unit: "1",
    source: "`lag_kv_key` in the code of EpiKV's authors (arXiv 2606.26472), set when the token is fed",
};

pub(crate) static AUTHORS_BOTH: SignalSpec = SignalSpec {
    name: "lag_kv",
    doc: "Sum of lag_kv_key and the same of the values",
    unit: "1",
    source: "`lag_kv` in the code of EpiKV's authors (arXiv 2606.26472), set when the token is fed",
};

pub(crate) fn key(at: At) -> Result<Box<dyn Signal>> {
    let layer = at.checked(KEY.name)?;
    Ok(Box::new(Lag { spec: &KEY, parts: vec![Part::new(vec![TapPoint::KeyPostRope(layer)])] }))
}

pub(crate) fn value(at: At) -> Result<Box<dyn Signal>> {
    let layer = at.checked(VALUE.name)?;
    Ok(Box::new(Lag { spec: &VALUE, parts: vec![Part::new(vec![TapPoint::Value(layer)])] }))
}

pub(crate) fn authors_key(n_layers: usize) -> Result<Box<dyn Signal>> {
    of_layers(&AUTHORS_KEY, &[TapPoint::KeyPostRope], n_layers)
}

pub(crate) fn authors_both(n_layers: usize) -> Result<Box<dyn Signal>> {
    of_layers(&AUTHORS_BOTH, &[TapPoint::KeyPostRope, TapPoint::Value], n_layers)
}

fn of_layers(spec: &'static SignalSpec, points: &[fn(usize) -> TapPoint], n_layers: usize) -> Result<Box<dyn Signal>> {
    if n_layers == 0 {
        return Err(Error::Layer { signal: spec.name, layer: 0, n_layers });
    }
    let parts = points.iter().map(|point| Part::new((0..n_layers).map(point).collect())).collect();
    Ok(Box::new(Lag { spec, parts }))
}

/// A sum of dispersions.
#[derive(Debug, Clone)]
struct Lag {
    spec: &'static SignalSpec,
    parts: Vec<Part>,
}

/// The dispersion of the mean over some points.
#[derive(Debug, Clone, Default)]
struct Part {
    points: Vec<TapPoint>,
    /// Extremes of each channel, `[H_kv D]`, in the chunk before and in this one.
    before: Option<Extremes>,
    now: Extremes,
}

impl Part {
    fn new(points: Vec<TapPoint>) -> Self {
        Self { points, ..Self::default() }
    }

    /// The mean over the points of the tokens of a chunk, `[T, H_kv D]`.
    fn means(&self, signal: &'static str, chunk: &Chunk<'_>) -> Result<(Vec<f64>, usize)> {
        let (mut sums, mut head_dim) = (Vec::new(), 0);
        for &point in &self.points {
            head_dim = chunk.head_dim(signal, point)?;
            chunk.lend(signal, point, Reduce::Full, |all, _| {
                sums.resize(all.len(), 0.0);
                sums.iter_mut().zip(all).for_each(|(sum, &x): (&mut f64, _)| *sum += f64::from(x));
            })?;
        }
        let n = self.points.len() as f64;
        for sum in &mut sums {
            *sum /= n;
        }
        Ok((sums, head_dim))
    }

    /// The dispersion of the next token, mean over heads; `NaN` where its channels are.
    fn next(&mut self, token: &[f64], head_dim: usize) -> f64 {
        let heads = spreads(token, head_dim, self.before.as_ref());
        self.now.add(token);
        if self.now.len() == CHUNK {
            self.before = Some(std::mem::take(&mut self.now));
        }
        heads.iter().sum::<f64>() / heads.len() as f64
    }
}

impl Signal for Lag {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        let points = self.parts.iter().flat_map(|part| &part.points);
        points.fold(ProbePlan::default(), |plan, &point| plan.tap(point, Reduce::Full))
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let mut sums = vec![0.0; chunk.len()];
        for part in &mut self.parts {
            let (means, head_dim) = part.means(self.spec.name, chunk)?;
            let width = means.len() / chunk.len().max(1);
            for (sum, token) in sums.iter_mut().zip(means.chunks_exact(width.max(1))) {
                *sum += part.next(token, head_dim);
            }
        }
        Ok(sums.into_iter().map(|sum| Some(sum as f32).filter(|v| v.is_finite())).collect())
    }

    fn reset(&mut self) {
        for part in &mut self.parts {
            (part.before, part.now) = (None, Extremes::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formulas::spread::spread;

    #[test]
    fn the_chunk_before_sets_the_scale() {
        let mut part = Part::new(Vec::new());
        let token = |i: usize| [i as f64, 10.0 * i as f64];
        for i in 0..CHUNK {
            let plain = spread(&token(i), None);
            assert_eq!(part.next(&token(i), 2).to_bits(), plain.to_bits(), "nothing before the first chunk");
        }
        // Both channels run from 0 to their value at 127, so token 254 is at 2 in both, and (127, 0) at 1 and 0.
        assert!(part.next(&token(254), 2) < 1e-9);
        assert!((part.next(&[127.0, 0.0], 2) - 0.5_f64.sqrt()).abs() < 1e-9);
    }
}
