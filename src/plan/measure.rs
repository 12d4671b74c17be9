//! Measures what a plan projects: runs the model over prompts of given lengths and counts its memory.

use anyhow::{Result, bail};
use epikv_model::backend::OpenOptions;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::load::{ModelRef, open};
use epikv_model::taps::{AttentionTap, ProbePlan};

/// Memory of one prompt, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) tokens: u64,
    /// Keys and values, counted on the cache.
    pub(super) kv_bytes: u64,
    /// All attention matrices while they exist, counted on what the pass gave.
    pub(super) attention_bytes: u64,
}

/// Runs the model over prompts of the given lengths.
pub(super) fn measure(model: &ModelRef, options: &OpenOptions, lengths: &[u64]) -> Result<(u64, Vec<Measured>)> {
    let (config, source, _) = open(model)?;
    let (longest, n_layers, vocab) = (config.max_positions as u64, config.n_layers, config.vocab_size as u32);
    if let Some(too_long) = lengths.iter().find(|n| **n > longest) {
        bail!("--measure {too_long}: expected at most {longest} tokens, the model's context");
    }
    let decoder = Decoder::open(config, &*source, options)?;
    let mut all = Vec::new();
    for &tokens in lengths {
        let n = tokens as usize;
        let mut cache = decoder.cache(Scope::Global, Capacity::Fixed(n))?;
        let ids = (0..tokens as u32).map(|i| i * 7 % vocab).collect();
        let plan = (0..n_layers).fold(ProbePlan::default(), |plan, layer| plan.attention(AttentionTap::Rows(layer, n)));
        let input = RowInput::next(&cache, ids, LogitsOf::None);
        let taps = decoder.forward(&[input], &mut [&mut cache], &plan)?.taps;
        let heads = (0..n_layers).flat_map(|layer| taps.attention(layer).unwrap_or_default()).flatten();
        let attention_bytes = heads.map(|head| size_of_val(head.last_rows.as_slice()) as u64).sum();
        all.push(Measured { tokens, kv_bytes: cache.bytes() as u64, attention_bytes });
    }
    Ok((decoder.bytes() as u64, all))
}
