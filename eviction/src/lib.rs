//! Which policy keeps the answer right at a budget?
//!
//! A [`Policy`] is a composition of small parts (what scores, what is protected, how the kept tokens are selected, when,
//! for whom, at which positions), and a row of [`POLICIES`] names one. [`Budget`] is what a user asks for and [`Limits`]
//! what it means for one prompt, checked before anything is decoded. [`decode()`] generates under a policy, evicting from
//! the cache after each step, and returns a [`Certificate`] of what was really held.
//!
//! Not here: the generation loop (`epikv_model::session`), how a cache frees slots, grading, files.
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
//! let limits = "prompt+6".parse::<Budget>()?.limits(lengths)?;
//! let decoded = decode(&decoder, find("window")?.policy, limits, &Generation::greedy(&prompt, 20))?;
//! assert_eq!(decoded.generated.len(), 20);
//! assert!(decoded.certificate.holds() && decoded.certificate.max_held == 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod certificate;
mod decode;
mod error;
mod evictor;
mod policy;
mod registry;
mod score;
mod select;

pub use budget::{Budget, Lengths, Limits};
pub use certificate::Certificate;
pub use decode::{Decoded, Generation, decode};
pub use error::{Error, Result};
pub use policy::{Policy, PositionMode, Protect, Select, Trigger};
pub use registry::{POLICIES, PolicyRow, find};
pub use score::Score;
