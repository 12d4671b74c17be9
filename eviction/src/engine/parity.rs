//! The decode loops of the `EpiKV` authors' policy classes, step by step: tokens, margins, scores, evictions, logits.
//!
//! The numbers are in `tests/golden/epikv_runs.json`, the script that took them over is beside it. Their loop: 40 prompt
//! tokens, then 160 greedy ones; a step feeds the arg-max token, scores and evicts, with one kept set of 96 tokens.

use std::path::{Path, PathBuf};

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Pos, RowCache, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::{ModelRef, open};
use epikv_model::sampler::RandomStream;
use epikv_model::taps::{ProbePlan, Reduce, TapPoint};
use epikv_signals::{Bands, Chunk, Setup};
use serde_json::Value;

use crate::engine::evictor::Evictor;
use crate::policy::limits::Limits;
use crate::policy::registry::find;
use crate::policy::{Policy, PositionMode, Protect, Recency, Trigger};

/// Tolerances of the reference, several times the noise that its makers measured.
const LOGITS: f64 = 3e-4;
const HIDDEN_SCORE: f64 = 1e-4;
const KEY_SCORE: f64 = 1e-5;
/// The reference gives 5e-6 for a probability; a sum of up to 160 of them carries a little more.
const ATTENTION_SUM: f64 = 1e-5;
const RESIDUAL_STEP: f64 = 1e-4;

const STREAM: RandomStream = RandomStream { seed: 0, problem: 0, sample: 0 };

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn decoder() -> Decoder {
    let (mut config, weights, _) =
        open(&ModelRef::Folder(golden("../tests/golden/model/parity/llama"))).expect("the parity model");
    config.max_positions = config.max_positions.max(512);
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit")
}

fn reference() -> Value {
    let text = epikv_schemas::fs::read_text(&golden("tests/golden/epikv_runs.json"), 1 << 24).expect("golden numbers");
    serde_json::from_str(&text).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().expect("a list").iter().map(|id| id.as_u64().expect("an id") as u32).collect()
}

fn near(got: f64, want: &Value, tolerance: f64, what: &str) {
    assert!((got - number(want)).abs() <= tolerance, "{what}: expected {want}, got {got}");
}

/// The composition that a class of theirs is.
fn policy_of(run: &Value) -> Policy {
    let name = run["policy"].as_str().expect("a name");
    let base = find("window").expect("a row").policy;
    let position = if run["position_mode"] == "rewound" { PositionMode::Rewound } else { PositionMode::Logical };
    let bands = |name: &str| {
        let layer = |key: &str| run["params"][key].as_u64().expect("a layer") as usize;
        let window = run["params"]["window"].as_u64().map(|w| w as usize);
        let bands = Bands { layers: Some([layer("band_a_layer"), layer("band_b_layer")]), window };
        format!("{name}({bands})")
    };
    let policy = |score: &str| Policy { score: score.parse().expect("a score"), position, ..base };
    if name == "none" {
        Policy { trigger: Trigger::Never, ..base }
    } else if name.starts_with("hs_variance_detrend") {
        policy(&bands("epikv"))
    } else if name.starts_with("hs_variance") {
        policy(&bands("epikv-raw"))
    } else if name == "kv_key" {
        policy("kv-key")
    } else if name == "raas" {
        Policy { position, ..find("raas").expect("a row").policy }
    } else if name.starts_with("lag_kv") {
        let lag = if name.starts_with("lag_kv_key") { "epikv-lag-key" } else { "epikv-lag" };
        let chunk = run["params"]["chunk_size"].as_u64().unwrap_or(128);
        policy(&format!("{lag}({chunk})"))
    } else {
        assert!(name.starts_with("h2o"), "{name}");
        let sinks = run["params"]["num_sink_tokens"].as_u64().map_or(4, |n| n as usize);
        let recent = (run["recent"].as_u64().expect("a count") as usize).min(96 - sinks);
        let protect = Protect { prompt: false, sinks, recency: Recency::Tokens(recent) };
        Policy { protect, scope: Scope::Global, ..policy("h2o(decode)") }
    }
}

