//! Tests: the fast evictions against sorting everything.

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_model::sampler::RandomStream;
use epikv_signals::{ScoreRef, Setup};

use super::kept::kept;
use super::*;
use crate::policy::registry::find;
use crate::policy::{Protect, Recency, Select, Trigger};

const N_LAYERS: usize = 2;
const N_PROMPT: usize = 7;
const STREAM: RandomStream = RandomStream { seed: 4, problem: 2, sample: 0 };

fn decoder() -> Decoder {
    let (config, weights, _) = open(&"random:3,layers=2,vocab=300".parse().expect("a spec")).expect("a model");
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit")
}

/// The policy's score, with nothing observed yet.
fn started(policy: &Policy, limits: &Limits) -> Box<dyn Score> {
    let setup = Setup { recency: limits.recency(), stream: STREAM, ..Setup::new(N_LAYERS) };
    policy.score.start(&setup).expect("deep enough")
}

/// Ranks of every token held, by kept set and position, before an eviction.
fn ranks(evictor: &Evictor, cache: &RowCache) -> Vec<Vec<(Pos, f32)>> {
    let mut all = checked_scores(&*evictor.score, cache).expect("on the CPU");
    evictor.choice.rank(&mut all, cache, &evictor.limits).expect("on the CPU");
    cache.sets().iter().zip(all).map(|(set, scores)| set.positions().zip(scores).collect()).collect()
}

/// Feeds tokens one by one under a policy and compares each kept set with [`kept`] on the same scores.
fn check(decoder: &Decoder, policy: &Policy, limits: &Limits, n_new: u32) {
    let score = started(policy, limits);
    let plan = policy.score.plan(N_LAYERS).expect("deep enough");
    let mut evictor = Evictor::new(policy, limits, STREAM, score);
    let mut cache = decoder.cache(policy.scope, Capacity::Growing).expect("a cache");
    let mut n_evictions = 0;
    for step in 0..=n_new {
        let prompt = step == 0;
        let tokens: Vec<u32> = if prompt { (3..3 + N_PROMPT as u32).collect() } else { vec![(step * step * 7) % 290] };
        let n = tokens.len();
        let input = RowInput::next(&cache, tokens, LogitsOf::None);
        let output = decoder.forward(&[input], &mut [&mut cache], &plan).expect("a pass");
        evictor.push(&Chunk::new(&output.taps, 0..n), &cache, prompt).expect("what the plan asks for");
        let before = ranks(&evictor, &cache);
        n_evictions += usize::from(evictor.evict(&mut cache, &[]).expect("scores") > 0);
        for (set, before) in before.iter().enumerate() {
            let held: Vec<Pos> = before.iter().map(|(pos, _)| *pos).collect();
            let after: Vec<Pos> = cache.sets()[set].positions().collect();
            if held.len() == after.len() {
                continue;
            }
            let score = |pos: Pos| before.iter().find(|(p, _)| *p == pos).expect("held").1;
            let want = kept(&held, score, limits.protected(), limits.of(set)).expect("numbers");
            assert_eq!(after, want, "{policy} at step {step}, set {set}");
        }
    }
    assert!(n_evictions > 3, "{policy}");
}

#[test]
fn heaps_and_sums_keep_what_sorting_keeps() {
    let decoder = decoder();
    let usual = Protect { prompt: true, sinks: 0, recency: Recency::Budget };
    let sinks = Protect { prompt: false, sinks: 2, recency: Recency::Tokens(3) };
    let nothing = Protect { prompt: false, sinks: 0, recency: Recency::None };
    let base = find("window").expect("a row").policy;
    for text in [
        "recency",
        "random",
        "kv-key",
        "k-norm",
        "key-diff",
        "epikv(0+1+window8)",
        "epikv-raw(1+0)",
        "h2o",
        "h2o(decode)",
        "labels",
        "tova",
        "raas",
        "snapkv(window3)",
        "r-kv(window2)",
        "vase(window4)",
        "lag-kv(2)",
        "epikv-lag(3)",
    ] {
        let score: ScoreRef = text.parse().expect("a score");
        for protect in [usual, sinks, nothing] {
            for (trigger, scope) in [
                (Trigger::Each, Scope::Global),
                (Trigger::Each, Scope::PerHead),
                (Trigger::Every(5), Scope::PerLayer),
                (Trigger::Buffer(4), Scope::Global),
            ] {
                for select in
                    ["top-k", "draw", "top-k+values(75%)", "top-k+l2(2)", "top-k+random(2)", "draw+random-anew(2)"]
                {
                    let select: Select = select.parse().expect(select);
                    if !select.draw || score.is_weight() {
                        let policy = Policy { score, protect, select, trigger, scope, ..base };
                        check(&decoder, &policy, &Limits::new(12, N_PROMPT, protect).expect("feasible"), 40);
                    }
                }
            }
        }
    }
}

/// What is held after each step of the same tokens under a trigger.
fn held(decoder: &Decoder, policy: &Policy) -> Vec<Vec<u32>> {
    let limits = Limits::new(12, N_PROMPT, policy.protect).expect("feasible");
    let plan = policy.score.plan(N_LAYERS).expect("deep enough");
    let score = started(policy, &limits);
    let mut evictor = Evictor::new(policy, &limits, STREAM, score);
    let mut cache = decoder.cache(policy.scope, Capacity::Growing).expect("a cache");
    let step = |step: u32| {
        let prompt = step == 0;
        // The same tokens whatever is held; what the layers make of them differs, so the scores are those of no layer.
        let tokens: Vec<u32> = if prompt { (3..3 + N_PROMPT as u32).collect() } else { vec![(step * step * 7) % 290] };
        let n = tokens.len();
        let input = RowInput::next(&cache, tokens, LogitsOf::None);
        let output = decoder.forward(&[input], &mut [&mut cache], &plan).expect("a pass");
        evictor.push(&Chunk::new(&output.taps, 0..n), &cache, prompt).expect("what the plan asks for");
        evictor.evict(&mut cache, &[]).expect("scores");
        cache.sets()[0].positions().map(|pos| pos.0).collect()
    };
    (0..=60).map(step).collect()
}

#[test]
fn batched_eviction_by_frozen_scores_keeps_the_same_tokens() {
    let decoder = decoder();
    let base = find("random").expect("a row").policy;
    for score in ["recency", "random", "labels"] {
        let policy = |trigger| Policy { score: score.parse().expect("a score"), trigger, ..base };
        let each = held(&decoder, &policy(Trigger::Each));
        for trigger in [Trigger::Every(2), Trigger::Every(15), Trigger::Every(60), Trigger::Buffer(6)] {
            let batched = held(&decoder, &policy(trigger));
            // Back at the budget, it holds what eviction at each step holds.
            let back: Vec<_> = batched.iter().zip(&each).skip(10).filter(|(held, _)| held.len() == 12).collect();
            assert!(!back.is_empty() && back.len() < 40, "{score} {trigger}");
            assert!(back.iter().all(|(held, each)| held == each), "{score} {trigger}");
        }
    }
}
