//! Training of small Llama-shaped decoders on the CPU: the same function as [`epikv_model::decoder::Decoder`], with gradients.
//!
//! [`Trainer::step`] splits a batch into packed parts, runs each through `forward` on a thread of its own, sums the
//! gradients in the order of the parts and lets [`AdamW`] move the weights. Weights are one flat vector that
//! [`ParameterLayout`] cuts into matrices, so optimiser, checkpoint and gradient exchange know nothing of the model.
//!
//! Products are the tensor library's; what lies between them is fused into three operations with gradients of their own
//! (norm, causal attention with rotation, gate), since a tiny model otherwise spends its time in bookkeeping.
//! Set `RAYON_NUM_THREADS=1`: one thread a product, and threads over the parts of a batch.
//!
//! The same weights, examples and options give the same bits for any number of threads.

mod adamw;
mod attention;
mod checkpoint;
mod example;
mod export;
mod forward;
mod layout;
mod loss;
mod pointwise;
#[cfg(test)]
mod tests;
mod trainer;

pub use adamw::{AdamW, AdamWOptions};
pub use checkpoint::Checkpoint;
pub use example::Example;
pub use export::export_folder;
pub use layout::{Parameter, ParameterLayout};
pub use loss::Score;
pub use trainer::{StepReport, Trainer, TrainerOptions};