/// One decode loop under way.
struct Loop<'m> {
    decoder: &'m Decoder,
    plan: ProbePlan,
    cache: RowCache,
    evictor: Evictor,
    logits: Vec<f32>,
}

impl Loop<'_> {
    /// Feeds tokens, scores and evicts; returns the evicted positions.
    fn feed(&mut self, tokens: Vec<u32>, prompt: bool, check: impl FnOnce(&epikv_model::taps::Taps)) -> Vec<u32> {
        self.score(tokens, prompt, check);
        let before: Vec<Pos> = self.cache.sets()[0].positions().collect();
        self.evictor.evict(&mut self.cache);
        let after: Vec<Pos> = self.cache.sets()[0].positions().collect();
        before.iter().filter(|pos| !after.contains(pos)).map(|pos| pos.0).collect()
    }

    /// Feeds tokens and scores.
    fn score(&mut self, tokens: Vec<u32>, prompt: bool, check: impl FnOnce(&epikv_model::taps::Taps)) {
        let n = tokens.len();
        let input = RowInput::next(&self.cache, tokens, LogitsOf::Last);
        let output = self.decoder.forward(&[input], &mut [&mut self.cache], &self.plan).expect("a pass");
        check(&output.taps);
        let logits = output.logits.expect("wanted").flatten_all().and_then(|l| l.to_vec1::<f32>());
        self.logits = logits.expect("f32");
        self.evictor.push(&Chunk::new(&output.taps, 0..n), &self.cache, prompt).expect("what the plan asks for");
    }

    /// As [`Loop::feed`] with one token, but evicts what the reference evicted, which must be as old as anything: among equally
    /// old tokens its choice is no rule.
    fn feed_and_follow(&mut self, token: u32, n_prompt: u32, dropped: &[u32], stamps: &[u32], what: &str) {
        self.score(vec![token], false, |_| ());
        let stamps_held = self.evictor.score.scores(&self.cache).expect("stamps").swap_remove(0);
        let held: Vec<Pos> = self.cache.sets()[0].positions().collect();
        let own: Vec<(u32, f32)> = held.iter().map(|pos| pos.0).zip(stamps_held).collect();
        let generated: Vec<(u32, f32)> = own.into_iter().filter(|(pos, _)| *pos >= n_prompt).collect();
        if !stamps.is_empty() {
            // They count steps from 1, and positions count from the prompt's start.
            let times: Vec<u32> = generated.iter().map(|(_, stamp)| *stamp as u32 + 1 - n_prompt).collect();
            assert_eq!(times, stamps, "{what}");
        }
        let oldest = generated.iter().map(|(_, stamp)| *stamp).min_by(f32::total_cmp);
        for lost in dropped {
            let (_, stamp) = generated.iter().find(|(pos, _)| pos == lost).expect("a generated token that is held");
            assert_eq!(Some(*stamp), oldest, "{what}");
            self.evictor.score.evicted(0, Pos(*lost));
            assert!(self.cache.remove(0, Pos(*lost)), "{what}");
        }
    }

    /// The arg-max token, and how far it is above the next.
    fn choice(&self) -> (u32, f64) {
        let mut order: Vec<usize> = (0..self.logits.len()).collect();
        order.sort_by(|&a, &b| self.logits[b].total_cmp(&self.logits[a]));
        (order[0] as u32, f64::from(self.logits[order[0]] - self.logits[order[1]]))
    }
}

