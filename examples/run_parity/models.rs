//! Models: configuration, tokenizer, and forward passes of Transformers with everything that they recorded.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use epikv_model::Tensor;
use epikv_model::backend::DeviceName;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::load::{ModelRef, open};
use epikv_model::taps::{AttentionTap, ProbePlan, Reduce, TapPoint, Taps};
use epikv_model::tokenizer::Tokenizer;
use serde_json::Value;

use crate::check::{Check, Outcome};
use crate::read::{count, decoder, ids, json, list, list_or_none, number, numbers};

/// Tolerances of the reference, several times the noise that its makers measured.
pub(crate) const LOGITS: f64 = 3e-4;
const RESIDUAL: f64 = 2e-4;
/// Of the length of a residual, absolute up to 10 and relative above.
const LENGTH: f64 = 1e-4;
const KEY: f64 = 2e-4;
const ATTENTION: f64 = 5e-5;

/// Runs `models/*/hf.json` of a folder.
pub(crate) fn run(folder: &Path, device: DeviceName, outcome: &mut Outcome) -> Result<()> {
    run_all(&folder.join("models"), device, outcome)
}

/// Runs every folder in one that has an `hf.json`.
pub(crate) fn run_all(models: &Path, device: DeviceName, outcome: &mut Outcome) -> Result<()> {
    let entries = fs::read_dir(models).with_context(|| format!("reading {}", models.display()))?;
    let mut folders = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    folders.sort();
    for folder in folders.iter().filter(|folder| folder.join("hf.json").exists()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        run_model(&name, folder, device, outcome);
    }
    Ok(())
}

fn run_model(name: &str, folder: &Path, device: DeviceName, outcome: &mut Outcome) {
    if folder.join("config.legacy.json").exists() {
        outcome.case(format_args!("{name}, configuration in the old style"), |check| legacy(folder, check));
    }
    if folder.join("tokenizer.json").exists() {
        outcome.case(format_args!("{name}, tokenizer"), |check| tokenizer(folder, check));
    }
    let opened = decoder(folder, device).and_then(|decoder| Ok((decoder, json(&folder.join("hf.json"))?)));
    let (decoder, reference) = match opened {
        Ok(opened) => opened,
        Err(error) => return outcome.case(name, |_| Err(error)),
    };
    for (at, sequence) in list_or_none(&reference, "sequences").iter().enumerate() {
        let place = format!("{name}, sequence {at}");
        let pass = match Pass::of(&decoder, sequence) {
            Ok(pass) => pass,
            Err(error) => return outcome.case(place, |_| Err(error)),
        };
        outcome.case(format_args!("{place}, logits"), |check| pass.logits(check));
        outcome.case(format_args!("{place}, residuals"), |check| pass.residuals(check));
        outcome.case(format_args!("{place}, keys and values"), |check| pass.keys_and_values(check));
        outcome.case(format_args!("{place}, attention"), |check| pass.attention(check));
        if sequence.get("greedy").is_some_and(Value::is_array) {
            outcome.case(format_args!("{place}, greedy tokens"), |check| greedy(&decoder, sequence, check));
        }
    }
}

/// Both styles of `config.json` mean the same model.
fn legacy(folder: &Path, check: &mut Check) -> Result<()> {
    let copy = tempfile::tempdir()?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            fs::copy(&path, copy.path().join(path.file_name().unwrap_or_default()))?;
        }
    }
    fs::copy(folder.join("config.legacy.json"), copy.path().join("config.json"))?;
    let (old, ..) = open(&ModelRef::Folder(copy.path().to_owned()))?;
    let (new, ..) = open(&ModelRef::Folder(folder.to_owned()))?;
    check.equal("configuration", &old, &new);
    Ok(())
}

/// A tokenizer that splits at spaces: `t7` is id 7.
fn tokenizer(folder: &Path, check: &mut Check) -> Result<()> {
    let tokenizer = Tokenizer::from_folder(folder)?;
    check.equal("ids", &tokenizer.encode("t7 t300 t12", false)?, &vec![7, 300, 12]);
    Ok(())
}

