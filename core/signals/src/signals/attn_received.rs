//! Attention that a token receives from itself and the tokens after it.
//!
//! ```text
//! h2o_attn(j)       = mean over layers and query heads of sum over t >= j of p_t(j)
//! h2o_attn@age=W(j) = the same over j <= t <= j + W: what was known of the token at that age
//! attn_last(j)      = mean over layers and query heads of p_T(j), T the last token of the trace
//! ```
//!
//! with `p_t` the attention weights of token `t`. None of them is known at birth ([`LateSignal`]). The full sum has more
//! terms for earlier tokens and hence a trend by construction. The sum at an age is causal with a delay of `W` tokens:
//! nothing after `j + W` changes it; where the sequence ends before, it is what was known at the end. Any age can be asked
//! for by name (`row`); only that of 64 stands in the table.
//!
//! Attention is reduced while it exists, layer by layer and tile by tile. State: one number a token.

use epikv_model::taps::{AttentionTap, HeadObservation, ProbePlan};

use super::late::LateSignal;
use super::row::{Build, SignalRow};
use super::signal::SignalSpec;
use crate::error::{Error, Result};
use crate::taps::Chunk;
use crate::words::kept;

/// The age that stands in the table.
pub(crate) const AGE: usize = 64;

/// What stands before the age in a name.
const AGED: &str = "h2o_attn@age=";

/// No trace is longer.
const MAX_AGE: usize = 1 << 24;

pub(crate) static ALL: SignalSpec = SignalSpec {
    name: "h2o_attn",
    doc: "Attention that the token receives up to the end of the trace, summed over queries, mean over heads and layers",
    unit: "1",
    source: "H2O (arXiv 2306.14048); `h2o_attn` in the code of EpiKV's authors (arXiv 2606.26472)",
};

pub(crate) static YOUNG: SignalSpec = SignalSpec {
    name: "h2o_attn@age=64",
    doc: "Attention that the token receives up to 64 tokens after it, summed over queries, mean over heads and layers; \
          the name takes any other number of tokens",
    unit: "1",
    source: AGED_SOURCE,
};

pub(crate) static LAST: SignalSpec = SignalSpec {
    name: "attn_last",
    doc: "Attention that the token receives from the last token of the trace, mean over heads and layers",
    unit: "1",
    source: "TOVA (arXiv 2401.06104), at the end of the trace",
};

const AGED_SOURCE: &str = "H2O (arXiv 2306.14048), as it was known at that age";

/// The row of `h2o_attn@age=W` for an age outside the table; `None` for another name.
pub(super) fn row(name: &str) -> Option<SignalRow> {
    let age = name.strip_prefix(AGED)?;
    let age: usize = age.parse().ok().filter(|n: &usize| *n <= MAX_AGE && n.to_string() == age)?;
    let doc = format!(
        "Attention that the token receives up to {age} tokens after it, summed over queries, mean over heads and layers"
    );
    let spec = SignalSpec { name: kept(name), doc: kept(&doc), unit: "1", source: AGED_SOURCE };
    Some(SignalRow { spec: Box::leak(Box::new(spec)), build: Build::Aged(age) })
}

/// Which queries count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    All,
    Young(usize),
    Last,
}

/// The sum under way.
#[derive(Debug, Clone)]
struct Received {
    spec: &'static SignalSpec,
    from: From,
    n_layers: usize,
    /// `[n]` in f64: thousands of small terms.
    sums: Vec<f64>,
}

pub(crate) fn all(n_layers: usize) -> Result<Box<dyn LateSignal>> {
    Received::build(&ALL, From::All, n_layers)
}

pub(crate) fn young(spec: &'static SignalSpec, age: usize, n_layers: usize) -> Result<Box<dyn LateSignal>> {
    Received::build(spec, From::Young(age), n_layers)
}

pub(crate) fn last(n_layers: usize) -> Result<Box<dyn LateSignal>> {
    Received::build(&LAST, From::Last, n_layers)
}

impl Received {
    fn build(spec: &'static SignalSpec, from: From, n_layers: usize) -> Result<Box<dyn LateSignal>> {
        if n_layers == 0 {
            return Err(Error::Layer { signal: spec.name, layer: 0, n_layers });
        }
        Ok(Box::new(Self { spec, from, n_layers, sums: Vec::new() }))
    }

    /// What was seen of each key, `[G, keys]`; the last row has those of the last token.
    fn weights<'o>(&self, seen: &'o HeadObservation) -> &'o [f32] {
        match self.from {
            From::All => &seen.column_sum,
            From::Young(age) => seen.young_sums.get(&age).map_or(&[], Vec::as_slice),
            From::Last => &seen.last_rows,
        }
    }
}

impl LateSignal for Received {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        let tap = |layer| match self.from {
            From::All => AttentionTap::ColumnSum(layer),
            From::Young(age) => AttentionTap::YoungSum(layer, age),
            From::Last => AttentionTap::Rows(layer, 1),
        };
        (0..self.n_layers).fold(ProbePlan::default(), |plan, layer| plan.attention(tap(layer)))
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let n = self.sums.len() + chunk.len();
        self.sums.resize(n, 0.0);
        if self.from == From::Last {
            self.sums.fill(0.0);
        }
        for layer in 0..self.n_layers {
            let heads = chunk.attention(layer).unwrap_or_default();
            let n_weights: usize = heads.iter().map(|seen| self.weights(seen).len()).sum();
            // Query heads, each with a weight for every key; without an eviction keys are tokens.
            let n_heads = n_weights / n;
            if n_heads == 0 || n_heads * n != n_weights {
                return Err(Error::AttentionShape { layer, expected: n, got: n_weights });
            }
            let factor = 1.0 / (n_heads * self.n_layers) as f64;
            for seen in heads {
                for of_query_head in self.weights(seen).chunks_exact(n) {
                    // Only the last row counts where rows were kept: one a query head.
                    for (sum, &weight) in self.sums.iter_mut().zip(of_query_head) {
                        *sum += factor * f64::from(weight);
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Vec<Option<f32>> {
        std::mem::take(&mut self.sums).into_iter().map(|sum| Some(sum as f32).filter(|v| v.is_finite())).collect()
    }
}
