//! Prompts cut by presses of NVIDIA's kvpress and then decoded greedily: scores, kept sets, tokens, margins, logits.
//!
//! A press keeps `max(1, floor(n (1 - ratio)))` of `n` prompt tokens for each layer and KV head. What is fed after it stands at
//! the next position of the sequence, or at the number of tokens kept where keys were rotated anew.

use std::path::Path;

use anyhow::{Context, Result};
use epikv_eviction::{Limits, Policy, PositionMode, Recency, Trigger};
use epikv_model::backend::DeviceName;
use epikv_model::decoder::Decoder;
use epikv_model::taps::ProbePlan;
use serde_json::{Value, json};

use crate::check::{Check, Outcome, lacking};
use crate::models::{LOGITS, by_logit};
use crate::policies::press;
use crate::read::{count, decoder, ids, json as read_json, list, members, number, numbers, word};
use crate::steps::Steps;

/// Runs `kvpress.json.gz` of a folder.
pub(crate) fn run(folder: &Path, device: DeviceName, outcome: &mut Outcome) -> Result<()> {
    let reference = read_json(&folder.join("kvpress.json.gz"))?;
    for (model, cases) in members(&reference["models"])? {
        let decoder = decoder(&folder.join("models").join(model), device)?;
        let prompt = ids(&cases["prompt_ids"])?;
        for (name, case) in members(&cases["presses"])? {
            for (ratio, run) in members(&case["ratios"])? {
                let place = format!("{model}, {name} at {ratio}");
                let cut = || Cut::new(&decoder, &prompt, case, ratio, run);
                outcome.case(format_args!("{place}, kept sets"), |check| cut()?.kept(check));
                outcome.case(format_args!("{place}, decoding"), |check| cut()?.decoding(check));
            }
        }
    }
    Ok(())
}

/// How far from the reference a score may be; `None` where the toolkit's is on another scale.
fn tolerance(policy: &Policy) -> Option<f64> {
    match policy.score.spec().name {
        "k-norm" => Some(2e-4),
        "key-diff" => Some(2e-5),
        "tova" | "snapkv" => Some(5e-6),
        "lag-kv" => Some(1e-6),
        _ => None,
    }
}

/// A prompt and a press.
struct Cut<'a> {
    decoder: &'a Decoder,
    prompt: &'a [u32],
    policy: Policy,
    /// The scores of the reference, by layer and head; `Null` where there are none.
    scores: &'a Value,
    ratio: f64,
    run: &'a Value,
}

impl<'a> Cut<'a> {
    fn new(decoder: &'a Decoder, prompt: &'a [u32], case: &'a Value, ratio: &str, run: &'a Value) -> Result<Self> {
        let policy = press(word(&case["press"])?, &case["params"])?;
        let scores = run.get("scores").or_else(|| case.get("scores")).unwrap_or(&Value::Null);
        let ratio = ratio.parse().with_context(|| format!("ratio {ratio}"))?;
        Ok(Self { decoder, prompt, policy, scores, ratio, run })
    }

