//! Kept sets of unequal budgets, a trigger that remembers and a read plan, against a model that recomputes everything.
//!
//! The reference holds lists of tokens and sorts them. Its decoder computes every token of every step again. So its cost is
//! quadratic in the tokens held, and nothing is shared with the engine but the weights.

mod model;

use std::time::Duration;

use epikv_model::backend::{DeviceName, OpenOptions};
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Pos, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::load::open;
use epikv_model::plan::{ReadPlan, StepPlan};
use epikv_signals::Chunk;

use self::model::{Pass, Quadratic, Sight};
use crate::engine::generation::Generation;
use crate::engine::running::Running;
use crate::policy::allocate::{Allocate, Allocator, Division};
use crate::policy::limits::Limits;
use crate::policy::read::{Held, Read, Reader};
use crate::policy::trigger::{Step, TriggerState};
use crate::policy::{Policy, PositionMode, Protect, Recency, Select, Trigger};

const N_PROMPT: usize = 50;
const N_STEPS: usize = 200;
const K: usize = 24;
const SINKS: usize = 2;
const RECENT: usize = 3;
/// Tokens over the budget that the trigger lets in at most.
const SLACK: usize = 15;
/// The id that the trigger counts.
const SEPARATOR: u32 = 11;
/// Far above the noise of f32, far below the effect of one token.
const TOLERANCE: f64 = 2e-4;

/// From `3K/2` for the first kept set down to `K/2` for the last.
static SLOPE: Allocator = Allocator {
    name: "slope",
    doc: "Earlier kept sets hold more",
    source: "this test",
    argument: None,
    by_score: false,
    budgets: |_, division| {
        let n = division.sets.count();
        (0..n).map(|set| division.even * 3 / 2 - set * division.even / (n - 1)).collect()
    },
};

/// What the highest scores of all kept sets together leave to each.
static POOLED: Allocator = Allocator {
    name: "pooled",
    doc: "The highest scores of all kept sets together are kept",
    source: "this test",
    argument: None,
    by_score: true,
    budgets: pooled,
};

fn pooled(_: usize, division: &Division<'_>) -> Vec<usize> {
    let n = division.sets.count();
    let Some(scores) = division.scores else { return vec![division.even; n] };
    let mut all: Vec<(f32, usize)> =
        scores.iter().enumerate().flat_map(|(set, own)| own.iter().map(move |score| (*score, set))).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.truncate(n * (division.even - division.least));
    (0..n).map(|set| division.least + all.iter().filter(|(_, own)| *own == set).count()).collect()
}

/// Two of three positions, and the newest.
static THIRDS: Reader = Reader {
    name: "thirds",
    doc: "Two of three positions",
    source: "this test",
    argument: None,
    plan: |_, held: &Held<'_>| ReadPlan::Slots {
        scope: held.cache.scope(),
        positions: held
            .cache
            .sets()
            .iter()
            .map(|set| {
                let newest = held.cache.last();
                set.positions().filter(|pos| pos.0 % 3 != 1 || Some(*pos) == newest).collect()
            })
            .collect(),
    },
};

/// Due at every second separator.
#[derive(Debug, Default)]
struct SecondSeparator {
    seen: usize,
}

impl TriggerState for SecondSeparator {
    fn due(&mut self, step: &Step<'_>) -> bool {
        let before = self.seen;
        self.seen += step.ids.iter().filter(|id| **id == SEPARATOR).count();
        self.seen / 2 > before / 2 || step.n_generated == 0
    }
}

/// The tokens of the run: the prompt has no separator, afterwards every seventh is one.
fn tokens() -> Vec<u32> {
    let id =
        |at: usize| if at >= N_PROMPT && at.is_multiple_of(7) { SEPARATOR } else { 20 + (at * at * 7 % 270) as u32 };
    (0..N_PROMPT + N_STEPS).map(id).collect()
}

/// The reference: by kept set the tokens held, with the numbers by which their keys are rotated.
struct Reference<'a> {
    model: &'a Quadratic,
    policy: Policy,
    n_heads: usize,
    sets: Vec<Sight>,
    /// What each token saw, by token and kept set.
    sights: Vec<Vec<Sight>>,
    budgets: Vec<usize>,
    separators: usize,
    n_removed: usize,
    n_read: usize,
}

