//! The tensor back-end against our kernels: taps, attention, evicted caches, shared prefixes, sessions, narrow numbers.

use std::sync::Arc;

use epikv_model::backend::{DeviceName, Dtype, OpenOptions};
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Prefix, Rotation, RowCache, Scope};
use epikv_model::decoder::{Decoder, StepOutput};
use epikv_model::load::{ModelRef, open};
use epikv_model::sampler::Sampling;
use epikv_model::session::{FinishedRow, RowSpec, Session};
use epikv_model::taps::{AttentionTap, LogitTap, ProbePlan, Reduce, TapPoint};

use crate::golden::{ATTENTION, LOGITS, RESIDUAL, values};

/// Shared heads, biases and norms of heads, tied and untied.
const SPECS: &[&str] = &[
    "random:2,layers=2,heads=4,kv_heads=2,hidden=64,vocab=272",
    "random:3,layers=2,heads=6,kv_heads=1,hidden=72,head_dim=20,vocab=99,arch=qwen2",
    "random:4,layers=2,heads=4,kv_heads=4,hidden=96,head_dim=32,vocab=130,arch=qwen3,tied=true",
];

fn decoder(spec: &str, device: DeviceName, dtype: Dtype) -> Decoder {
    let (config, weights, _) = open(&spec.parse::<ModelRef>().unwrap()).unwrap();
    Decoder::open(config, &*weights, &OpenOptions { device, dtype, ..OpenOptions::default() }).unwrap()
}

fn both(spec: &str) -> [Decoder; 2] {
    [DeviceName::Cpu, DeviceName::Tensor].map(|device| decoder(spec, device, Dtype::F32))
}

fn tokens(decoder: &Decoder, n: usize) -> Vec<u32> {
    (0..n).map(|i| ((i * 7919 + i * i + 5) % decoder.config().vocab_size) as u32).collect()
}

fn feed(decoder: &Decoder, cache: &mut RowCache, tokens: &[u32], plan: &ProbePlan) -> StepOutput {
    let row = RowInput::next(cache, tokens.to_vec(), LogitsOf::LastN(tokens.len().min(9)));
    decoder.forward(&[row], &mut [cache], plan).unwrap()
}

/// Largest difference, in units of the largest number above one.
fn apart(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let largest = a.iter().fold(1.0_f64, |max, x| max.max(f64::from(x.abs())));
    a.iter().zip(b).fold(0.0, |max: f64, (a, b)| max.max(f64::from((a - b).abs()))) / largest
}

fn close(what: &str, a: &[f32], b: &[f32], tolerance: f64) {
    let worst = apart(a, b);
    assert!(worst < tolerance, "{what}: {worst:e}");
}

/// The same where a number may be missing, in both or in none.
fn close_or_missing(what: &str, a: &[Option<f32>], b: &[Option<f32>], tolerance: f64) {
    assert_eq!(a.iter().map(Option::is_some).collect::<Vec<_>>(), b.iter().map(Option::is_some).collect::<Vec<_>>());
    let plain = |all: &[Option<f32>]| all.iter().flatten().copied().collect::<Vec<_>>();
    close(what, &plain(a), &plain(b), tolerance);
}

const REDUCES: [Reduce; 5] = [Reduce::Full, Reduce::Norm, Reduce::Mean, Reduce::Variance, Reduce::Range];
const STEPS: [Reduce; 2] = [Reduce::StepNorm, Reduce::StepCosine];
const LOGIT_TAPS: [LogitTap; 3] = [LogitTap::Surprisal, LogitTap::Entropy, LogitTap::Margin];

fn points(n_layers: usize) -> Vec<TapPoint> {
    let of_layer = |l| [TapPoint::ResidPost(l), TapPoint::KeyPreRope(l), TapPoint::KeyPostRope(l), TapPoint::Value(l)];
    let mut all: Vec<TapPoint> = (0..n_layers).flat_map(of_layer).collect();
    all.extend([TapPoint::Embed, TapPoint::FinalNorm, TapPoint::QueryPostRope(0)]);
    all
}

