//! Which policy keeps the answer right at a budget?
//!
//! A [`Policy`] is a composition of small parts (what scores, what is protected, how the budget is divided among kept sets,
//! how the kept tokens are selected, when, what a step reads, for whom, at which positions, in which numbers), a row of [`POLICIES`] names one, and [`NamedPolicy`] reads one as it is typed. [`Budget`]
//! is what a user asks for and [`Limits`] what it means for one prompt, checked before anything is decoded. [`decode_all`]
//! generates under a policy, evicting from the caches after each step, and gives a [`Certificate`] of what was really
//! held. [`evict`] is the experiment: problems under policies and budgets, graded, with [`Summary`] and [`report`].
//!
//! [`Cells`] keeps what is finished, so that a run that was killed goes on.
//!
//! Not here: the generation loop (`epikv_model::session`), scores (`epikv_signals`), how a cache frees slots, the tables of
//! a finished run.
//!
//! ```
//! use epikv_eviction::{Budget, Generation, Lengths, decode, find};
//! use epikv_model::Device;
//! use epikv_model::decoder::Decoder;
//! use epikv_model::linear::WeightFormat;
//! use epikv_model::load::open;
//!
//! let (config, weights, _) = open(&"random:3,layers=2".parse()?)?;
//! let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32)?;
//!
//! let prompt = [7, 8, 9, 10, 11, 12];
//! let lengths = Lengths { n_prompt: prompt.len(), n_generated: None };
//! let policy = find("window")?.policy;
//! let limits = "prompt+6".parse::<Budget>()?.limits(lengths, policy.protect)?;
//! let decoded = decode(&decoder, &policy, limits, &Generation::greedy(&prompt, 20))?;
//! assert_eq!(decoded.generated.len(), 20);
//! assert!(decoded.certificate.holds() && decoded.certificate.max_held == 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analysis;
mod engine;
mod error;
mod experiment;
mod nearest;
mod policy;
pub mod replay;
pub mod report;

pub use epikv_signals::{Bands, Labels, OneLayer, ScoreRef as Score};

pub use analysis::comparison::{Heterogeneity, Paired, Stratum};
pub use analysis::cost::Cost;
pub use analysis::drift::Drift;
pub use analysis::group::{Group, Time};
pub use analysis::summary::{Comparisons, Summary};
pub use analysis::variance::Components;
pub use engine::certificate::Certificate;
pub use engine::choice::Choice;
pub use engine::decode::{Watch, decode, decode_all};
pub use engine::evictor::Evictor;
pub use engine::generation::{Decoded, Generation, Recorded, Series, Times};
pub use engine::recorder::Eviction;
pub use error::{DeclaredError, Error, LayersError, Result};
pub use experiment::cells::{Cells, Finished, Records};
pub use experiment::config::{Settings, parse_policies};
pub use experiment::declared::declare;
pub use experiment::labels::LabelSet;
pub use experiment::outcome::Outcome;
pub use experiment::runs::{Progress, Runs};
pub use experiment::{check, evict};
pub use nearest::nearest;
pub use policy::allocate::{ALLOCATORS, Allocator, Division, Sets};
pub use policy::budget::{Budget, Lengths, Match};
pub use policy::chosen_layers::ChosenLayers;
pub use policy::limits::Limits;
pub use policy::page::page;
pub use policy::parse::{NamedPolicy, PARTS};
pub use policy::read::{Held, READERS, Reader};
pub use policy::registry::{COMMON, FULL, POLICIES, PolicyRow, RANDOM, find};
pub use policy::trigger::{Step, TriggerState};
pub use policy::{
    Allocate, Amount, CacheNumbers, Policy, PositionMode, Protect, Read, Recency, Reserve, ReserveBy, Select, Trigger,
};
