//! The kinds of figures that claims are about.

use serde::{Deserialize, Serialize};

use crate::claims::labels;
use crate::claims::part::Part;
use crate::claims::policies::{self, Count, Effect};
use crate::claims::ranks::{self, Layers, Ranked};
use crate::claims::run::Run;

/// A figure: what is estimated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Figure {
    /// Share of runs of one policy less that of another; `*` is any policy but the other one.
    Runs {
        /// A policy.
        a: String,
        /// The other one.
        b: String,
        /// What is counted.
        #[serde(default)]
        count: Count,
        /// What is held equal.
        effect: Effect,
    },
    /// Decoding time of one policy over that of another.
    Time {
        /// The policy whose time divides.
        fast: String,
        /// The policy whose time is divided.
        slow: String,
    },
    /// Share of the decoding time in which a policy chooses what to evict.
    Overhead {
        /// The policy.
        policy: String,
    },
    /// Rho within traces.
    Rho {
        /// The signal.
        ranked: Ranked,
        /// Its layers.
        #[serde(default)]
        layers: Layers,
    },
    /// Strength of one signal less that of another.
    Strength {
        /// A signal.
        a: Ranked,
        /// The other one.
        b: Ranked,
        /// Layers of the first.
        #[serde(default)]
        layers: Layers,
    },
    /// Rho of band B given the surprisal.
    GivenSurprisal,
    /// Slope over layers against difficulty.
    Trend,
    /// Agreement of two signals.
    Agreement {
        /// A signal.
        a: String,
        /// The other one.
        b: String,
    },
    /// Labels by truncation against the position.
    TruncationAndPosition,
    /// Important tokens, by the published division.
    ImportantShare,
    /// Answers that are the same when nothing is occluded.
    Controls,
    /// Decided by arithmetic, under this name.
    Arithmetic {
        /// Name of the calculation.
        name: String,
    },
    /// No run of this toolkit measures it.
    Missing {
        /// What it would take.
        why: String,
    },
}

impl Figure {
    /// The figures that a run has of it.
    pub fn parts(&self, run: &Run) -> Vec<Part> {
        match self {
            Self::Runs { a, b, count, effect } => policies::difference(run, a, b, *count, *effect),
            Self::Time { fast, slow } => policies::time_ratio(run, fast, slow),
            Self::Overhead { policy } => policies::overhead(run, policy),
            Self::Rho { ranked, layers } => ranks::rho(run, ranked, *layers),
            Self::Strength { a, b, layers } => ranks::difference(run, a, b, *layers),
            Self::GivenSurprisal => ranks::given_surprisal(run),
            Self::Trend => ranks::trend(run),
            Self::Agreement { a, b } => ranks::agreement(run, a, b),
            Self::TruncationAndPosition => labels::truncation_and_position(run),
            Self::ImportantShare => labels::important_share(run),
            Self::Controls => labels::controls(run),
            Self::Arithmetic { .. } | Self::Missing { .. } => Vec::new(),
        }
    }

    /// What is estimated, in words.
    pub fn words(&self) -> String {
        let any = |policy: &str| if policy == "*" { "each other policy".to_owned() } else { policy.to_owned() };
        match self {
            Self::Runs { a, b, count, effect } => format!(
                "share of {} of {} less that of {}, by problem; {}",
                count.words(),
                any(a),
                any(b),
                effect.words()
            ),
            Self::Time { fast, slow } => format!(
                "decoding seconds a generated token of {} over those of {}, geometric mean over problems",
                any(slow),
                any(fast)
            ),
            Self::Overhead { policy } => {
                format!("share of the decoding time in which {policy} scores, chooses and frees, mean over problems")
            }
            Self::Rho { ranked, layers } => {
                format!("rho within traces of {}, {}, mean over problems", ranked.words(), layers.words())
            }
            Self::Strength { a, b, layers } => format!(
                "|Fisher z| within traces of {} less that of {}, {}, mean over problems",
                a.words(),
                b.words(),
                if a.signal == "*" { "at each layer that both have" } else { layers.words() }
            ),
            Self::GivenSurprisal => {
                "rho within traces of hs_l2 over band B, mean64, with the surprisal held fixed".to_owned()
            }
            Self::Trend => "rho over problems of the slope of hs_l2 over the layers with the difficulty".to_owned(),
            Self::Agreement { a, b } => {
                format!("Spearman's rho of {a} and {b} over the tokens of a trace, mean over problems")
            }
            Self::TruncationAndPosition => "rho within traces of labels by truncation with the position".to_owned(),
            Self::ImportantShare => {
                "important tokens and prompt tokens over all tokens of a trace, mean over problems".to_owned()
            }
            Self::Controls => "share of answers that come back when nothing is occluded, by problem".to_owned(),
            Self::Arithmetic { .. } => "arithmetic".to_owned(),
            Self::Missing { why } => format!("not measured by this toolkit: {why}"),
        }
    }
}