impl Reference<'_> {
    fn set(&self, layer: usize, head: usize) -> usize {
        if self.policy.scope == Scope::PerLayer { layer } else { layer * self.n_heads + head }
    }

    /// What the tokens of a pass see.
    fn feed(&mut self, first: usize, n: usize) {
        let is_prompt = first == 0;
        for at in first..first + n {
            let mut sight = Vec::new();
            for set in &mut self.sets {
                if self.policy.position == PositionMode::Compacted {
                    set.iter_mut().enumerate().for_each(|(place, (_, number))| *number = place as u32);
                }
                let newest = set.last().map(|(at, _)| *at);
                let reads = |(at, _): &(usize, u32)| is_prompt || at % 3 != 1 || Some(*at) == newest;
                let mut own: Sight = set.iter().copied().filter(reads).collect();
                let number = if self.policy.position == PositionMode::Logical { at } else { set.len() };
                set.push((at, number as u32));
                own.push((at, number as u32));
                sight.push(own);
            }
            if !is_prompt {
                self.n_read += sight.iter().map(Vec::len).sum::<usize>();
            }
            self.sights.push(sight);
        }
    }

    /// Computes everything again.
    fn pass(&self, tokens: &[u32]) -> Pass {
        self.model.pass(tokens, |token, layer, head| &self.sights[token][self.set(layer, head)])
    }

    /// Negative L2 norm of the key, the mean over the heads that share the set.
    fn score(&self, pass: &Pass, set: usize, token: usize) -> f64 {
        let length = |key: &[f64]| key.iter().map(|v| v * v).sum::<f64>().sqrt();
        let heads =
            pass.keys.iter().enumerate().flat_map(|(layer, heads)| {
                heads.iter().enumerate().map(move |(head, keys)| ((layer, head), &keys[token]))
            });
        let own: Vec<f64> =
            heads.filter(|((layer, head), _)| self.set(*layer, *head) == set).map(|(_, key)| -length(key)).collect();
        own.iter().sum::<f64>() / own.len() as f64
    }

    /// Evicts after a step, by sorting. Scores that are nearly equal may stand either way, so those of the engine are taken,
    /// after they have been compared.
    fn evict(&mut self, pass: &Pass, scores: &[Vec<f32>], tokens: &[u32], first: usize) {
        let newest = tokens.len() - 1;
        let before = self.separators;
        self.separators += tokens[first..].iter().filter(|id| **id == SEPARATOR).count();
        for (set, own) in scores.iter().enumerate() {
            for ((at, _), score) in self.sets[set].iter().zip(own) {
                let far = (self.score(pass, set, *at) - f64::from(*score)).abs();
                assert!(far < TOLERANCE, "score of token {at} in set {set}: differs by {far}");
            }
        }
        let is_due = first == 0 || self.separators / 2 > before / 2;
        let is_over = self.sets.iter().zip(&self.budgets).any(|(set, budget)| set.len() > *budget);
        if !is_due || !is_over {
            return;
        }
        let may_go = |at: usize| at >= SINKS && at + RECENT <= newest;
        let ranked = |(set, own): (&Sight, &Vec<f32>)| -> Vec<(f32, usize)> {
            let held = set.iter().map(|(at, _)| *at).zip(own);
            let mut all: Vec<(f32, usize)> = held.filter(|(at, _)| may_go(*at)).map(|(at, s)| (*s, at)).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
            all
        };
        let ranked: Vec<Vec<(f32, usize)>> = self.sets.iter().zip(scores).map(ranked).collect();
        if self.policy.allocate.is_by_score() {
            let of_set = |(set, own): (usize, &Vec<(f32, usize)>)| -> Vec<(f32, usize)> {
                own.iter().map(|(score, _)| (*score, set)).collect()
            };
            let mut all: Vec<(f32, usize)> = ranked.iter().enumerate().flat_map(of_set).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            all.truncate(self.sets.len() * (K - SINKS - RECENT));
            let own = |set: usize| SINKS + RECENT + all.iter().filter(|(_, at)| *at == set).count();
            self.budgets = (0..self.sets.len()).map(own).collect();
        }
        for (set, ranked) in ranked.iter().enumerate() {
            let held = self.sets[set].len();
            let n_stay = held.min(self.budgets[set]) - (held - ranked.len());
            let stay: Vec<usize> = ranked[..n_stay].iter().map(|(_, at)| *at).collect();
            self.sets[set].retain(|(at, _)| !may_go(*at) || stay.contains(at));
            self.n_removed += held - self.sets[set].len();
        }
    }
}

fn policy(scope: Scope, allocate: Allocate, position: PositionMode) -> Policy {
    Policy {
        score: "k-norm".parse().expect("a score"),
        protect: Protect { prompt: false, sinks: SINKS, recency: Recency::Tokens(RECENT) },
        allocate,
        select: Select::TOP_K,
        // Its slack; what is due is said by the trigger that takes its place.
        trigger: Trigger::Buffer(SLACK + 1),
        read: Read::new(&THIRDS, 0),
        scope,
        position,
        ..crate::policy::registry::COMMON
    }
}

