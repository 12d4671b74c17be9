//! Kept sets of different sizes and read plans against a slow decoder that is given lists of tokens: all scopes, all
//! rotations, both back-ends.

mod reference;

use std::sync::Arc;

use epikv_model::backend::{DeviceName, OpenOptions};
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Pos, Prefix, Rotation, RowCache, Scope};
use epikv_model::config::ModelConfig;
use epikv_model::decoder::{Decoder, StepOutput};
use epikv_model::load::{ModelRef, open};
use epikv_model::plan::{ReadPlan, StepPlan};
use epikv_model::sampler::Sampling;
use epikv_model::session::{RowSpec, Session};
use epikv_model::taps::{AttentionTap, ProbePlan};

use self::reference::{Reference, Seen};
use crate::golden::values;

const SPEC: &str = "random:11,layers=3,heads=6,kv_heads=2,hidden=48,head_dim=8,vocab=70";

/// What a logit is held to.
const LOGIT: f64 = 2e-4;

/// Tokens read at once before decoding starts.
const PROMPT: usize = 20;

/// Tokens that are decoded one by one.
const STEPS: usize = 200;

fn decoder(device: DeviceName) -> Decoder {
    let (config, weights, _) = open(&SPEC.parse::<ModelRef>().unwrap()).unwrap();
    Decoder::open(config, &*weights, &OpenOptions { device, ..OpenOptions::default() }).unwrap()
}

fn token(at: usize) -> u32 {
    ((at * at * 13 + at * 5 + 3) % 70) as u32
}

fn pass(decoder: &Decoder, cache: &mut RowCache, tokens: Vec<u32>, read: ReadPlan) -> StepOutput {
    let row = RowInput::next(cache, tokens, LogitsOf::Last);
    decoder.forward(&[row], &mut [cache], StepPlan { probe: &ProbePlan::default(), read: &[read] }).unwrap()
}

/// What each kept set holds, kept as plain lists beside the cache.
struct Kept {
    scope: Scope,
    rotation: Rotation,
    config: ModelConfig,
    /// By set, position and rotary number at arrival, in order of positions.
    sets: Vec<Vec<Seen>>,
    /// Tokens that a set may hold.
    budgets: Vec<usize>,
}

impl Kept {
    fn new(config: &ModelConfig, scope: Scope, rotation: Rotation) -> Self {
        let n = scope.n_sets(config.n_layers, config.n_kv_heads);
        let budgets = (0..n).map(|set| PROMPT + 9 * (set % 4)).collect();
        Self { scope, rotation, config: config.clone(), sets: vec![Vec::new(); n], budgets }
    }

    fn set(&self, layer: usize, head: usize) -> &[Seen] {
        &self.sets[self.scope.set_index(self.config.n_kv_heads, layer, head)]
    }

    /// Takes a token into all sets.
    fn append(&mut self, at: usize) {
        for set in &mut self.sets {
            let number = if self.rotation == Rotation::Position { at } else { set.len() };
            set.push((at, number));
        }
    }

    /// What a head attends to, the newest `n_new` tokens and of the others those that are read.
    fn seen(&self, layer: usize, head: usize, n_new: usize, is_read: impl Fn(usize) -> bool) -> Vec<Seen> {
        let set = self.set(layer, head);
        let places = set.iter().enumerate().map(|(place, &(at, number))| {
            let is_new = place + n_new >= set.len();
            (at, if self.rotation == Rotation::Compacted { place } else { number }, is_new)
        });
        places.filter(|&(at, _, is_new)| is_new || is_read(at)).map(|(at, number, _)| (at, number)).collect()
    }

    /// Evicts from each set, here and in the cache, what is over its budget: other tokens in every set.
    fn evict(&mut self, cache: &mut RowCache, step: usize) {
        for (set, kept) in self.sets.iter_mut().enumerate() {
            let mut n = 0;
            while kept.len() > self.budgets[set] {
                let (at, _) = kept.remove((7 * step + 3 * set + 11 * n) % (kept.len() - 1));
                assert!(cache.remove(set, Pos(at as u32)), "set {set} holds {at}");
                n += 1;
            }
        }
    }

