//! The forward pass: one config-driven decoder for Llama, Qwen2 and Qwen3.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use epikv_kernels::attention::AttentionShape;
use rayon::prelude::*;

use crate::angles::{Angles, LayerAngles};
pub use crate::backend::AttentionKernel;
use crate::backend::operations::{Appended, Attention, Backend};
use crate::backend::{self, DeviceName, OpenOptions};
use crate::batch::{RowInput, offsets};
use crate::cache::{Capacity, Part, RowCache, Scope};
use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::linear::{Linear, WeightFormat};
use crate::plan::StepPlan;
use crate::rope::Rope;
use crate::source::{TensorSource, check};
use crate::taps::{TapPoint, Taps, logit_taps};

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

/// A decoder with its weights.
#[derive(Debug)]
pub struct Decoder {
    config: ModelConfig,
    backend: Arc<dyn Backend>,
    /// `[vocab, d]`.
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
    /// Keys that the newest token of each row attended to, summed over layers and KV heads.
    pub n_read: Vec<u64>,
}

impl Decoder {
    /// Loads the weights of a configuration onto a device of the tensor library, in f32; every tensor that does not fit is
    /// listed in the error.
    pub fn load(config: ModelConfig, source: &dyn TensorSource, device: &Device, format: WeightFormat) -> Result<Self> {
        Self::on(backend::of_device(device), config, source, format)
    }

    /// Loads the weights of a configuration as the options say; every tensor that does not fit is listed in the error.
    pub fn open(config: ModelConfig, source: &dyn TensorSource, options: &OpenOptions) -> Result<Self> {
        Ok(Self::on(backend::open(options)?, config, source, options.weights)?.with_kernel(options.kernel))
    }