    /// The generation under the press, before the prompt is fed.
    fn steps(&self) -> Result<Steps<'a>> {
        let n_kept = ids(&self.run["n_kept"])?;
        let budget = n_kept.first().copied().unwrap_or(0) as usize;
        if let Recency::Tokens(window) = self.policy.protect.recency
            && window > budget
        {
            return lacking(format!("a window of {window} tokens in a budget of {budget}"));
        }
        let limits = Limits::new(budget, self.prompt.len(), self.policy.protect)?;
        Steps::new(self.decoder, &self.policy, &limits, &ProbePlan::default())
    }

    fn kept(&self, check: &mut Check) -> Result<()> {
        let mut steps = self.steps()?;
        let n = self.prompt.len();
        let expected = ((n as f64 * (1.0 - self.ratio)) as usize).max(1);
        for (layer, n_kept) in list(&self.run["n_kept"])?.iter().enumerate() {
            check.equal(format_args!("layer {layer}, count of kept"), &count(n_kept)?, &expected);
        }
        steps.feed(self.prompt, true)?;
        let own = steps.evictor.score().scores(&steps.cache)?;
        steps.evict(self.prompt)?;
        let (n_layers, n_heads) = (self.decoder.config().n_layers, self.decoder.config().n_kv_heads);
        for (layer, head) in (0..n_layers).flat_map(|layer| (0..n_heads).map(move |head| (layer, head))) {
            let place = format!("layer {layer}, head {head}");
            let set = steps.cache.set_index(layer, head);
            let reference = self.scores_of(layer, head)?;
            let held = steps.held(set);
            if let Some(want) = &reference {
                self.scores_near(&place, &own[set], want, self.beyond(layer)?, &held, check);
            }
            if let (Some(want), Some(tolerance)) = (self.run.get("cut_margin"), tolerance(&self.policy)) {
                let margin = margin(&own[set][..n - self.protected()], &held);
                check.near(
                    format_args!("{place}, margin of the cut"),
                    margin,
                    number(&want[layer][head])?,
                    2.0 * tolerance,
                );
            }
            let want = ids(&self.run["kept"][layer][head])?;
            same_set(&place, &held, &want, reference.as_deref(), tolerance(&self.policy), check);
        }
        Ok(())
    }

    fn scores_near(&self, place: &str, own: &[f32], want: &[f64], beyond: f64, held: &[u32], check: &mut Check) {
        let n = own.len() - self.protected();
        for (pos, (got, want)) in own.iter().zip(want).enumerate() {
            let what = format_args!("{place}, score of {pos}");
            match tolerance(&self.policy) {
                // What is protected ranks above all.
                Some(tolerance) if pos >= n => check.near(what, beyond, *want, tolerance),
                Some(tolerance) => check.near(what, f64::from(*got), *want, tolerance),
                // By position alone: one for what stays.
                None => check.near(what, f64::from(u8::from(held.contains(&(pos as u32)))), *want, 0.0),
            }
        }
    }

    /// What a press gives the tokens that it protects: one more than the largest score of the layer.
    fn beyond(&self, layer: usize) -> Result<f64> {
        let mut largest = f64::NEG_INFINITY;
        for head in 0..self.decoder.config().n_kv_heads {
            let scores = self.scores_of(layer, head)?.unwrap_or_default();
            let own = scores.len() - self.protected().min(scores.len());
            largest = scores[..own].iter().copied().fold(largest, f64::max);
        }
        Ok(largest + 1.0)
    }

    /// Newest tokens that are kept whatever they score.
    fn protected(&self) -> usize {
        if let Recency::Tokens(tokens) = self.policy.protect.recency { tokens } else { 0 }
    }

    fn scores_of(&self, layer: usize, head: usize) -> Result<Option<Vec<f64>>> {
        if self.scores.is_null() { Ok(None) } else { numbers(&self.scores[layer][head]).map(Some) }
    }

    fn decoding(&self, check: &mut Check) -> Result<()> {
        let mut steps = self.steps()?;
        let decode = &self.run["decode"];
        let (margins, fed) = (list(&decode["margin"])?, ids(&decode["fed"])?);
        check.equal("count of margins", &margins.len(), &fed.len());
        let start = if self.policy.position == PositionMode::Compacted {
            count(&self.run["n_kept"][0])?
        } else {
            self.prompt.len()
        };
        check.equal("first position", &start, &count(&decode["position_start"])?);
        let mut next = self.prompt.to_vec();
        for (step, (want, margin)) in fed.into_iter().zip(margins).enumerate() {
            steps.feed(&next, step == 0)?;
            if step == 1 {
                after_first(&steps.logits, &decode["after_first"], check)?;
            }
            let (token, got) = steps.choice();
            check.equal(format_args!("step {step}, token"), &token, &want);
            check.near(format_args!("step {step}, margin"), got, number(margin)?, LOGITS);
            steps.evict(&next)?;
            next = vec![want];
        }
        Ok(())
    }
}

/// Logits after the first token that was fed once the prompt had been cut.
fn after_first(logits: &[f32], want: &Value, check: &mut Check) -> Result<()> {
    let begin = numbers(&want["first16"])?;
    check.all_near("first logits", &logits[..begin.len().min(logits.len())], &begin, LOGITS);
    let length = logits.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    check.near("length of the logits", length, number(&want["l2"])?, LOGITS);
    check.equal("arg-max of the logits", &by_logit(logits)[0], &count(&want["argmax"])?);
    Ok(())
}

/// How far the lowest score of what is held is above the highest of what is not.
pub(crate) fn margin(scores: &[f32], held: &[u32]) -> f64 {
    let (mut kept, mut lost) = (f64::INFINITY, f64::NEG_INFINITY);
    for (pos, &score) in scores.iter().enumerate() {
        if held.contains(&(pos as u32)) {
            kept = kept.min(f64::from(score));
        } else {
            lost = lost.max(f64::from(score));
        }
    }
    kept - lost
}

/// Compares kept sets: they may differ only in tokens whose reference scores lie within the tolerance of the cut.
pub(crate) fn same_set(
    place: &str,
    got: &[u32],
    want: &[u32],
    scores: Option<&[f64]>,
    tolerance: Option<f64>,
    check: &mut Check,
) {
    if let (Some(scores), Some(tolerance), true) = (scores, tolerance, got != want && got.len() == want.len()) {
        let score = |pos: &u32| scores.get(*pos as usize).copied().unwrap_or(f64::NAN);
        let cut = want.iter().map(score).fold(f64::INFINITY, f64::min);
        let only = |a: &[u32], b: &[u32]| a.iter().filter(|pos| !b.contains(pos)).copied().collect::<Vec<_>>();
        let apart = [only(got, want), only(want, got)].concat();
        if apart.iter().all(|pos| (score(pos) - cut).abs() <= tolerance) {
            return check.holds(format_args!("{place}, kept set"), true);
        }
    }
    check.equal(format_args!("{place}, kept set"), got, want);
}