/// All that a tensor holds.
pub(crate) fn values(tensor: &Tensor) -> Result<Vec<f32>> {
    Ok(tensor.flatten_all()?.to_vec1()?)
}

/// The last token's part of a tap.
fn last(taps: &Taps, point: TapPoint) -> Result<Vec<f32>> {
    let tensor = taps.get(point, Reduce::Full).context("not recorded")?;
    values(&tensor.narrow(0, tensor.dim(0)? - 1, 1)?)
}

/// Tokens by falling logit; of equal ones the first.
pub(crate) fn by_logit(logits: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    order
}

/// Everything that a reference sequence may have numbers for.
fn full_plan(n_layers: usize) -> ProbePlan {
    let plan = ProbePlan::default().tap(TapPoint::Embed, Reduce::Full).tap(TapPoint::FinalNorm, Reduce::Full);
    (0..n_layers).fold(plan, |plan, layer| {
        [
            TapPoint::ResidPost(layer),
            TapPoint::KeyPreRope(layer),
            TapPoint::KeyPostRope(layer),
            TapPoint::Value(layer),
            TapPoint::QueryPostRope(layer),
        ]
        .into_iter()
        .fold(plan, |plan, point| plan.tap(point, Reduce::Full))
        .tap(TapPoint::ResidPost(layer), Reduce::StepNorm)
        .attention(AttentionTap::Rows(layer, 1))
    })
}

/// A point of a layer.
type Point = fn(usize) -> TapPoint;

/// One pass over a whole sequence.
struct Pass<'a> {
    sequence: &'a Value,
    logits: Vec<f32>,
    vocabulary: usize,
    taps: Taps,
}

impl<'a> Pass<'a> {
    fn of(decoder: &Decoder, sequence: &'a Value) -> Result<Self> {
        let tokens = ids(&sequence["ids"])?;
        let wanted = list(&sequence["logits_positions"])?.len();
        let mut cache = decoder.cache(Scope::Global, Capacity::Growing)?;
        let row = RowInput::next(&cache, tokens, LogitsOf::LastN(wanted));
        let output = decoder.forward(&[row], &mut [&mut cache], &full_plan(decoder.config().n_layers))?;
        let logits = values(&output.logits.context("no logits")?)?;
        Ok(Self { sequence, logits, vocabulary: decoder.config().vocab_size, taps: output.taps })
    }

    fn logits(&self, check: &mut Check) -> Result<()> {
        let (sequence, n) = (self.sequence, ids(&self.sequence["ids"])?.len());
        let positions = ids(&sequence["logits_positions"])?;
        check.equal("positions", &positions, &((n - positions.len()) as u32..n as u32).collect());
        check.all_near("logits", &self.logits, &numbers(&sequence["logits"])?, LOGITS);
        for (row, want) in self.logits.chunks(self.vocabulary).zip(list_or_none(sequence, "argmax_last3")) {
            check.equal("arg-max", &by_logit(row)[0], &count(want)?);
        }
        if let Some(want) = sequence.get("n") {
            check.equal("length", &n, &count(want)?);
        }
        Ok(())
    }

    fn residuals(&self, check: &mut Check) -> Result<()> {
        let sequence = self.sequence;
        vector("embedding", &last(&self.taps, TapPoint::Embed)?, &sequence["embed"], check)?;
        vector("final norm", &last(&self.taps, TapPoint::FinalNorm)?, &sequence["final_norm"], check)?;
        for (layer, want) in list(&sequence["resid_post"])?.iter().enumerate() {
            if let Some(named) = want.get("layer") {
                check.equal("layer", &count(named)?, &layer);
            }
            vector(&format!("block {layer}"), &last(&self.taps, TapPoint::ResidPost(layer))?, want, check)?;
        }
        for want in list_or_none(sequence, "resid_step_l2") {
            let layer = count(&want["layer"])?;
            let steps = self.taps.step_norms(TapPoint::ResidPost(layer)).context("not recorded")?;
            check.holds("no step before the first token", steps[0].is_none());
            let got = steps.last().copied().flatten().context("no step")?;
            check.near(format_args!("step of block {layer}"), f64::from(got), number(&want["value"])?, RESIDUAL);
        }
        Ok(())
    }