#[test]
fn taps_agree_in_every_form_and_across_calls() {
    for spec in SPECS {
        let decoders = both(spec);
        let n_layers = decoders[0].config().n_layers;
        let of_steps = [TapPoint::Embed, TapPoint::ResidPost(0), TapPoint::FinalNorm];
        let mut plan = LOGIT_TAPS.into_iter().fold(ProbePlan::default(), ProbePlan::logits);
        plan = points(n_layers)
            .into_iter()
            .fold(plan, |plan, point| REDUCES.into_iter().fold(plan, |plan, reduce| plan.tap(point, reduce)));
        plan = of_steps
            .into_iter()
            .fold(plan, |plan, point| STEPS.into_iter().fold(plan, |plan, how| plan.tap(point, how)));
        let mut caches = decoders.each_ref().map(|decoder| decoder.cache(Scope::Global, Capacity::Growing).unwrap());
        let all = tokens(&decoders[0], 60);
        for chunk in [&all[..40], &all[40..41], &all[41..]] {
            let mut outputs =
                decoders.iter().zip(&mut caches).map(|(decoder, cache)| feed(decoder, cache, chunk, &plan));
            let [Some(a), Some(b)] = [outputs.next(), outputs.next()] else { unreachable!("two back-ends") };
            for (point, reduce) in points(n_layers).into_iter().flat_map(|p| REDUCES.map(|reduce| (p, reduce))) {
                let [x, y] = [&a, &b].map(|o| o.taps.values(point, reduce, <[f32]>::to_vec).unwrap().unwrap());
                close(&format!("{spec}: {point:?} {reduce:?}"), &x, &y, RESIDUAL);
            }
            for (point, how) in of_steps.into_iter().flat_map(|p| STEPS.map(|how| (p, how))) {
                let [x, y] = [&a, &b].map(|o| o.taps.steps(point, how).unwrap());
                close_or_missing(&format!("{spec}: {point:?} {how:?}"), x, y, RESIDUAL);
            }
            for tap in LOGIT_TAPS {
                let [x, y] = [&a, &b].map(|o| o.taps.logits(tap).unwrap());
                close_or_missing(&format!("{spec}: {tap:?}"), x, y, LOGITS);
            }
            close(spec, &values(&a.logits.unwrap()), &values(&b.logits.unwrap()), LOGITS);
        }
    }
}

/// Everything that can be observed of attention.
fn all_of_attention(n_layers: usize) -> ProbePlan {
    (0..n_layers).fold(ProbePlan::default(), |plan, l| {
        plan.attention(AttentionTap::ColumnSum(l))
            .attention(AttentionTap::YoungSum(l, 0))
            .attention(AttentionTap::YoungSum(l, 3))
            .attention(AttentionTap::RowEntropy(l))
            .attention(AttentionTap::RowDistance(l))
            .attention(AttentionTap::Rows(l, 70))
    })
}

fn compare_attention(what: &str, a: &StepOutput, b: &StepOutput, n_layers: usize) {
    for layer in 0..n_layers {
        let [a, b] = [a, b].map(|output| output.taps.attention(layer).unwrap());
        assert_eq!(a.len(), b.len());
        for (row, (a, b)) in a.iter().zip(b).enumerate() {
            assert_eq!(a.len(), b.len());
            for (head, (a, b)) in a.iter().zip(b).enumerate() {
                let what = format!("{what}: layer {layer}, row {row}, head {head}");
                close(&format!("{what}, column sums"), &a.column_sum, &b.column_sum, ATTENTION);
                close(&format!("{what}, entropy"), &a.entropy, &b.entropy, ATTENTION);
                close(&format!("{what}, distance"), &a.distance, &b.distance, ATTENTION);
                close(&format!("{what}, rows"), &a.last_rows, &b.last_rows, ATTENTION);
                assert_eq!(a.young_sums.len(), 2);
                for (age, sums) in &a.young_sums {
                    close(&format!("{what}, age {age}"), sums, &b.young_sums[age], ATTENTION);
                }
            }
        }
    }
}

/// Two rows in one pass, one of them behind a shared prefix and longer than a tile of queries; then heads that hold
/// differently many.
#[test]
fn attention_agrees_over_prefixes_and_evicted_heads() {
    for spec in SPECS {
        let decoders = both(spec);
        let (n_layers, all) = (decoders[0].config().n_layers, tokens(&decoders[0], 200));
        let plan = all_of_attention(n_layers);
        let mut rows = decoders.each_ref().map(|decoder| {
            let mut first = decoder.cache(Scope::Global, Capacity::Growing).unwrap();
            feed(decoder, &mut first, &all[..30], &ProbePlan::default());
            let prefix = Arc::new(Prefix::freeze(first).unwrap());
            let behind = decoder.cache(Scope::PerHead, Capacity::Growing).unwrap().with_prefix(prefix, 25).unwrap();
            [behind, decoder.cache(Scope::PerLayer, Capacity::Growing).unwrap()]
        });
        for step in [&all[..99], &all[99..100], &all[100..107]] {
            let mut outputs = decoders.iter().zip(&mut rows).map(|(decoder, caches)| {
                let inputs = [0, 1].map(|i| RowInput::next(&caches[i], step[i..].to_vec(), LogitsOf::Last));
                let [behind, plain] = caches;
                decoder
                    .forward(
                        &inputs[..if step.len() > 1 { 2 } else { 1 }],
                        &mut if step.len() > 1 { vec![behind, plain] } else { vec![behind] },
                        &plan,
                    )
                    .unwrap()
            });
            let [Some(a), Some(b)] = [outputs.next(), outputs.next()] else { unreachable!("two back-ends") };
            drop(outputs);
            compare_attention(spec, &a, &b, n_layers);
            close(spec, &values(&a.logits.unwrap()), &values(&b.logits.unwrap()), LOGITS);
            for cache in rows.iter_mut().flatten() {
                for set in 0..cache.sets().len() {
                    cache.evict(set, |pos| pos.0 as usize % (3 + set) != 1);
                }
            }
        }
    }
}