    /// Bytes of a cache with room for the budgets and `more` tokens of each set.
    fn bytes(&self, more: usize) -> usize {
        let parts = if self.rotation == Rotation::Compacted { 3 } else { 2 };
        let heads = (0..self.config.n_layers).flat_map(|l| (0..self.config.n_kv_heads).map(move |h| (l, h)));
        let slots = heads.map(|(l, h)| self.budgets[self.scope.set_index(self.config.n_kv_heads, l, h)] + more);
        slots.sum::<usize>() * parts * self.config.head_dim * 4
    }
}

/// What is read at a step: everything, or the newest and some of the others, by sets of another scope at each turn.
fn is_read(scope: Scope, set: usize, step: usize, at: usize, newest: usize) -> bool {
    let set = if scope == Scope::Global { 0 } else { set };
    at + 6 > newest || !(at + step + set).is_multiple_of(3)
}

/// The read plan of those tokens, and the keys that a pass with it attends to.
fn read_plan(kept: &Kept, scope: Scope, step: usize, newest: usize) -> ReadPlan {
    let (layers, heads) = (kept.config.n_layers, kept.config.n_kv_heads);
    let mut positions: Vec<Option<Vec<Pos>>> = vec![None; scope.n_sets(layers, heads)];
    for (layer, head) in (0..layers).flat_map(|layer| (0..heads).map(move |head| (layer, head))) {
        let set = scope.set_index(heads, layer, head);
        let own = kept.set(layer, head).iter().map(|seen| seen.0);
        let own: Vec<Pos> = own.filter(|&at| is_read(scope, set, step, at, newest)).map(|at| Pos(at as u32)).collect();
        // What several heads read, each of them must hold.
        let both = match positions[set].take() {
            Some(others) => others.into_iter().filter(|pos| own.contains(pos)).collect(),
            None => own,
        };
        positions[set] = Some(both);
    }
    ReadPlan::Slots { scope, positions: positions.into_iter().flatten().collect() }
}

fn positions_of(plan: &ReadPlan, heads: usize, layer: usize, head: usize) -> Option<&[Pos]> {
    match plan {
        ReadPlan::All => None,
        ReadPlan::Slots { scope, positions } => Some(&positions[scope.set_index(heads, layer, head)]),
    }
}

