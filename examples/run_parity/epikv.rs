//! The decode loops of the `EpiKV` authors' policy classes, step by step: tokens, margins, signals, scores, evictions.
//!
//! A step feeds the arg-max token, lets the class score and evict, and takes the next token from the step's logits.

use std::path::Path;

use anyhow::{Context, Result};
use epikv_eviction::{Limits, Policy, PositionMode};
use epikv_model::backend::DeviceName;
use epikv_model::cache::Pos;
use epikv_model::decoder::Decoder;
use epikv_model::taps::{LogitTap, ProbePlan, Reduce, TapPoint, Taps};
use epikv_stats::RollingSpec;
use epikv_stats::rolling::rolling;
use serde_json::Value;

use crate::check::{Check, Outcome, lacking};
use crate::kvpress::margin;
use crate::models::LOGITS;
use crate::policies::authors;
use crate::read::{count, decoder, ids, json, list, list_or_none, number, numbers, word};
use crate::steps::Steps;

/// Tolerances of frozen scores.
const HIDDEN_SCORE: f64 = 1e-4;
const KEY_SCORE: f64 = 1e-5;
/// The reference gives 5e-6 for a probability; a sum of up to 160 of them carries a little more.
const ATTENTION_SUM: f64 = 1e-5;
const RESIDUAL_STEP: f64 = 1e-4;
/// Of a variance or a range of keys and values, which lie near 5.
const SPREAD: f64 = 1e-4;
/// Of a z-score in f32.
const Z: f64 = 1e-5;

/// A point of a layer.
type Point = fn(usize) -> TapPoint;

/// Runs `epikv.json.gz` of a folder.
pub(crate) fn run(folder: &Path, device: DeviceName, outcome: &mut Outcome) -> Result<()> {
    let reference = json(&folder.join("epikv.json.gz"))?;
    let decoder = decoder(&folder.join(word(&reference["meta"]["model"])?), device)?;
    let prompt = ids(&reference["meta"]["prompt"])?;
    for (at, run) in list_or_none(&reference, "runs").iter().enumerate() {
        let (policy, position) = (word(&run["policy"])?, word(&run["position_mode"])?);
        outcome.case(format_args!("run {at}: {policy} {position}"), |check| {
            let policy = authors(run)?;
            if policy.score.spec().name == "raas" {
                follow(&decoder, &prompt, &policy, run, check)
            } else {
                replay(&decoder, &prompt, &policy, run, check)
            }
        });
    }
    for unit in list_or_none(&reference["units"], "rolling_z_score") {
        let (name, window) = (word(&unit["name"])?, count(&unit["window"])?);
        outcome.case(format_args!("z-score of {name}, window {window}"), |check| z_score(unit, window, check));
    }
    for unit in list_or_none(&reference["units"], "thinkv_kde") {
        outcome.case(format_args!("KDE of {}", word(&unit["name"])?), |_| lacking("cuts of a density estimate"));
    }
    Ok(())
}

fn z_score(unit: &Value, window: usize, check: &mut Check) -> Result<()> {
    let points = rolling(&numbers(&unit["series"])?, RollingSpec::new(window)?);
    let z: Vec<f32> = points.into_iter().map(|point| point.map_or(f32::NAN, |point| point.z as f32)).collect();
    check.all_near("z", &z, &numbers(&unit["z"])?, Z);
    Ok(())
}

fn limits(policy: &Policy, run: &Value, n_prompt: usize) -> Result<Limits> {
    match &run["K"] {
        Value::Null => Ok(Limits::unlimited(n_prompt)),
        budget => Ok(Limits::new(count(budget)?, n_prompt, policy.protect)?),
    }
}

/// All that a step may have numbers for.
fn plan(n_layers: usize) -> ProbePlan {
    (0..n_layers).fold(ProbePlan::default().logits(LogitTap::Surprisal), |plan, layer| {
        plan.tap(TapPoint::ResidPost(layer), Reduce::StepNorm)
            .tap(TapPoint::KeyPostRope(layer), Reduce::Variance)
            .tap(TapPoint::Value(layer), Reduce::Variance)
            .tap(TapPoint::Value(layer), Reduce::Range)
    })
}