fn replay(decoder: &Decoder, prompt: &[u32], run: &Value) {
    let policy = policy_of(run);
    let name = format!("{} {}", run["policy"], policy.position);
    let n_layers = decoder.config().n_layers;
    let limits = match run["K"].as_u64() {
        Some(k) => Limits::new(k as usize, prompt.len(), policy.protect).expect("feasible"),
        None => Limits::unlimited(prompt.len()),
    };
    let setup = Setup { recency: limits.recency(), stream: STREAM, ..Setup::new(n_layers) };
    let score = policy.score.start(&setup).expect("deep enough");
    let taps = |plan: ProbePlan, layer| {
        plan.tap(TapPoint::ResidPost(layer), Reduce::StepNorm).tap(TapPoint::KeyPostRope(layer), Reduce::Variance)
    };
    let plan = (0..n_layers).fold(policy.score.plan(n_layers).expect("deep enough"), taps);
    let cache = decoder.cache(policy.scope, Capacity::Growing).expect("a cache");
    let cache = cache.with_rotation(policy.position.rotation()).expect("empty");
    let evictor = Evictor::new(&policy, &limits, STREAM, score);
    let mut run_of = Loop { decoder, plan, cache, evictor, logits: Vec::new() };
    run_of.feed(prompt.to_vec(), true, |_| ());
    let tolerance = if policy.score.spec().name == "kv-key" { KEY_SCORE } else { HIDDEN_SCORE };
    for (t, step) in run["steps"].as_array().expect("steps").iter().enumerate() {
        let what = |part: &str| format!("{name}, step {t}, {part}");
        let (token, margin) = run_of.choice();
        assert_eq!(Value::from(token), step["token"], "{}", what("token"));
        near(margin, &step["margin"], LOGITS, &what("margin"));
        let want = step.get("dropped").map(ids).unwrap_or_default();
        if let Some(stamps) = run.get("stamps") {
            run_of.feed_and_follow(token, prompt.len() as u32, &want, &ids(&stamps[t]), &what("stamps"));
            continue;
        }
        let dropped = run_of.feed(vec![token], false, |taps| signals(taps, step, &what("signals")));
        assert_eq!(dropped, want, "{}", what("dropped"));
        if let (Some(score), Some(own)) = (step.get("score"), run_of.evictor.score.frozen()) {
            near(f64::from(own.at(0, Pos((prompt.len() + t) as u32))), score, tolerance, &what("score"));
        }
        if let Some(all) = run.get("sums").filter(|_| policy.score.is_live()) {
            let own = run_of.evictor.score.scores(&run_of.cache).expect("sums");
            for sums in all.as_array().expect("sums").iter().filter(|sums| sums["step"] == t) {
                let held: Vec<u32> = run_of.cache.sets()[0].positions().map(|pos| pos.0).collect();
                assert_eq!(held, ids(&sums["positions"]), "{}", what("kept set"));
                for (got, want) in own[0].iter().zip(sums["values"].as_array().expect("values")) {
                    near(f64::from(*got), want, ATTENTION_SUM, &what("sum"));
                }
            }
        }
    }
    for (got, want) in run_of.logits.iter().zip(run["last_logits"].as_array().expect("logits")) {
        near(f64::from(*got), want, LOGITS, &format!("{name}, last logits"));
    }
    let norm = run_of.logits.iter().map(|&l| f64::from(l).powi(2)).sum::<f64>().sqrt();
    near(norm, &run["last_logits_l2"], 10.0 * LOGITS, &format!("{name}, norm of the last logits"));
}

/// The signals of each layer, where the reference has them: in the run without eviction.
fn signals(taps: &epikv_model::taps::Taps, step: &Value, what: &str) {
    let layers = |name: &str| step.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for (layer, want) in layers("resid_step_l2").iter().enumerate() {
        let norms = taps.step_norms(TapPoint::ResidPost(layer)).expect("recorded");
        near(f64::from(norms[0].expect("has a predecessor")), want, RESIDUAL_STEP, what);
    }
    for (layer, want) in layers("key_var").iter().enumerate() {
        let mean = |v: &[f32]| v.iter().map(|&x| f64::from(x)).sum::<f64>() / v.len() as f64;
        let got = taps.values(TapPoint::KeyPostRope(layer), Reduce::Variance, mean).expect("on the CPU");
        near(got.expect("recorded"), want, 10.0 * KEY_SCORE, what);
    }
}

#[test]
fn every_run_of_the_authors_is_met() {
    let (decoder, reference) = (decoder(), reference());
    let prompt = ids(&reference["prompt"]);
    let runs = reference["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 17);
    for run in runs {
        replay(&decoder, &prompt, run);
    }
}