    /// Each tensor goes to the device as soon as it is read, so that the host holds one at a time (one a thread where
    /// layers are loaded together).
    fn on(
        backend: Arc<dyn Backend>,
        config: ModelConfig,
        source: &dyn TensorSource,
        format: WeightFormat,
    ) -> Result<Self> {
        check(source, &config)?;
        let load = |name: &str| backend.place(&source.load(name)?);
        let with_bias = |name: &str, bias: bool| -> Result<(Tensor, Option<Tensor>)> {
            let b = if bias { Some(load(&format!("{name}.bias"))?) } else { None };
            Ok((load(&format!("{name}.weight"))?, b))
        };
        let linear = |names: &[String], bias: bool| -> Result<Linear> {
            let parts = names.iter().map(|n| with_bias(n, bias)).collect::<Result<Vec<_>>>()?;
            backend.linear(&parts, format)
        };
        let block = |layer: usize| -> Result<Block> {
            let name = |part: &str| format!("model.layers.{layer}.{part}");
            let optional = |part: &str| if config.qk_norm { load(&name(part)).map(Some) } else { Ok(None) };
            let qkv = ["q", "k", "v"].map(|p| name(&format!("self_attn.{p}_proj")));
            let gate_up = ["gate", "up"].map(|p| name(&format!("mlp.{p}_proj")));
            Ok(Block {
                input_norm: load(&name("input_layernorm.weight"))?,
                qkv: linear(&qkv, config.qkv_bias)?,
                q_norm: optional("self_attn.q_norm.weight")?,
                k_norm: optional("self_attn.k_norm.weight")?,
                out: linear(&[name("self_attn.o_proj")], config.out_bias)?,
                mlp_norm: load(&name("post_attention_layernorm.weight"))?,
                gate_up: linear(&gate_up, config.mlp_bias)?,
                down: linear(&[name("mlp.down_proj")], config.mlp_bias)?,
            })
        };
        let blocks = if backend.facts().takes_threads {
            (0..config.n_layers).into_par_iter().map(block).collect::<Result<Vec<_>>>()?
        } else {
            (0..config.n_layers).map(block).collect::<Result<Vec<_>>>()?
        };
        if config.tie_word_embeddings && source.shapes().iter().any(|(name, _)| name == "lm_head.weight") {
            check_tied(source)?;
        }
        let embedding = load("model.embed_tokens.weight")?;
        let head = if config.tie_word_embeddings { embedding.clone() } else { load("lm_head.weight")? };
        Ok(Self {
            embedding,
            blocks,
            final_norm: load("model.norm.weight")?,
            head: backend.linear(&[(head, None)], format)?,
            rope: Rope::new(&config),
            config,
            kernel: AttentionKernel::default(),
            backend,
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

    /// Where its tensors lie.
    pub fn device(&self) -> &Device {
        &self.backend.facts().device
    }

    /// The device by its name.
    pub fn device_name(&self) -> DeviceName {
        self.backend.facts().name
    }

    /// What it runs on.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Bytes that were copied from the device to the host so far; none on the CPU.
    pub fn bytes_to_host(&self) -> u64 {
        self.backend.bytes_to_host()
    }

    /// Bytes of all weights as held.
    pub fn bytes(&self) -> usize {
        let linear = |b: &Block| b.qkv.bytes() + b.out.bytes() + b.gate_up.bytes() + b.down.bytes();
        let embedding = self.embedding.elem_count() * self.embedding.dtype().size_in_bytes();
        embedding + self.head.bytes() + self.blocks.iter().map(linear).sum::<usize>()
    }

    /// An empty cache for this model.
    pub fn cache(&self, scope: Scope, capacity: Capacity) -> Result<RowCache> {
        RowCache::at(self.backend.place_of_caches(), &self.config, scope, capacity)
    }

    /// Runs new tokens of several rows, appends their keys and values to the caches, and records what `plan` asks for. Each
    /// row attends to everything that its cache holds, or to what its [`ReadPlan`](crate::plan::ReadPlan) says.
    ///
    /// The bits of a row do not depend on the other rows (on the CPU).
    ///
    /// # Errors
    /// On a bad row or read plan, before any cache is changed; or when the tensor library fails.
    pub fn forward<'p>(
        &self,
        rows: &[RowInput],
        caches: &mut [&mut RowCache],
        plan: impl Into<StepPlan<'p>>,
    ) -> Result<StepOutput> {
        self.pass(rows, caches, plan.into())
    }

    fn pass(&self, rows: &[RowInput], caches: &mut [&mut RowCache], plan: StepPlan<'_>) -> Result<StepOutput> {
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
        let mut reads = plan.reads(caches)?;
        let plan = plan.probe;
        for cache in caches.iter_mut() {
            self.renumber(cache)?;
        }
        let angles = Angles::new(&self.rope, &*self.backend, rows, caches, self.config.n_kv_heads)?;
        let slots = rows.iter().zip(caches.iter_mut()).map(|(row, cache)| cache.reserve(&row.positions()));
        let slots = slots.collect::<Result<Vec<_>>>()?;
        reads.append(caches, &slots);
        let n_read = reads.n_read(caches);
        let lengths: Vec<usize> = rows.iter().map(|r| r.tokens.len()).collect();
        let appended = Appended { lengths: &lengths, slots: &slots };
        let backend = &self.backend;
        let mut taps = Taps::default();
        let wanted: Vec<u32> = rows
            .iter()
            .zip(offsets(&lengths))
            .flat_map(|(row, (first, n))| (first + n - row.n_logits()..first + n).map(|i| i as u32))
            .collect();
        // Where nothing is recorded the last layer goes on only with the tokens whose logits are wanted, the newest of each row:
        // of the others it has written keys and values, and nothing reads their output.
        let trims = plan.is_empty() && self.kernel == AttentionKernel::default();
        let n_wanted: Vec<usize> = rows.iter().map(RowInput::n_logits).collect();

        let ids: Vec<u32> = rows.iter().flat_map(|r| r.tokens.iter().copied()).collect();
        let mut x = backend.rows(&self.embedding, &ids)?.to_dtype(DType::F32)?; // [T, d]
        taps.record(backend, plan, TapPoint::Embed, &x, &lengths, caches)?;
        for (layer, block) in self.blocks.iter().enumerate() {
            let normed = backend.norm(&x, &block.input_norm, self.config.rms_norm_eps)?;
            let angles = angles.of_layer(layer)?;
            let (q, k, v) = self.project(block, &normed, &angles, |point, value| {
                let are_kept = caches.iter().any(|cache| cache.wants_originals());
                if are_kept && matches!(point(layer), TapPoint::KeyPreRope(_)) {
                    backend.write(Part::Originals, layer, value, caches, appended)?;
                }
                taps.record(backend, plan, point(layer), value, &lengths, caches)
            })?;
            backend.write(Part::Keys, layer, &k, caches, appended)?;
            backend.write(Part::Values, layer, &v, caches, appended)?;
            let (mut q, mut n_queries) = (q, &lengths);
            if trims && layer + 1 == self.blocks.len() {
                if wanted.is_empty() {
                    return Ok(StepOutput { logits: None, taps, n_read });
                }
                (q, x, n_queries) = (backend.rows(&q, &wanted)?, backend.rows(&x, &wanted)?, &n_wanted);
            }
            let observe = plan.observe(layer);
            let is_explicit = self.kernel == AttentionKernel::Explicit;
            let shape = self.attention_shape();
            let asked = Attention { layer, rows: n_queries, reads: &reads, shape, observe: &observe, is_explicit };
            let (mixed, seen) = backend.attend(&q, caches, &asked)?;
            if observe.any() {
                taps.observed(layer, seen);
            }
            x = (x + block.out.forward_f32(&mixed)?)?;
            let normed = backend.norm(&x, &block.mlp_norm, self.config.rms_norm_eps)?;
            x = (x + block.down.forward_f32(&backend.gated(&block.gate_up.forward(&normed)?)?)?)?;
            taps.record(backend, plan, TapPoint::ResidPost(layer), &x, &lengths, caches)?;
        }
        let tapped = plan.points().any(|(p, _)| p == TapPoint::FinalNorm);
        if tapped || plan.needs_logits() {
            let normed = backend.norm(&x, &self.final_norm, self.config.rms_norm_eps)?;
            taps.record(backend, plan, TapPoint::FinalNorm, &normed, &lengths, caches)?;
            if plan.needs_logits() {
                let wanted = plan.logit_taps();
                taps.record_logits(logit_taps(&**backend, &wanted, &normed, &ids, &lengths, caches, &self.head)?);
            }
        }
        if wanted.is_empty() {
            return Ok(StepOutput { logits: None, taps, n_read });
        }
        let last = if trims { x } else { backend.rows(&x, &wanted)? };
        let logits = self.head.forward_f32(&backend.norm(&last, &self.final_norm, self.config.rms_norm_eps)?)?;
        Ok(StepOutput { logits: Some(logits), taps, n_read })
    }

    /// Rotates the keys of a cache again by their places among the tokens held, where its rotation asks for that and
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
            Ok(self.backend.columns(&all, first * d, heads * d)?.reshape((t, heads, d))?)
        };
        let normed = |x: Tensor, weight: &Option<Tensor>| match weight {
            Some(w) => self.backend.norm(&x, w, self.config.rms_norm_eps),
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
fn check_tied(source: &dyn TensorSource) -> Result<()> {
    let (head, embedding) = (source.load("lm_head.weight")?, source.load("model.embed_tokens.weight")?);
    let numbers = |x: &Tensor| x.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>();
    if head.dims() == embedding.dims() && numbers(&head)? == numbers(&embedding)? {
        return Ok(());
    }
    Err(Error::Config {
        path: source.place().to_owned(),
        field: "tie_word_embeddings".to_owned(),
        expected: "false, since lm_head.weight differs from the embedding".to_owned(),
        got: "true".to_owned(),
    })
}