/// Logits, scores, what is held and what was counted, step by step beside the reference.
fn compare(decoder: &Decoder, model: &Quadratic, policy: Policy) {
    let (tokens, config) = (tokens(), decoder.config());
    let limits = Limits::new(K, N_PROMPT, policy.protect).expect("feasible");
    let generation = Generation::greedy(&tokens[..N_PROMPT], N_STEPS);
    let (mut cache, mut run) = Running::start(decoder, &policy, &limits, &generation).expect("a generation");
    run.set_trigger(Box::new(SecondSeparator::default()));
    let n_sets = cache.sets().len();
    let slope = |set: usize| K * 3 / 2 - set * K / (n_sets - 1);
    let is_slope = !policy.allocate.is_by_score();
    let mut reference = Reference {
        model,
        policy,
        n_heads: config.n_kv_heads,
        sets: vec![Vec::new(); n_sets],
        sights: Vec::new(),
        budgets: (0..n_sets).map(|set| if is_slope { slope(set) } else { K }).collect(),
        separators: 0,
        n_removed: 0,
        n_read: 0,
    };
    let numbers_of_token = config.head_dim * if policy.position == PositionMode::Compacted { 3 } else { 2 };
    let bytes_of_token = 4 * numbers_of_token * config.n_layers * config.n_kv_heads / n_sets;
    let probe = policy.score.plan(config.n_layers).expect("deep enough");
    let (mut first, mut byte_steps) = (0, 0);
    let mut next = tokens[..N_PROMPT].to_vec();
    let before = cache.bytes();
    loop {
        let fed = first + next.len();
        let what = format!("{policy}, {fed} tokens, {}", decoder.device_name());
        let read = [run.read_plan(&cache).expect("scores").unwrap_or_default()];
        let input = RowInput::next(&cache, next.clone(), LogitsOf::Last);
        let plan = StepPlan { probe: &probe, read: &read };
        let output = decoder.forward(&[input], &mut [&mut cache], plan).expect("a pass");
        let logits = output.logits.expect("wanted").flatten_all().and_then(|l| l.to_vec1::<f32>()).expect("f32");
        let scores = run.scores(&cache);
        if first > 0 {
            run.chosen(next[0]);
        }
        let chunk = Chunk::new(&output.taps, 0..next.len());
        run.after_step(decoder, &mut cache, &chunk, (output.n_read[0], Duration::ZERO)).expect("scores");

        reference.feed(first, next.len());
        let pass = reference.pass(&tokens[..fed]);
        let far = logits.iter().zip(&pass.logits).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        assert!(far < TOLERANCE, "{what}: logits differ by {far}");
        reference.evict(&pass, &scores, &tokens[..fed], first);
        for (set, want) in reference.sets.iter().enumerate() {
            let got: Vec<Pos> = cache.sets()[set].positions().collect();
            let want: Vec<Pos> = want.iter().map(|(at, _)| Pos(*at as u32)).collect();
            assert_eq!(got, want, "{what}, set {set}");
        }
        let held: usize = reference.sets.iter().map(Vec::len).sum();
        byte_steps += held * bytes_of_token;
        assert_eq!(cache.held_bytes(), held * bytes_of_token, "{what}");
        // The slots are those of each set's own budget, the slack and one token.
        let slots: usize = reference.budgets.iter().map(|budget| budget + SLACK + 1).sum();
        assert_eq!(cache.bytes(), slots * bytes_of_token, "{what}");
        assert!(cache.bytes() < before, "{what}: bytes fall once the prompt has been read");
        if fed == tokens.len() {
            break;
        }
        (first, next) = (fed, vec![tokens[fed]]);
    }
    let certificate = run.certificate();
    assert!(certificate.holds(), "{policy}: {certificate:?}");
    assert_eq!(certificate.sum_evicted, reference.n_removed, "{policy}");
    assert_eq!(certificate.kv_byte_steps, byte_steps, "{policy}");
    let n_read = reference.n_read as f64 / (N_STEPS * n_sets) as f64;
    assert!((certificate.mean_read().expect("a part is read") - n_read).abs() < 1e-9, "{policy}");
    assert!(n_read < certificate.mean_held().expect("steps"), "{policy}");
}

/// A position mode under both divisions, on both back-ends.
fn check(position: PositionMode) {
    let (config, weights, _) =
        open(&"random:7,layers=2,hidden=32,vocab=300".parse().expect("a spec")).expect("a model");
    let model = Quadratic::new(&config, &*weights, (N_PROMPT + N_STEPS) as u32);
    for device in [DeviceName::Cpu, DeviceName::Tensor] {
        let options = OpenOptions { device, ..OpenOptions::default() };
        let decoder = Decoder::open(config.clone(), &*weights, &options).expect("weights that fit");
        for (scope, allocator) in [(Scope::PerHead, &SLOPE), (Scope::PerLayer, &POOLED)] {
            compare(&decoder, &model, policy(scope, Allocate::new(allocator, 0), position));
        }
    }
}

#[test]
fn logical_positions_are_those_of_a_model_that_recomputes_everything() {
    check(PositionMode::Logical);
}

#[test]
fn rewound_positions_are_those_of_a_model_that_recomputes_everything() {
    check(PositionMode::Rewound);
}

#[test]
fn compacted_positions_are_those_of_a_model_that_recomputes_everything() {
    check(PositionMode::Compacted);
}

#[test]
fn a_budget_that_one_kept_set_has_cannot_be_divided() {
    let policy = policy(Scope::Global, Allocate::new(&SLOPE, 0), PositionMode::Logical);
    let error = policy.check().expect_err("one kept set");
    assert_eq!(error.to_string(), "allocate=slope: expected scope=per-layer or scope=per-head, got scope=global");
    assert!(policy.to_string().contains("allocate=slope;") && policy.to_string().contains("read=thirds;"));
}
