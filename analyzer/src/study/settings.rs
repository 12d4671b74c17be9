//! What a study asks for.

use epikv_signals::Smoother;
use epikv_stats::{Confidence, FisherMethod};
use serde_json::{Value, json};

use crate::record::WindowFrom;
use crate::study::pools::Pool;

/// How signals are compared with labels.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Smoothers, in the order of the rows.
    pub smoothers: Vec<Smoother>,
    /// Tokens of a smoother's window; not 0.
    pub window: usize,
    /// Where smoothers start.
    pub window_from: WindowFrom,
    /// Level of all intervals.
    pub confidence: Confidence,
    /// Form of the pooled interval on usable traces.
    pub fisher: FisherMethod,
    /// Replicates of the bootstrap over problems.
    pub replicates: usize,
    /// Replicates of the tests against labels of other problems and against shifted ones.
    pub surrogates: usize,
    /// Seed of the bootstrap over problems and of the surrogates.
    pub seed: u64,
    /// Tokens that a lag profile reaches to either side; 0 for none.
    pub max_lag: usize,
    /// Problem sets that are pooled.
    pub pools: Vec<Pool>,
}

impl Settings {
    /// The smoothers, for provenance.
    pub fn smoothing(&self) -> Value {
        let names: Vec<String> = self.smoothers.iter().map(|s| s.name(self.window)).collect();
        json!({
            "smoothers": names,
            "window": self.window,
            "ddof": 0,
            "eps": 1e-6,
            "decay": Smoother::decay(self.window),
            "init": "first",
            "from": self.window_from.name(),
        })
    }

    /// The smoother that pages show where there is room for one: `mean64` where it was asked for, else the first.
    pub(crate) fn shown_smoothing(&self) -> String {
        let first = self.smoothers.first().copied().unwrap_or(Smoother::Raw);
        let shown = if self.smoothers.contains(&Smoother::Mean) { Smoother::Mean } else { first };
        shown.name(self.window)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn settings() -> Settings {
        Settings {
            smoothers: Smoother::ALL.to_vec(),
            window: 8,
            window_from: WindowFrom::Decode,
            confidence: Confidence::P95,
            fisher: FisherMethod::Plain,
            replicates: 50,
            surrogates: 19,
            seed: 0,
            max_lag: 4,
            pools: Vec::new(),
        }
    }
}
