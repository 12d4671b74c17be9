//! The forward pass: one config-driven decoder for Llama, Qwen2 and Qwen3.

use candle_core::{Device, Tensor};
use epikv_kernels::attention::AttentionShape;
use rayon::prelude::*;

use crate::angles::{Angles, LayerAngles};
use crate::attention::attention;
use crate::batch::RowInput;
use crate::cache::{Capacity, RowCache, Scope, Slot};
use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::linear::{Linear, WeightFormat};
use crate::ops::{columns, gated, kernels_apply, rms_norm, with_f32};
use crate::rope::Rope;
use crate::source::{TensorSource, check};
use crate::taps::{ProbePlan, TapPoint, Taps};

/// One transformer block.
#[derive(Debug)]
struct Block {
    input_norm: Tensor,
    /// q, k and v in one product.
    qkv: Linear,
    q_norm: Option<Tensor>,
    k_norm: Option<Tensor>,
    out: Linear,
    mlp_norm: Tensor,
    /// Gate and up in one product.
    gate_up: Linear,
    down: Linear,
}

epikv_words::words! {
    /// How attention is computed. On the CPU both give the same bits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum AttentionKernel {
        /// The kernel gives no attention weights.
        #[default]
        Fused = "fused",
        /// The kernel gives attention weights, tile by tile.
        ///
        /// The sums over queries are made at every layer, whether a plan asks for them or not: what scoring by attention
        /// costs. On other devices the weights are materialised anyway.
        Explicit = "explicit",
    }
}

/// A decoder with its weights.
#[derive(Debug)]
pub struct Decoder {
    config: ModelConfig,
    device: Device,
    embedding: Tensor,
    blocks: Vec<Block>,
    final_norm: Tensor,
    head: Linear,
    rope: Rope,
    kernel: AttentionKernel,
}

/// What a forward pass gives.
#[derive(Debug)]
pub struct StepOutput {
    /// `[sum of wanted logits, vocab]`, row after row; `None` where no row wants any.
    pub logits: Option<Tensor>,
    /// What the plan asked for.
    pub taps: Taps,
}