fn replay(decoder: &Decoder, prompt: &[u32], policy: &Policy, run: &Value, check: &mut Check) -> Result<()> {
    let n_layers = decoder.config().n_layers;
    let limits = limits(policy, run, prompt.len())?;
    let mut steps = Steps::new(decoder, policy, &limits, &plan(n_layers))?;
    steps.feed(prompt, true)?;
    steps.evict(prompt)?;
    let tolerance = if policy.score.spec().name == "kv-key" { KEY_SCORE } else { HIDDEN_SCORE };
    let (mut least_cut, mut least_margin) = (f64::INFINITY, f64::INFINITY);
    for (t, step) in list(&run["steps"])?.iter().enumerate() {
        let (token, margin_of_token) = steps.choice();
        check.equal(format_args!("step {t}, token"), &Value::from(token), &step["token"]);
        check.near(format_args!("step {t}, margin"), margin_of_token, number(&step["margin"])?, LOGITS);
        if let Some(want) = step.get("rope_position").filter(|_| policy.position == PositionMode::Rewound) {
            check.equal(format_args!("step {t}, position of rotation"), &steps.cache.len(0), &count(want)?);
        }
        let token = u32::try_from(count(&step["token"])?)?;
        let before = steps.held(0);
        let taps = steps.feed(&[token], false)?;
        signals(&taps, step, run, n_layers, t, check)?;
        let (scores, fed) = (steps.evictor.score().scores(&steps.cache)?, steps.held(0));
        steps.evict(&[token])?;
        let held = steps.held(0);
        if let [want] = list_or_none(step, "cut_margin") {
            let stayed: Vec<u32> = (0..fed.len() as u32).filter(|place| held.contains(&fed[*place as usize])).collect();
            let candidates = limits.n_first()..fed.len() - limits.recency();
            let range: Vec<u32> =
                stayed.iter().filter_map(|place| place.checked_sub(limits.n_first() as u32)).collect();
            let got = margin(&scores[0][candidates], &range);
            check.near(format_args!("step {t}, margin of the cut"), got, number(want)?, 2.0 * tolerance);
            least_cut = least_cut.min(got);
        }
        least_margin = least_margin.min(margin_of_token);
        let mut dropped: Vec<u32> = before.iter().filter(|pos| !held.contains(pos)).copied().collect();
        let newest = Pos((prompt.len() + t) as u32);
        dropped.extend((!held.contains(&newest.0)).then_some(newest.0));
        let want = step.get("dropped").map_or(Ok(Vec::new()), ids)?;
        check.equal(format_args!("step {t}, dropped"), &dropped, &want);
        if let Some(size) = step.get("size") {
            check.equal(format_args!("step {t}, size"), &held.len(), &count(size)?);
        }
        if let (Some(score), Some(frozen)) = (step.get("score"), steps.evictor.score().frozen()) {
            let got = f64::from(frozen.at(0, newest));
            check.near(format_args!("step {t}, score"), got, number(score)?, tolerance);
        }
        checkpoints(&steps, run, t, &fed, tolerance, check)?;
    }
    let least = [("min_cut_margin", least_cut, 2.0 * tolerance), ("min_token_margin", least_margin, LOGITS)];
    for (name, got, tolerance) in least {
        if let Some(want) = run.get(name).filter(|want| !want.is_null()) {
            check.near(name, got, number(want)?, tolerance);
        }
    }
    if let Some(size) = run["config"].get("cache_size") {
        check.equal("budget", &limits.tokens(), &count(size)?);
    }
    ends(&steps, run, check)
}

/// The recorded signals of a step's token, where the run has them.
fn signals(taps: &Taps, step: &Value, run: &Value, n_layers: usize, t: usize, check: &mut Check) -> Result<()> {
    let moved = |layer: usize| -> Result<f64> {
        let norms = taps.step_norms(TapPoint::ResidPost(layer)).context("not recorded")?;
        Ok(f64::from(norms[0].context("no predecessor")?))
    };
    for (layer, want) in list_or_none(step, "resid_step_l2").iter().enumerate() {
        check.near(format_args!("step {t}, step of block {layer}"), moved(layer)?, number(want)?, RESIDUAL_STEP);
    }
    for (name, layer) in [("diff_a", "band_a_layer"), ("diff_b", "band_b_layer")] {
        if let (Some(want), Some(layer)) = (step.get(name), run["params"].get(layer)) {
            check.near(format_args!("step {t}, {name}"), moved(count(layer)?)?, number(want)?, RESIDUAL_STEP);
        }
    }
    if let Some(want) = step.get("surprise") {
        let got = taps.logits(LogitTap::Surprisal).and_then(|all| all[0]).context("not recorded")?;
        check.near(format_args!("step {t}, surprisal"), f64::from(got), number(want)?, LOGITS);
    }
    let mean = |point, reduce| -> Result<f64> {
        let of = |v: &[f32]| v.iter().map(|&x| f64::from(x)).sum::<f64>() / v.len() as f64;
        taps.values(point, reduce, of)?.context("not recorded")
    };
    let named: [(&str, Point, Reduce); 3] = [
        ("key_var", TapPoint::KeyPostRope, Reduce::Variance),
        ("value_var", TapPoint::Value, Reduce::Variance),
        ("value_range", TapPoint::Value, Reduce::Range),
    ];
    for (name, point, reduce) in named {
        for (layer, want) in list_or_none(step, name).iter().enumerate() {
            let got = mean(point(layer), reduce)?;
            check.near(format_args!("step {t}, {name} of block {layer}"), got, number(want)?, SPREAD);
        }
    }
    if let Some(want) = step.get("raw") {
        let of_layers = (0..n_layers).map(|layer| mean(TapPoint::KeyPostRope(layer), Reduce::Variance));
        let raw = of_layers.sum::<Result<f64>>()? / n_layers as f64;
        check.near(format_args!("step {t}, variance of keys"), raw, number(want)?, SPREAD);
    }
    Ok(())
}

