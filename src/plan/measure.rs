//! What a plan projects, measured: the model is run over prompts of some lengths and its memory looked at.

use anyhow::{Result, bail};
use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::{ModelRef, open};
use epikv_model::taps::{AttentionTap, ProbePlan};

use crate::setup;

/// Memory of one prompt, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) tokens: u64,
    /// Keys and values, counted on the cache.
    pub(super) kv_bytes: u64,
    /// What the process holds more while all attention matrices exist than after; null where the system does not say.
    pub(super) attention_bytes: Option<u64>,
}

/// Runs the model over prompts of the given lengths.
pub(super) fn measure(model: &ModelRef, lengths: &[u64]) -> Result<(u64, Vec<Measured>)> {
    let (config, source, _) = open(model)?;
    let (longest, n_layers, vocab) = (config.max_positions as u64, config.n_layers, config.vocab_size as u32);
    if let Some(too_long) = lengths.iter().find(|n| **n > longest) {
        bail!("--measure {too_long}: expected at most {longest} tokens, the model's context");
    }
    let decoder = Decoder::load(config, &*source, &Device::Cpu, WeightFormat::F32)?;
    let mut all = Vec::new();
    for &tokens in lengths {
        let n = tokens as usize;
        let mut cache = decoder.cache(Scope::Global, Capacity::Fixed(n))?;
        let ids = (0..tokens as u32).map(|i| i * 7 % vocab).collect();
        let plan = (0..n_layers).fold(ProbePlan::default(), |plan, layer| plan.attention(AttentionTap::Rows(layer, n)));
        let input = RowInput::next(&cache, ids, LogitsOf::None);
        let output = decoder.forward(&[input], &mut [&mut cache], &plan)?;
        let with = setup::resident_bytes();
        drop(output);
        let without = setup::resident_bytes();
        let attention_bytes = with.zip(without).map(|(with, without)| with.saturating_sub(without));
        all.push(Measured { tokens, kv_bytes: cache.bytes() as u64, attention_bytes });
    }
    Ok((decoder.bytes() as u64, all))
}