/// Runs `kvpress_decode.json.gz` of a folder: a cut after every so many generated tokens.
pub(crate) fn run_decode(folder: &Path, device: DeviceName, outcome: &mut Outcome) -> Result<()> {
    let reference = read_json(&folder.join("kvpress_decode.json.gz"))?;
    let meta = &reference["meta"];
    let decoder = decoder(&folder.join(word(&meta["model"])?), device)?;
    for (name, run) in members(&reference["presses"])? {
        outcome.case(name, |check| decode_and_cut(&decoder, meta, name, run, check));
    }
    Ok(())
}

fn decode_and_cut(decoder: &Decoder, meta: &Value, name: &str, run: &Value, check: &mut Check) -> Result<()> {
    let class = match name {
        "knorm" => "KnormPress",
        "keydiff" => "KeyDiffPress",
        "tova" => "TOVAPress",
        other => return lacking(format!("{other} while decoding")),
    };
    let params = run.get("params").cloned().unwrap_or_else(|| json!({}));
    let trigger = Trigger::Every(count(&meta["compression_interval"])?);
    let policy = Policy { trigger, ..press(class, &params)? };
    let prompt = ids(&meta["prompt"])?;
    let target = count(&meta["target_size"])?;
    let limits = Limits::new(target, prompt.len(), policy.protect)?;
    let mut steps = Steps::new(decoder, &policy, &limits, &ProbePlan::default())?;
    steps.feed(&prompt, true)?;
    steps.evict(&prompt)?;
    for (t, step) in list(&run["steps"])?.iter().enumerate() {
        let (token, margin) = steps.choice();
        let want = u32::try_from(count(&step["token"])?)?;
        check.equal(format_args!("step {t}, token"), &token, &want);
        check.near(format_args!("step {t}, margin"), margin, number(&step["margin"])?, LOGITS);
        steps.feed(&[want], false)?;
        let (n_before, before) = (steps.cache.len(0), Before::of(&steps)?);
        steps.evict(&[want])?;
        check.equal(format_args!("step {t}, size"), &steps.cache.len(0), &count(&step["size_after"])?);
        for cut in list(&run["compressions"])? {
            if count(&cut["step"])? == t {
                check.equal(format_args!("step {t}, size before"), &n_before, &count(&cut["n_before"])?);
                kept_after(&steps, decoder, t, &cut["kept_slot_order"], check)?;
                if let (Some(margins), Some(tolerance)) = (cut.get("cut_margin"), tolerance(&policy)) {
                    before.margins(&steps, t, margins, 2.0 * tolerance, check)?;
                }
            }
        }
    }
    Ok(())
}

/// What each kept set held before an eviction, with the scores.
struct Before {
    held: Vec<Vec<u32>>,
    scores: Vec<Vec<f32>>,
}

impl Before {
    fn of(steps: &Steps<'_>) -> Result<Self> {
        let held = (0..steps.cache.sets().len()).map(|set| steps.held(set)).collect();
        Ok(Self { held, scores: steps.evictor.score().scores(&steps.cache)? })
    }

    /// Compares how far the lowest score that stayed was above the highest that did not.
    fn margins(&self, steps: &Steps<'_>, t: usize, want: &Value, tolerance: f64, check: &mut Check) -> Result<()> {
        for (layer, heads) in list(want)?.iter().enumerate() {
            for (head, want) in list(heads)?.iter().enumerate() {
                let set = steps.cache.set_index(layer, head);
                let stayed = steps.held(set);
                let places =
                    (0..self.held[set].len() as u32).filter(|place| stayed.contains(&self.held[set][*place as usize]));
                let got = margin(&self.scores[set], &places.collect::<Vec<_>>());
                let what = format_args!("step {t}, layer {layer}, head {head}, margin of the cut");
                check.near(what, got, number(want)?, tolerance);
            }
        }
        Ok(())
    }
}

fn kept_after(steps: &Steps<'_>, decoder: &Decoder, t: usize, kept: &Value, check: &mut Check) -> Result<()> {
    for layer in 0..decoder.config().n_layers {
        for head in 0..decoder.config().n_kv_heads {
            // Theirs are in the order of slots.
            let mut want = ids(&kept[layer][head])?;
            want.sort_unstable();
            let held = steps.held(steps.cache.set_index(layer, head));
            check.equal(format_args!("step {t}, layer {layer}, head {head}, kept set"), &held, &want);
        }
    }
    Ok(())
}