fn run(decoder: &Decoder, scope: Scope, rotation: Rotation) {
    let (config, weights, _) = open(&SPEC.parse::<ModelRef>().unwrap()).unwrap();
    let what = format!("{:?}, {scope:?}, {rotation:?}", decoder.device_name());
    let heads = config.n_kv_heads;
    let mut slow = Reference::new(config.clone(), &*weights);
    let mut kept = Kept::new(&config, scope, rotation);
    // A step appends before it evicts.
    let capacity = Capacity::Sets(kept.budgets.iter().map(|budget| budget + 1).collect());
    let mut cache = decoder.cache(scope, capacity).unwrap().with_rotation(rotation).unwrap();
    let (mut want, mut wrong) = (Vec::new(), Vec::new());
    let full = kept.bytes(1);
    for step in 0..=STEPS {
        let first = if step == 0 { 0 } else { PROMPT + step - 1 };
        let new = if step == 0 { PROMPT } else { 1 };
        let scopes = [Scope::PerHead, Scope::Global, Scope::PerLayer];
        let plan = match step % 4 {
            1 | 3 => read_plan(&kept, scopes[step / 2 % 3], step, first),
            _ => ReadPlan::All,
        };
        let mut n_read = 0;
        for (i, at) in (first..first + new).enumerate() {
            kept.append(at);
            let list = |layer, head| {
                let read = positions_of(&plan, heads, layer, head);
                kept.seen(layer, head, i + 1, |at| read.is_none_or(|read| read.contains(&Pos(at as u32))))
            };
            n_read = (0..config.n_layers)
                .flat_map(|l| (0..heads).map(move |h| (l, h)))
                .map(|(layer, head)| list(layer, head).len() as u64)
                .sum();
            if step == STEPS {
                // Of what a test must see: a token less, and keys that stand one place further from the newest.
                let one_less = |layer, head| list(layer, head).split_off(1);
                let moved = |layer, head| {
                    let mut list = list(layer, head);
                    let n = list.len() - 1;
                    list[..n].iter_mut().for_each(|(_, number)| *number += 1);
                    list
                };
                wrong = vec![slow.clone().step(token(at), one_less), slow.clone().step(token(at), moved)];
            }
            want = slow.step(token(at), list);
        }
        let output = pass(decoder, &mut cache, (first..first + new).map(token).collect(), plan);
        assert_eq!(output.n_read, [n_read], "{what}, step {step}");
        for (got, want) in values(&output.logits.unwrap()).iter().zip(&want) {
            assert!((f64::from(*got) - want).abs() < LOGIT, "{what}, step {step}: {got} and {want}");
        }
        if step == STEPS / 2 {
            // Some sets lose half of their budget, and the cache gives the room back.
            kept.budgets.iter_mut().skip(1).step_by(2).for_each(|budget| *budget /= 2);
            kept.budgets[0] -= 5;
            kept.evict(&mut cache, step);
            assert_eq!(cache.bytes(), full, "{what}: evicting frees slots, not bytes");
            cache.compact(|set| kept.budgets[set] + 1).unwrap();
            assert!(cache.bytes() < full, "{what}");
        }
        kept.evict(&mut cache, step);
        assert_eq!(cache.bytes(), kept.bytes(1), "{what}, step {step}");
        let held: Vec<Vec<u32>> = cache.sets().iter().map(|set| set.positions().map(|pos| pos.0).collect()).collect();
        let lists: Vec<Vec<u32>> = kept.sets.iter().map(|set| set.iter().map(|seen| seen.0 as u32).collect()).collect();
        assert_eq!(held, lists, "{what}, step {step}");
    }
    for wrong in wrong {
        let worst = wrong.iter().zip(&want).fold(0.0_f64, |max, (a, b)| max.max((a - b).abs()));
        assert!(worst > 2.0 * LOGIT, "{what}: an error would not be seen, {worst:e}");
    }
    let n_held = kept.sets.iter().map(Vec::len).collect::<std::collections::BTreeSet<_>>();
    assert!(scope == Scope::Global || n_held.len() > 2, "{what}: sets of {n_held:?} tokens");
}

#[test]
fn uneven_sets_and_read_plans_agree_with_lists_of_tokens() {
    for device in [DeviceName::Cpu, DeviceName::Tensor] {
        let decoder = decoder(device);
        for scope in [Scope::Global, Scope::PerLayer, Scope::PerHead] {
            for rotation in [Rotation::Position, Rotation::Retained, Rotation::Compacted] {
                run(&decoder, scope, rotation);
            }
        }
    }
}

#[test]
fn what_is_read_of_a_shared_prefix_is_what_is_read_of_own_slots() {
    let decoder = decoder(DeviceName::Cpu);
    let mut first = decoder.cache(Scope::Global, Capacity::Growing).unwrap();
    pass(&decoder, &mut first, (0..30).map(token).collect(), ReadPlan::All);
    let own = first.clone();
    let prefix = Arc::new(Prefix::freeze(first).unwrap());
    let positions = (0..30).filter(|at| at % 3 != 1).map(Pos).collect();
    let plan = ReadPlan::Slots { scope: Scope::Global, positions: vec![positions] };
    let behind = decoder.cache(Scope::Global, Capacity::Growing).unwrap().with_prefix(prefix, 30).unwrap();
    let logits = [own, behind].map(|mut cache| {
        let output = pass(&decoder, &mut cache, vec![5, 6], plan.clone());
        assert_eq!(output.n_read, [22 * 3 * 2]);
        values(&output.logits.unwrap())
    });
    assert_eq!(logits[0], logits[1]);
}

