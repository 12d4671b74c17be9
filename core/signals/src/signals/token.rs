//! Signals of the model's distribution over the vocabulary. The distribution before a token and the one after it must
//! not be mixed up:
//!
//! | signal | value at token `t` | distribution |
//! | --- | --- | --- |
//! | `surprisal` | `-ln p(token t)` in nats | **before** `t`: over what `t` could have been; undefined at the first token |
//! | `entropy` | `-sum_v p_v ln p_v` in nats | **after** `t`: over what could follow |
//! | `margin` | largest logit less the second largest | **after** `t` |
//!
//! All three are known when `t` is fed. Cost: the head's product at every token, `O(d V)`.

use epikv_model::taps::{LogitTap, ProbePlan};

use super::signal::{Signal, SignalSpec};
use crate::error::Result;
use crate::taps::Chunk;

pub(crate) static SURPRISAL: SignalSpec = SignalSpec {
    name: "surprisal",
    doc: "Surprisal -ln p of the token itself, from the logits before it",
    unit: "nat",
    source: "Shannon 1948; the control for the \"predictable continuation\" explanation of band B",
};

pub(crate) static ENTROPY: SignalSpec = SignalSpec {
    name: "entropy",
    doc: "Entropy of the distribution over the next token, from the logits after the token",
    unit: "nat",
    source: "Shannon 1948",
};

pub(crate) static MARGIN: SignalSpec = SignalSpec {
    name: "margin",
    doc: "Largest less second largest logit after the token",
    unit: "logit",
    source: "the certainty of greedy decoding",
};

/// A reduction of the logits, as a signal. It holds no state: the state before a token is kept with its cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenSignal {
    spec: &'static SignalSpec,
    tap: LogitTap,
}

pub(crate) fn surprisal() -> Box<dyn Signal> {
    Box::new(TokenSignal { spec: &SURPRISAL, tap: LogitTap::Surprisal })
}

pub(crate) fn entropy() -> Box<dyn Signal> {
    Box::new(TokenSignal { spec: &ENTROPY, tap: LogitTap::Entropy })
}

pub(crate) fn margin() -> Box<dyn Signal> {
    Box::new(TokenSignal { spec: &MARGIN, tap: LogitTap::Margin })
}

impl Signal for TokenSignal {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        ProbePlan::default().logits(self.tap)
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        chunk.logits(self.spec.name, self.tap)
    }

    fn reset(&mut self) {}
}
