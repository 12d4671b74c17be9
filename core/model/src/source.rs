//! Where weights come from: one small interface for folders, GGUF files and seeded random models.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::Tensor;

use crate::config::ModelConfig;
use crate::error::{Error, Result, TensorProblem};

/// A set of named tensors in Hugging Face naming and row order.
pub trait TensorSource: Sync {
    /// The folder or file, for errors.
    fn place(&self) -> &Path;

    /// Names and shapes of everything that is there, in any order.
    fn shapes(&self) -> Vec<(String, Vec<usize>)>;

    /// One tensor in the numbers in which it is stored (f32, bf16 or f16; f32 where those are packed in blocks), on the CPU,
    /// contiguous. Several threads may ask at once.
    fn load(&self, name: &str) -> Result<Tensor>;
}

/// Compares what is there with what the configuration needs and lists every difference at once.
pub fn check(source: &dyn TensorSource, config: &ModelConfig) -> Result<()> {
    let mut found: BTreeMap<String, Vec<usize>> = source.shapes().into_iter().collect();
    let mut problems = Vec::new();
    for (name, expected) in config.tensors() {
        match found.remove(&name) {
            None => problems.push(TensorProblem::Missing { name, expected }),
            Some(got) if got != expected => problems.push(TensorProblem::Shape { name, expected, got }),
            Some(_) => {}
        }
    }
    // Buffers that are recomputed, and the head of a tied model, are often stored too.
    found.retain(|name, _| {
        !(name.ends_with("rotary_emb.inv_freq") || (config.tie_word_embeddings && name == "lm_head.weight"))
    });
    problems.extend(found.into_iter().map(|(name, got)| TensorProblem::Unexpected { name, got }));
    if problems.is_empty() { Ok(()) } else { Err(Error::Tensors { path: source.place().to_owned(), problems }) }
}