#[test]
fn a_plan_that_does_not_fit_is_refused_and_changes_nothing() {
    let decoder = decoder(DeviceName::Cpu);
    let mut cache = decoder.cache(Scope::PerLayer, Capacity::Growing).unwrap();
    pass(&decoder, &mut cache, (0..9).map(token).collect(), ReadPlan::All);
    cache.remove(1, Pos(4));
    let mut refused = |read: Vec<ReadPlan>, probe: ProbePlan| {
        let row = RowInput::next(&cache, vec![3], LogitsOf::Last);
        let plan = StepPlan { probe: &probe, read: &read };
        let error = decoder.forward(&[row], &mut [&mut cache], plan).unwrap_err().to_string();
        assert_eq!((cache.len(0), cache.len(1), cache.last()), (9, 8, Some(Pos(8))), "{error}");
        error
    };
    let of = |scope, positions: &[&[u32]]| {
        vec![ReadPlan::Slots {
            scope,
            positions: positions.iter().map(|p| p.iter().copied().map(Pos).collect()).collect(),
        }]
    };
    let none = ProbePlan::default;
    assert!(refused(of(Scope::Global, &[&[2, 4]]), none()).contains("head 0 of layer 1 holds, got 4"));
    assert!(refused(of(Scope::Global, &[&[3, 2]]), none()).contains("ascending, got 3 before 2"));
    assert!(refused(of(Scope::PerLayer, &[&[3]]), none()).contains("3 lists of positions, got 1"));
    assert!(refused(vec![ReadPlan::All, ReadPlan::All], none()).contains("each of 1 rows"));
    let attention = ProbePlan::default().attention(AttentionTap::ColumnSum(0));
    assert!(refused(of(Scope::Global, &[&[2]]), attention).contains("got attention taps"));
}

#[test]
fn a_session_reads_by_a_plan_once() {
    let decoder = decoder(DeviceName::Cpu);
    let mut session = Session::new(&decoder);
    for key in [4, 7] {
        let cache = decoder.cache(Scope::Global, Capacity::Growing).unwrap();
        let context = (0..12).map(token).collect();
        let sampling = Sampling::Greedy;
        session.add(RowSpec { key, context, cache, max_new: 9, stop_ids: vec![], sampling, draft: [].into() }).unwrap();
    }
    let probe = ProbePlan::default();
    session.step(&probe).unwrap();
    let plan = ReadPlan::Slots { scope: Scope::Global, positions: vec![vec![Pos(0), Pos(9), Pos(11)]] };
    assert!(session.read(7, plan) && !session.read(5, ReadPlan::All));
    let heads = (decoder.config().n_layers * decoder.config().n_kv_heads) as u64;
    assert_eq!(session.step(&probe).unwrap().n_read, [13 * heads, 4 * heads]);
    assert_eq!(session.step(&probe).unwrap().n_read, [14 * heads, 14 * heads]);
}

/// The last layer goes on with wanted tokens only; a row beside them may want none.
#[test]
fn a_row_without_logits_beside_one_with_them_changes_nothing() {
    for device in [DeviceName::Cpu, DeviceName::Tensor] {
        let decoder = decoder(device);
        let [mut a, mut b, mut alone] = [(); 3].map(|()| decoder.cache(Scope::Global, Capacity::Growing).unwrap());
        let rows = [
            RowInput::next(&a, (0..5).map(token).collect(), LogitsOf::None),
            RowInput::next(&b, (3..9).map(token).collect(), LogitsOf::Last),
        ];
        let both = decoder.forward(&rows, &mut [&mut a, &mut b], &ProbePlan::default()).unwrap().logits.unwrap();
        let want = decoder.forward(&rows[1..], &mut [&mut alone], &ProbePlan::default()).unwrap().logits.unwrap();
        for (got, want) in values(&both).iter().zip(values(&want)) {
            assert!(f64::from((got - want).abs()) < LOGIT, "{device:?}: {got} and {want}");
        }
    }
}