impl Decoder {
    /// Loads the weights of a configuration; every tensor that does not fit is listed in the error.
    pub fn load(config: ModelConfig, source: &dyn TensorSource, device: &Device, format: WeightFormat) -> Result<Self> {
        check(source, &config)?;
        let load = |name: &str| source.load(name);
        let vector = |name: &str| Ok::<_, Error>(load(name)?.to_device(device)?);
        let with_bias = |name: &str, bias: bool| -> Result<(Tensor, Option<Tensor>)> {
            let b = if bias { Some(load(&format!("{name}.bias"))?) } else { None };
            Ok((load(&format!("{name}.weight"))?, b))
        };
        let linear = |names: &[String], bias: bool| -> Result<Linear> {
            let parts = names.iter().map(|n| with_bias(n, bias)).collect::<Result<Vec<_>>>()?;
            Linear::new(&parts, device, format)
        };
        let blocks = (0..config.n_layers)
            .into_par_iter()
            .map(|layer| {
                let name = |part: &str| format!("model.layers.{layer}.{part}");
                let optional = |part: &str| if config.qk_norm { vector(&name(part)).map(Some) } else { Ok(None) };
                let qkv = ["q", "k", "v"].map(|p| name(&format!("self_attn.{p}_proj")));
                let gate_up = ["gate", "up"].map(|p| name(&format!("mlp.{p}_proj")));
                Ok(Block {
                    input_norm: vector(&name("input_layernorm.weight"))?,
                    qkv: linear(&qkv, config.qkv_bias)?,
                    q_norm: optional("self_attn.q_norm.weight")?,
                    k_norm: optional("self_attn.k_norm.weight")?,
                    out: linear(&[name("self_attn.o_proj")], config.out_bias)?,
                    mlp_norm: vector(&name("post_attention_layernorm.weight"))?,
                    gate_up: linear(&gate_up, config.mlp_bias)?,
                    down: linear(&[name("mlp.down_proj")], config.mlp_bias)?,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let embedding = load("model.embed_tokens.weight")?;
        let head = if config.tie_word_embeddings { embedding.clone() } else { load("lm_head.weight")? };
        if config.tie_word_embeddings && source.shapes().iter().any(|(name, _)| name == "lm_head.weight") {
            check_tied(source, &embedding)?;
        }
        Ok(Self {
            device: device.clone(),
            embedding: embedding.to_device(device)?,
            blocks,
            final_norm: vector("model.norm.weight")?,
            head: Linear::new(&[(head, None)], device, format)?,
            rope: Rope::new(&config),
            config,
            kernel: AttentionKernel::default(),
        })
    }

    /// The same with another attention kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: AttentionKernel) -> Self {
        Self { kernel, ..self }
    }

    /// Shape and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Where it runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of all weights as held.
    pub fn bytes(&self) -> usize {
        let linear = |b: &Block| b.qkv.bytes() + b.out.bytes() + b.gate_up.bytes() + b.down.bytes();
        4 * self.embedding.elem_count() + self.head.bytes() + self.blocks.iter().map(linear).sum::<usize>()
    }

    /// An empty cache for this model.
    pub fn cache(&self, scope: Scope, capacity: Capacity) -> Result<RowCache> {
        RowCache::new(&self.config, &self.device, scope, capacity)
    }

    /// Runs new tokens of several rows, appends their keys and values to the caches, and records what `plan` asks for.
    ///
    /// The bits of a row do not depend on the other rows (on the CPU).
    ///
    /// # Errors
    /// On a bad row, before any cache is changed; or when the tensor library fails.
    pub fn forward(&self, rows: &[RowInput], caches: &mut [&mut RowCache], plan: &ProbePlan) -> Result<StepOutput> {
        if rows.is_empty() || rows.len() != caches.len() {
            return Err(Error::Request {
                what: "batch",
                expected: "at least one row, and a cache for each".to_owned(),
                got: format!("{} rows, {} caches", rows.len(), caches.len()),
            });
        }
        let mut at = 0;
        for (row, cache) in rows.iter().zip(caches.iter()) {
            row.check(at, &self.config)?;
            cache.check_room(&row.positions())?;
            at += row.tokens.len();
        }
        for cache in caches.iter_mut() {
            self.renumber(cache)?;
        }
        let angles = Angles::new(&self.rope, &self.device, rows, caches, self.config.n_kv_heads)?;
        let slots = rows.iter().zip(caches.iter_mut()).map(|(row, cache)| cache.reserve(&row.positions()));
        let slots = slots.collect::<Result<Vec<_>>>()?;
        let lengths: Vec<usize> = rows.iter().map(|r| r.tokens.len()).collect();
        let mut taps = Taps::default();
        let wanted: Vec<u32> = rows
            .iter()
            .zip(offsets(&lengths))
            .flat_map(|(row, (first, n))| (first + n - row.n_logits()..first + n).map(|i| i as u32))
            .collect();
        // Where nothing is recorded the last layer goes on only with the tokens whose logits are wanted, the newest of each row:
        // of the others it has written keys and values, and nothing reads their output.
        let trims = plan.is_empty() && self.kernel == AttentionKernel::default() && self.device.is_cpu();
        let n_wanted: Vec<usize> = rows.iter().map(RowInput::n_logits).collect();

        let ids: Vec<u32> = rows.iter().flat_map(|r| r.tokens.iter().copied()).collect();
        let mut x = self.embedding.index_select(&Tensor::new(ids.as_slice(), &self.device)?, 0)?; // [T, d]
        taps.record(plan, TapPoint::Embed, &x, &lengths, caches)?;
        for (layer, block) in self.blocks.iter().enumerate() {
            let normed = rms_norm(&x, &block.input_norm, self.config.rms_norm_eps)?;
            let angles = angles.of_layer(layer)?;
            let (q, k, v) = self.project(block, &normed, &angles, |point, value| {
                if matches!(point(layer), TapPoint::KeyPreRope(_)) {
                    write_originals(layer, value, caches, &slots, &lengths)?;
                }
                taps.record(plan, point(layer), value, &lengths, caches)
            })?;
            write(layer, &k, &v, caches, &slots, &lengths)?;
            let (mut q, mut n_queries) = (q, &lengths);
            if trims && layer + 1 == self.blocks.len() {
                if wanted.is_empty() {
                    return Ok(StepOutput { logits: None, taps });
                }
                let wanted = Tensor::new(wanted.as_slice(), &self.device)?;
                (q, x, n_queries) = (q.index_select(&wanted, 0)?, x.index_select(&wanted, 0)?, &n_wanted);
            }
            let mut observe = plan.observe(layer);
            let is_asked = observe.any();
            observe.column_sum |= self.kernel == AttentionKernel::Explicit && kernels_apply(&q);
            let (mixed, seen) = attention(&q, n_queries, caches, layer, self.attention_shape(), &observe)?;
            if is_asked {
                taps.observed(layer, seen);
            }
            x = (x + block.out.forward(&mixed)?)?;
            let normed = rms_norm(&x, &block.mlp_norm, self.config.rms_norm_eps)?;
            x = (x + block.down.forward(&gated(&block.gate_up.forward(&normed)?)?)?)?;
            taps.record(plan, TapPoint::ResidPost(layer), &x, &lengths, caches)?;
        }
        let tapped = plan.points().any(|(p, _)| p == TapPoint::FinalNorm);
        if tapped || plan.needs_logits() {
            let normed = rms_norm(&x, &self.final_norm, self.config.rms_norm_eps)?;
            taps.record(plan, TapPoint::FinalNorm, &normed, &lengths, caches)?;
            if plan.needs_logits() {
                taps.record_logits(plan, &normed, &ids, &lengths, caches, |x| self.head.forward(x))?;
            }
        }
        if wanted.is_empty() {
            return Ok(StepOutput { logits: None, taps });
        }
        let last = if trims { x } else { x.index_select(&Tensor::new(wanted, &self.device)?, 0)? };
        let logits = self.head.forward(&rms_norm(&last, &self.final_norm, self.config.rms_norm_eps)?)?;
        Ok(StepOutput { logits: Some(logits), taps })
    }

    /// Rotates the keys of a cache anew by their places among the tokens held, where its rotation asks for that and
    /// evictions have changed the places. [`Decoder::forward`] does it too; a second call does nothing.
    ///
    /// # Errors
    /// If the tensor library fails.
    pub fn renumber(&self, cache: &mut RowCache) -> Result<()> {
        cache.renumber(&self.rope)
    }

    /// Queries, keys and values of the packed tokens, rotated where they should be.
    fn project(
        &self,
        block: &Block,
        x: &Tensor,
        angles: &LayerAngles,
        mut tap: impl FnMut(fn(usize) -> TapPoint, &Tensor) -> Result<()>,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let (h, h_kv, d) = (self.config.n_heads, self.config.n_kv_heads, self.config.head_dim);
        let t = x.dim(0)?;
        let all = block.qkv.forward(x)?; // [T, (H + 2 H_kv) D]
        let part = |first: usize, heads: usize| -> Result<Tensor> {
            Ok(columns(&all, first * d, heads * d)?.reshape((t, heads, d))?)
        };
        let normed = |x: Tensor, weight: &Option<Tensor>| match weight {
            Some(w) => rms_norm(&x, w, self.config.rms_norm_eps),
            None => Ok(x),
        };
        let q = normed(part(0, h)?, &block.q_norm)?;
        let k = normed(part(h, h_kv)?, &block.k_norm)?;
        let v = part(h + h_kv, h_kv)?;
        tap(TapPoint::KeyPreRope, &k)?;
        let (q, k) = (angles.rotate(&q)?, angles.rotate(&k)?);
        tap(TapPoint::QueryPostRope, &q)?;
        tap(TapPoint::KeyPostRope, &k)?;
        tap(TapPoint::Value, &v)?;
        Ok((q, k, v))
    }

    fn attention_shape(&self) -> AttentionShape {
        AttentionShape {
            n_heads: self.config.n_heads,
            n_kv_heads: self.config.n_kv_heads,
            head_dim: self.config.head_dim,
            scale: (1.0 / (self.config.head_dim as f64).sqrt()) as f32,
        }
    }
}

/// A tied model may store its head as well, but not another one: which of the two was trained is not ours to guess.
fn check_tied(source: &dyn TensorSource, embedding: &Tensor) -> Result<()> {
    let head = source.load("lm_head.weight")?;
    if head.dims() == embedding.dims() && with_f32(&head, |head| with_f32(embedding, |embedding| head == embedding))?? {
        return Ok(());
    }
    Err(Error::Config {
        path: source.place().to_owned(),
        field: "tie_word_embeddings".to_owned(),
        expected: "false, since lm_head.weight differs from the embedding".to_owned(),
        got: "true".to_owned(),
    })
}

/// Appends the packed keys and values of a layer to the cache of each row, in the slots reserved for them.
fn write(
    layer: usize,
    k: &Tensor,
    v: &Tensor,
    caches: &mut [&mut RowCache],
    slots: &[Vec<Vec<Slot>>],
    lengths: &[usize],
) -> Result<()> {
    let rows = caches.iter_mut().zip(slots).zip(offsets(lengths));
    if !kernels_apply(k) {
        for ((cache, slots), (first, n)) in rows {
            cache.write(layer, &k.narrow(0, first, n)?, &v.narrow(0, first, n)?, slots)?;
        }
        return Ok(());
    }
    with_f32(k, |k| {
        with_f32(v, |v| -> Result<()> {
            let width = k.len() / lengths.iter().sum::<usize>();
            for ((cache, slots), (first, n)) in rows {
                let own = first * width..(first + n) * width;
                cache.write_slices(layer, &k[own.clone()], &v[own], slots)?;
            }
            Ok(())
        })
    })??
}

/// Keeps the keys before rotation, `[sum T, H_kv, D]`, for the caches that rotate anew.
fn write_originals(
    layer: usize,
    k: &Tensor,
    caches: &mut [&mut RowCache],
    slots: &[Vec<Vec<Slot>>],
    lengths: &[usize],
) -> Result<()> {
    for ((cache, slots), (first, n)) in caches.iter_mut().zip(slots).zip(offsets(lengths)) {
        if cache.wants_originals() {
            cache.write_originals(layer, &k.narrow(0, first, n)?, slots)?;
        }
    }
    Ok(())
}

/// First token and number of tokens of each row.
fn offsets(lengths: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    lengths.iter().scan(0, |at, &n| {
        let first = *at;
        *at += n;
        Some((first, n))
    })
}
