//! `epikv plan`: memory of weights, keys and values, activations and attention matrices on paper, and how many requests fit.

mod figures;
mod measure;
mod shape;

use std::io::Write;

use anyhow::{Result, bail};
use epikv_model::load::open;
use serde_json::{Value, json};

use self::measure::{Measured, measure};
use self::shape::{GIB, LLAMA_8B, Room, Shape, requests};
use crate::cli::PlanArgs;
use crate::output::Done;

/// Memory of a device at most: 2^20 GiB, more than any has.
const MOST_GIB: f64 = (1_u64 << 20) as f64;

/// Requests of so many slots on the card of the `EpiKV` paper: 80 GiB, nine tenths of it used, the shape of Llama 3.1 8B.
pub(crate) fn requests_of_the_paper(tokens: u64) -> Option<u64> {
    requests(LLAMA_8B, Room { bytes: 80.0 * GIB, share: 0.9 }, tokens, 2)
}

/// GiB of the attention maps of all layers of that model over a prompt, in 16 bits.
pub(crate) fn attention_gib_of_the_paper(tokens: u64) -> f64 {
    LLAMA_8B.attention_bytes(tokens, 2) as f64 / GIB
}

/// What is planned.
struct Plan {
    shape: Shape,
    room: Room,
    value_bytes: u64,
    tokens: Vec<u64>,
    batch: u64,
    measured: Vec<Measured>,
}

impl Plan {
    fn of(args: &PlanArgs) -> Result<Self> {
        let options = args.device.options()?;
        let (device_gib, share) = (args.device_gib, args.share);
        if !(share > 0.0 && share <= 1.0) {
            bail!("--share: expected a share above 0 and up to 1, got {share}");
        }
        if !(device_gib > 0.0 && device_gib <= MOST_GIB) {
            bail!("--device-gib: expected a size above 0 and up to {MOST_GIB}, got {device_gib:e}");
        }
        let value_bytes = u64::from(args.value_bytes);
        let run_bytes = options.dtype.bytes() as u64;
        if !args.measure.is_empty() && value_bytes != run_bytes {
            bail!("--measure: expected --value-bytes {run_bytes}, those of --dtype, got {value_bytes}");
        }
        let mut shape = match &args.model {
            Some(model) => Shape::of(&open(model)?.0, value_bytes),
            None => LLAMA_8B,
        };
        let mut measured = Vec::new();
        if let Some(model) = args.model.as_ref().filter(|_| !args.measure.is_empty()) {
            let (weight_bytes, all) = measure(model, &options, &args.measure)?;
            (shape.weight_bytes, measured) = (weight_bytes, all);
        }
        let room = Room { bytes: device_gib * GIB, share };
        Ok(Self { shape, room, value_bytes, tokens: args.tokens.clone(), batch: args.batch, measured })
    }

    fn kv_bytes_a_token(&self) -> u64 {
        self.shape.kv_bytes_a_token(self.value_bytes)
    }

    /// The formula of the requests, with its numbers.
    fn formula(&self) -> String {
        format!(
            "requests = floor(({} x {} GiB - {:.2} GiB) / (tokens x {} B)).",
            self.room.share,
            self.room.bytes / GIB,
            self.shape.weight_bytes as f64 / GIB,
            self.kv_bytes_a_token()
        )
    }

    /// The sizes that go in.
    fn figures(&self) -> String {
        let Shape { layers, heads, kv_heads, head_dim, .. } = self.shape;
        let bytes = self.value_bytes;
        format!("{layers} layers, {heads} heads, {kv_heads} KV heads of {head_dim}, {bytes} bytes a value.")
    }

    /// Weights, keys and values of all requests, and activations of a step of them.
    fn total_bytes(&self, tokens: u64) -> f64 {
        let kv = u128::from(self.batch) * u128::from(tokens * self.kv_bytes_a_token());
        let activations = self.shape.activation_bytes(self.batch, self.value_bytes);
        self.shape.weight_bytes as f64 + (kv + activations) as f64
    }

    fn json(&self) -> Value {
        let row = |tokens: &u64| {
            json!({
                "tokens": tokens,
                "kv_bytes": tokens * self.kv_bytes_a_token(),
                "requests": requests(self.shape, self.room, *tokens, self.value_bytes),
                "explicit_attention_bytes": self.shape.attention_bytes(*tokens, self.value_bytes) as f64,
                "prefill_activation_bytes": self.shape.activation_bytes(*tokens, self.value_bytes) as f64,
                "total_bytes": self.total_bytes(*tokens),
                "basis": "projected",
            })
        };
        let measured = |one: &Measured| {
            json!({
                "tokens": one.tokens,
                "kv_bytes": one.kv_bytes,
                "explicit_attention_bytes": one.attention_bytes,
                "basis": "measured",
            })
        };
        let rows: Vec<Value> = self.tokens.iter().map(row).chain(self.measured.iter().map(measured)).collect();
        json!({
            "weight_bytes": self.shape.weight_bytes,
            "kv_bytes_a_token": self.kv_bytes_a_token(),
            "batch": self.batch,
            "formula": self.formula(),
            "rows": rows,
        })
    }
}

/// Prints the plan.
pub(crate) fn run(args: &PlanArgs) -> Result<Done> {
    let plan = Plan::of(args)?;
    let mut out = crate::terminal::out();
    if let Some(folder) = &args.out {
        figures::write(&plan, args, folder)?;
    }
    if args.json {
        writeln!(out, "{}", plan.json())?;
        return Ok(Done::All);
    }
    let gib = |bytes: f64| bytes / GIB;
    let kv = plan.kv_bytes_a_token();
    writeln!(out, "weights {:.2} GiB; keys and values {kv} bytes a token", gib(plan.shape.weight_bytes as f64))?;
    writeln!(out, "{}   basis=projected\n", plan.formula().trim_end_matches('.'))?;
    let batch = plan.batch;
    writeln!(
        out,
        "| tokens held | KV of one, GiB | requests | {batch} at once with weights and activations, GiB | activations of a \
         prompt that long, GiB | attention of it, explicit, all layers, GiB |"
    )?;
    writeln!(out, "| ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for &tokens in &plan.tokens {
        let fit = requests(plan.shape, plan.room, tokens, plan.value_bytes).map_or("-".to_owned(), |n| n.to_string());
        let attention = gib(plan.shape.attention_bytes(tokens, plan.value_bytes) as f64);
        let activations = gib(plan.shape.activation_bytes(tokens, plan.value_bytes) as f64);
        let (one, total) = (gib((tokens * kv) as f64), gib(plan.total_bytes(tokens)));
        writeln!(out, "| {tokens} | {one:.3} | {fit} | {total:.2} | {activations:.2} | {attention:.2} |")?;
    }
    if !plan.measured.is_empty() {
        writeln!(
            out,
            "\n| tokens | KV, MiB | attention, explicit, all layers, MiB | projected, MiB |   basis=measured"
        )?;
        writeln!(out, "| ---: | ---: | ---: | ---: |")?;
    }
    let mib = |bytes: f64| 1024.0 * gib(bytes);
    for one in &plan.measured {
        let found = mib(one.attention_bytes as f64);
        let projected = mib(plan.shape.attention_bytes(one.tokens, plan.value_bytes) as f64);
        writeln!(out, "| {} | {:.2} | {found:.2} | {projected:.2} |", one.tokens, mib(one.kv_bytes as f64))?;
    }
    Ok(Done::All)
}