    fn keys_and_values(&self, check: &mut Check) -> Result<()> {
        let named: [(&str, Point); 4] = [
            ("key_pre_rope_last", TapPoint::KeyPreRope),
            ("key_post_rope_last", TapPoint::KeyPostRope),
            ("value_last", TapPoint::Value),
            ("query_post_rope_last", TapPoint::QueryPostRope),
        ];
        for (name, point) in named {
            for (layer, want) in list_or_none(self.sequence, name).iter().enumerate() {
                let got = last(&self.taps, point(layer))?;
                check.all_near(format_args!("{name}, block {layer}"), &got, &numbers(want)?, KEY);
            }
        }
        Ok(())
    }

    /// Rows of the last token; some files hold those of the first layer only, without a list of layers around them.
    fn attention(&self, check: &mut Check) -> Result<()> {
        let rows = &self.sequence["attn_last_row"];
        let of_layers = if rows[0][0].is_array() { list(rows)? } else { std::slice::from_ref(rows) };
        for (layer, want) in of_layers.iter().enumerate() {
            let seen = &self.taps.attention(layer).context("not recorded")?[0];
            let got: Vec<f32> = seen.iter().flat_map(|head| head.last_rows.clone()).collect();
            check.all_near(format_args!("attention of block {layer}"), &got, &numbers(want)?, ATTENTION);
        }
        Ok(())
    }
}

/// Compares a vector with `values` or its beginning `first8`, and its length with `l2`.
fn vector(what: &str, got: &[f32], want: &Value, check: &mut Check) -> Result<()> {
    let begin = numbers(want.get("values").unwrap_or(&want["first8"]))?;
    check.all_near(what, &got[..got.len().min(begin.len())], &begin, RESIDUAL);
    let length = got.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let want = number(&want["l2"])?;
    check.near(format_args!("length of {what}"), length, want, LENGTH * (want / 10.0).max(1.0));
    Ok(())
}

/// Tokens chosen one after another, end of sequence or not.
fn greedy(decoder: &Decoder, sequence: &Value, check: &mut Check) -> Result<()> {
    let mut cache = decoder.cache(Scope::Global, Capacity::Growing)?;
    let mut tokens = ids(&sequence["ids"])?;
    let (margins, next) = (list_or_none(sequence, "greedy_margin"), list_or_none(sequence, "greedy_runner_up"));
    let mut logits = Vec::new();
    for (step, want) in ids(&sequence["greedy"])?.into_iter().enumerate() {
        let row = RowInput::next(&cache, tokens, LogitsOf::Last);
        let output = decoder.forward(&[row], &mut [&mut cache], &ProbePlan::default())?;
        logits = values(&output.logits.context("no logits")?)?;
        let order = by_logit(&logits);
        check.equal(format_args!("token {step}"), &(order[0] as u32), &want);
        if let Some(margin) = margins.get(step) {
            let got = f64::from(logits[order[0]] - logits[order[1]]);
            check.near(format_args!("margin {step}"), got, number(margin)?, LOGITS);
        }
        if let Some(next) = next.get(step) {
            // The next two may be closer than the noise.
            let below = logits.get(count(next)?).map_or(f32::INFINITY, |logit| logits[order[1]] - logit);
            check.holds(format_args!("token {next} second at step {step}"), f64::from(below).abs() <= LOGITS);
        }
        // The recorded token, so that one difference is one failure.
        tokens = vec![want];
    }
    if let Some(want) = sequence.get("greedy_last_logits") {
        check.all_near("last logits", &logits, &numbers(want)?, LOGITS);
    }
    Ok(())
}