#[test]
fn caches_agree_under_every_rotation() {
    for rotation in [Rotation::Position, Rotation::Retained, Rotation::Compacted] {
        let decoders = both(SPECS[0]);
        let all = tokens(&decoders[0], 60);
        let logits = decoders.each_ref().map(|decoder| {
            let mut cache = decoder.cache(Scope::PerHead, Capacity::Growing).unwrap().with_rotation(rotation).unwrap();
            let mut logits = values(&feed(decoder, &mut cache, &all[..40], &ProbePlan::default()).logits.unwrap());
            for token in &all[40..] {
                for set in 0..cache.sets().len() {
                    let oldest = cache.sets()[set].nth(set % 5).unwrap();
                    assert!(cache.remove(set, oldest));
                }
                logits.extend(values(&feed(decoder, &mut cache, &[*token], &ProbePlan::default()).logits.unwrap()));
            }
            logits
        });
        close(&format!("{rotation:?}"), &logits[0], &logits[1], LOGITS);
    }
}

fn generated(decoder: &Decoder, batch: usize, draft: &[u32]) -> Vec<FinishedRow> {
    let specs = (0..5).map(|key| {
        Ok(RowSpec {
            key,
            context: tokens(decoder, 10 + 7 * key),
            cache: decoder.cache(Scope::Global, Capacity::Growing)?,
            max_new: 12 + key,
            stop_ids: vec![2],
            sampling: Sampling::Greedy,
            draft: draft.into(),
        })
    });
    let mut rows = Vec::new();
    let done = |row| -> epikv_model::Result<()> {
        rows.push(row);
        Ok(())
    };
    Session::new(decoder).run(specs, batch, done).unwrap();
    rows.sort_by_key(|row| row.key);
    rows
}

#[test]
fn sessions_generate_the_same_tokens() {
    let [kernels, tensors] = both("random:5,layers=2,vocab=120,context=200");
    let want = generated(&kernels, 1, &[]);
    for (batch, draft) in [(1, &[][..]), (4, &[][..]), (3, &want[0].generated)] {
        for (a, b) in want.iter().zip(generated(&tensors, batch, draft)) {
            assert_eq!((&a.generated, a.finish), (&b.generated, b.finish), "batch {batch}");
            close("margins", &a.margins, &b.margins, LOGITS);
        }
    }
}

/// The relative distance of the logits, as root mean squares.
fn relative(a: &[f32], b: &[f32]) -> f64 {
    let squares = |of: &mut dyn Iterator<Item = f64>| of.map(|x| x * x).sum::<f64>().sqrt();
    let difference = squares(&mut a.iter().zip(b).map(|(a, b)| f64::from(a - b)));
    difference / squares(&mut a.iter().map(|a| f64::from(*a)))
}

#[test]
fn two_bytes_a_number_cost_what_they_may() {
    for (spec, (dtype, tolerance)) in
        SPECS.iter().flat_map(|s| [(Dtype::Bf16, 4e-2), (Dtype::F16, 5e-3)].map(|d| (s, d)))
    {
        let wide = decoder(spec, DeviceName::Tensor, Dtype::F32);
        let narrow = decoder(spec, DeviceName::Tensor, dtype);
        assert!(narrow.bytes() * 2 == wide.bytes(), "{} and {} bytes", narrow.bytes(), wide.bytes());
        let all = tokens(&wide, 50);
        let logits = [&wide, &narrow].map(|decoder| {
            let mut cache = decoder.cache(Scope::PerHead, Capacity::Growing).unwrap();
            let mut all_logits = values(&feed(decoder, &mut cache, &all[..49], &ProbePlan::default()).logits.unwrap());
            all_logits.extend(values(&feed(decoder, &mut cache, &all[49..], &ProbePlan::default()).logits.unwrap()));
            (all_logits, cache.bytes())
        });
        let far = relative(&logits[0].0, &logits[1].0);
        assert!(far < tolerance && far > 0.0, "{spec} in {dtype}: {far:e}");
        assert_eq!(logits[0].1, 2 * logits[1].1, "{dtype}: bytes of the cache");
    }
}

#[test]
fn what_crosses_to_the_host_is_counted() {
    let [kernels, tensors] = both(SPECS[0]);
    for decoder in [&kernels, &tensors] {
        let rows = generated(decoder, 2, &[]);
        let n_logits: usize = rows.iter().map(|row| row.generated.len()).sum();
        let want =
            if decoder.device_name() == DeviceName::Cpu { 0 } else { 4 * decoder.config().vocab_size * n_logits };
        assert_eq!(decoder.bytes_to_host(), want as u64, "logits, and nothing else");
    }
}