/// What the class held and had summed, and the scores that it chose by, after some steps.
fn checkpoints(steps: &Steps<'_>, run: &Value, t: usize, fed: &[u32], tolerance: f64, check: &mut Check) -> Result<()> {
    let held = || steps.held(0);
    for checkpoint in list_or_none(run, "checkpoints") {
        if count(&checkpoint["step"])? != t {
            continue;
        }
        if let (Some(positions), Some(sums)) = (checkpoint.get("positions"), checkpoint.get("values")) {
            check.equal(format_args!("step {t}, kept set"), &held(), &ids(positions)?);
            let own = steps.evictor.score().scores(&steps.cache)?;
            check.all_near(format_args!("step {t}, sums"), &own[0], &numbers(sums)?, ATTENTION_SUM);
        }
        if let Some(before) = checkpoint.get("positions_before") {
            check.equal(format_args!("step {t}, kept set before"), fed, &ids(before)?);
        }
        if let Some(kept) = checkpoint.get("kept_after") {
            check.equal(format_args!("step {t}, kept set"), &held(), &ids(kept)?);
        }
        if let (Some(frozen), [call]) = (steps.evictor.score().frozen(), list_or_none(checkpoint, "topk_calls")) {
            let before = ids(&checkpoint["positions_before"])?;
            let scores = numbers(&call["scores"])?;
            // Those of the generated tokens, which are the last.
            let generated = before[before.len().saturating_sub(scores.len())..].iter().zip(scores);
            // What is protected counts as infinite.
            for (pos, want) in generated.filter(|(_, want)| want.is_finite()) {
                let got = f64::from(frozen.at(0, Pos(*pos)));
                check.near(format_args!("step {t}, score of {pos}"), got, want, tolerance);
            }
        }
    }
    Ok(())
}

/// What holds after the last step.
fn ends(steps: &Steps<'_>, run: &Value, check: &mut Check) -> Result<()> {
    let n_evicted = steps.cache.last().map_or(0, |pos| pos.0 as usize + 1) - steps.held(0).len();
    if let Some(want) = run.get("kept_final") {
        check.equal("last kept set", &steps.held(0), &ids(want)?);
    }
    if let Some(want) = run.get("evictions") {
        check.equal("evictions", &n_evicted, &count(want)?);
    }
    let want = numbers(&run["last_logits"])?;
    check.all_near("last logits", &steps.logits[..want.len().min(steps.logits.len())], &want, LOGITS);
    let length = steps.logits.iter().map(|&l| f64::from(l).powi(2)).sum::<f64>().sqrt();
    check.near("length of the last logits", length, number(&run["last_logits_l2"])?, LOGITS);
    Ok(())
}

/// As [`replay`], but evicts what the reference evicted, which must be as old as anything: among equally old tokens its choice
/// is no rule.
fn follow(decoder: &Decoder, prompt: &[u32], policy: &Policy, run: &Value, check: &mut Check) -> Result<()> {
    let mut steps = Steps::new(decoder, policy, &limits(policy, run, prompt.len())?, &ProbePlan::default())?;
    steps.feed(prompt, true)?;
    let n_prompt = prompt.len() as u32;
    for (t, step) in list(&run["steps"])?.iter().enumerate() {
        let (token, margin) = steps.choice();
        check.equal(format_args!("step {t}, token"), &Value::from(token), &step["token"]);
        check.near(format_args!("step {t}, margin"), margin, number(&step["margin"])?, LOGITS);
        steps.feed(&[u32::try_from(count(&step["token"])?)?], false)?;
        let stamps = steps.evictor.score().scores(&steps.cache)?;
        let generated: Vec<(u32, f32)> =
            steps.held(0).into_iter().zip(stamps[0].iter().copied()).filter(|(pos, _)| *pos >= n_prompt).collect();
        for checkpoint in list_or_none(run, "checkpoints") {
            if count(&checkpoint["step"])? == t
                && let [call] = list_or_none(checkpoint, "topk_calls")
            {
                // They count steps from 1, and positions count from the prompt's start.
                let times: Vec<f32> = generated.iter().map(|(_, stamp)| stamp + 1.0 - n_prompt as f32).collect();
                check.all_near(format_args!("step {t}, stamps"), &times, &numbers(&call["scores"])?, 0.0);
            }
        }
        let oldest = generated.iter().map(|(_, stamp)| *stamp).min_by(f32::total_cmp);
        for pos in step.get("dropped").map_or(Ok(Vec::new()), ids)? {
            let stamp = generated.iter().find(|(own, _)| *own == pos).map(|(_, stamp)| *stamp);
            check
                .holds(format_args!("token {pos} to be as old as any at step {t}"), stamp.is_some() && stamp == oldest);
            steps.remove(0, Pos(pos))?;
        }
        if let Some(size) = step.get("size") {
            check.equal(format_args!("step {t}, size"), &steps.held(0).len(), &count(size)?);
        }
    }
    ends(&steps, run, check)
}
