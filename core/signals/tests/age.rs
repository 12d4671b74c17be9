//! Attention received by an age, against sums over the whole n x n matrix of every layer and head.

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_model::taps::{AttentionTap, ProbePlan, Taps};
use epikv_signals::{Chunk, LateSignal, find};

const N_LAYERS: usize = 3;
const N: usize = 70;
const AGES: [usize; 6] = [0, 1, 7, 64, 69, 5000];

/// Weights are f32; a sum has at most 70 of them.
const TOLERANCE: f64 = 1e-5;

fn decoder() -> Decoder {
    let spec = format!("random:5,layers={N_LAYERS},heads=4,kv_heads=2,vocab=512");
    let (config, weights, _) = open(&spec.parse().expect("a spec")).expect("a model");
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit")
}

fn tokens() -> Vec<u32> {
    (0..N as u32).map(|i| 3 + (i * i * 11 + i * 5) % 500).collect()
}

fn pass(decoder: &Decoder, tokens: &[u32], chunk: usize, plan: &ProbePlan, mut each: impl FnMut(&Taps, usize)) {
    let mut cache = decoder.cache(Scope::Global, Capacity::Growing).expect("a cache");
    for part in tokens.chunks(chunk) {
        let input = RowInput::next(&cache, part.to_vec(), LogitsOf::None);
        let output = decoder.forward(&[input], &mut [&mut cache], plan).expect("a pass");
        each(&output.taps, part.len());
    }
}

fn signal(age: usize) -> Box<dyn LateSignal> {
    find(&format!("h2o_attn@age={age}")).expect("any age").late(N_LAYERS).expect("layers").expect("known late")
}

/// All ages recorded in one pass.
fn recorded(decoder: &Decoder, tokens: &[u32], chunk: usize) -> Vec<Vec<Option<f32>>> {
    let mut signals: Vec<_> = AGES.map(signal).into_iter().collect();
    let plan = signals.iter().fold(ProbePlan::default(), |plan, signal| plan.union(&signal.plan()));
    pass(decoder, tokens, chunk, &plan, |taps, n| {
        for signal in &mut signals {
            signal.push(&Chunk::new(taps, 0..n)).expect("what the plan asks for");
        }
    });
    signals.iter_mut().map(|signal| signal.finish()).collect()
}

/// The definition: every weight of the whole matrix, mean over layers and query heads.
fn by_matrix(decoder: &Decoder, tokens: &[u32], age: usize) -> Vec<f64> {
    let n = tokens.len();
    let plan = (0..N_LAYERS).fold(ProbePlan::default(), |plan, l| plan.attention(AttentionTap::Rows(l, n)));
    let mut sums = vec![0.0; n];
    pass(decoder, tokens, n, &plan, |taps, _| {
        for layer in 0..N_LAYERS {
            let row = &taps.attention(layer).expect("observed")[0];
            let n_heads: usize = row.iter().map(|head| head.last_rows.len() / (n * n)).sum();
            assert_eq!(n_heads, 4);
            for matrix in row.iter().flat_map(|head| head.last_rows.chunks_exact(n * n)) {
                for j in 0..n {
                    for t in j..n.min(j + age + 1) {
                        sums[j] += f64::from(matrix[t * n + j]) / (n_heads * N_LAYERS) as f64;
                    }
                }
            }
        }
    });
    sums
}

#[test]
fn every_age_is_a_sum_over_the_matrix_however_the_trace_is_cut() {
    let (decoder, tokens) = (decoder(), tokens());
    for chunk in [1, 9, 64, N] {
        for (age, values) in AGES.into_iter().zip(recorded(&decoder, &tokens, chunk)) {
            for (j, (got, want)) in values.iter().zip(by_matrix(&decoder, &tokens, age)).enumerate() {
                let got = f64::from(got.expect("defined"));
                assert!(
                    (got - want).abs() < TOLERANCE,
                    "age {age}, chunks of {chunk}, token {j}: {got} against {want}"
                );
            }
        }
    }
}

#[test]
fn nothing_after_that_age_changes_a_value() {
    let (decoder, tokens) = (decoder(), tokens());
    let mut other = tokens.clone();
    other[40..].reverse();
    let (whole, changed) = (recorded(&decoder, &tokens, 1), recorded(&decoder, &other, 1));
    for ((age, whole), changed) in AGES.into_iter().zip(&whole).zip(&changed) {
        let known = 40_usize.saturating_sub(age);
        assert_eq!(whole[..known], changed[..known], "age {age}");
        assert!(age > 60 || whole[known] != changed[known], "age {age}: the first token that sees the change");
    }
}

#[test]
fn names_are_exact_and_a_row_is_made_once() {
    let first = find("h2o_attn@age=100").expect("any age");
    assert!(std::ptr::eq(first, find("h2o_attn@age=100").expect("the same")));
    assert_eq!(first.spec.name, "h2o_attn@age=100");
    assert!(first.spec.doc.contains("up to 100 tokens") && first.needs_attention(2).expect("layers"));
    for wrong in ["h2o_attn@age=", "h2o_attn@age=-1", "h2o_attn@age=064", "h2o_attn@age=99999999999", "h2o_attn@64"] {
        assert!(find(wrong).is_err(), "{wrong}");
    }
}
