//! The request and the result of a generation.

use std::time::Duration;

use epikv_model::sampler::{RandomStream, Sampling};
use epikv_model::session::Finish;
use epikv_signals::{Labels, Signal};

use crate::engine::certificate::Certificate;

/// What is generated.
#[derive(Debug, Clone)]
pub struct Generation<'a> {
    /// Prompt tokens.
    pub prompt: &'a [u32],
    /// New tokens at most.
    pub max_new: usize,
    /// Ids that end the generation.
    pub stop_ids: &'a [u32],
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Keys of the numbers that a policy draws.
    pub stream: RandomStream,
    /// Labels to replay, for a policy that does.
    pub labels: Option<Labels>,
}

impl<'a> Generation<'a> {
    /// Greedy tokens after a prompt, without stop ids and labels; keys are zero.
    pub fn greedy(prompt: &'a [u32], max_new: usize) -> Self {
        let stream = RandomStream { seed: 0, problem: 0, sample: 0 };
        Self { prompt, max_new, stop_ids: &[], sampling: Sampling::Greedy, stream, labels: None }
    }
}

/// What was generated, and what was held meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// New tokens, a stop id included.
    pub generated: Vec<u32>,
    /// Logit margin of each new token.
    pub margins: Vec<f32>,
    /// Why it ended.
    pub finish: Finish,
    /// Sizes and evictions.
    pub certificate: Certificate,
    /// Where the time went.
    pub times: Times,
    /// What was recorded of the generated tokens that were fed, in the order in which it was asked for.
    pub signals: Vec<Series>,
}

/// A signal under eviction, from the first generated token on; null where undefined.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: &'static str,
    /// Its layer, where it has one.
    pub layer: Option<usize>,
    /// One value a generated token.
    pub values: Vec<Option<f32>>,
}

/// Elapsed time of one generation, and bytes. Of the forward passes it has its share, by tokens fed. Differs from run to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Forward passes that read the prompt.
    pub prefill: Duration,
    /// Forward passes that decoded.
    pub decode: Duration,
    /// Scoring.
    pub score: Duration,
    /// Choosing what goes.
    pub select: Duration,
    /// Freeing slots, gathering, rotating again.
    pub moves: Duration,
    /// Bytes copied from the device to the host in that time.
    pub bytes_to_host: u64,
}

impl Times {
    /// All forward passes.
    pub fn forward(&self) -> Duration {
        self.prefill + self.decode
    }

    /// All of it.
    pub fn wall(&self) -> Duration {
        self.forward() + self.score + self.select + self.moves
    }
}

/// A signal that is recorded while tokens are evicted.
#[derive(Debug)]
pub struct Recorded {
    pub(crate) signal: Box<dyn Signal>,
    pub(crate) series: Series,
}

impl Recorded {
    /// Nothing recorded yet.
    pub fn new(layer: Option<usize>, signal: Box<dyn Signal>) -> Self {
        let series = Series { name: signal.spec().name, layer, values: Vec::new() };
        Self { signal, series }
    }
}
