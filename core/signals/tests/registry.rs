//! What every row of the signal table must keep: names, documentation, streaming and causality.

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, RowCache, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_signals::{Chunk, SIGNALS, Signal};

const N_LAYERS: usize = 4;
/// Longer than the rolling window.
const N_TOKENS: usize = 90;

fn decoder() -> Decoder {
    let (config, weights, _) =
        open(&format!("random:3,layers={N_LAYERS},vocab=512").parse().expect("a spec")).expect("a model");
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit")
}

fn cache(decoder: &Decoder) -> RowCache {
    decoder.cache(Scope::Global, Capacity::Growing).expect("an empty cache")
}

fn tokens(n: usize, seed: u32) -> Vec<u32> {
    (0..n as u32).map(|i| 3 + (i * i * 7 + i * 13 + seed) % 500).collect()
}

/// Every signal of the table at every layer.
fn signals() -> Vec<Box<dyn Signal>> {
    SIGNALS.iter().flat_map(|row| row.all(N_LAYERS).expect("deep enough")).map(|(_, signal)| signal).collect()
}

/// The values of a sequence, fed with exactly the signal's own plan.
fn values(decoder: &Decoder, signal: &mut dyn Signal, tokens: &[u32], chunk: usize) -> Vec<Option<f32>> {
    let mut cache = cache(decoder);
    let mut all = Vec::new();
    for part in tokens.chunks(chunk) {
        let input = RowInput::next(&cache, part.to_vec(), LogitsOf::None);
        let output = decoder.forward(&[input], &mut [&mut cache], &signal.plan()).expect("a pass");
        all.extend(signal.push(&Chunk::new(&output.taps, 0..part.len())).expect("what the plan asks for"));
    }
    all
}

#[test]
fn names_are_unique_and_well_formed_and_everything_is_documented() {
    let mut names: Vec<&str> = SIGNALS.iter().map(|row| row.spec.name).collect();
    for name in &names {
        assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_@=".contains(c)), "{name}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SIGNALS.len());
    for row in SIGNALS {
        assert!(row.spec.doc.len() > 20 && !row.spec.doc.ends_with('.'), "{}", row.spec.name);
        assert!(!row.spec.unit.is_empty() && !row.spec.source.is_empty(), "{}", row.spec.name);
        for (layer, signal) in row.all(N_LAYERS).expect("deep enough") {
            assert_eq!(signal.spec(), row.spec, "layer {layer:?}");
            assert!(!signal.plan().is_empty());
        }
        if let Some(late) = row.late(N_LAYERS).expect("deep enough") {
            assert_eq!(late.spec(), row.spec);
            assert!(!late.plan().is_empty());
        }
    }
}

#[test]
fn any_chunking_gives_the_same_bits() {
    let (decoder, tokens) = (decoder(), tokens(N_TOKENS, 0));
    for mut signal in signals() {
        let whole = values(&decoder, &mut *signal, &tokens, N_TOKENS);
        assert_eq!(whole.len(), N_TOKENS);
        assert!(whole[1..].iter().all(Option::is_some), "{signal:?}");
        assert!(whole.iter().flatten().all(|v| v.is_finite()));
        for chunk in [1, 3] {
            signal.reset();
            assert_eq!(values(&decoder, &mut *signal, &tokens, chunk), whole, "{signal:?} in chunks of {chunk}");
        }
    }
}

#[test]
fn what_comes_later_does_not_change_a_value() {
    let (decoder, tokens) = (decoder(), tokens(N_TOKENS, 0));
    let mut other = tokens.clone();
    other[60..].reverse();
    for mut signal in signals() {
        let whole = values(&decoder, &mut *signal, &tokens, N_TOKENS);
        for (sequence, kept) in [(&tokens[..60], 60), (&tokens[..7], 7), (&other[..], 60)] {
            signal.reset();
            let cut = values(&decoder, &mut *signal, sequence, N_TOKENS);
            assert_eq!(cut[..kept], whole[..kept], "{signal:?} of the first {kept} tokens");
        }
    }
}

#[test]
fn a_row_does_not_see_the_row_packed_beside_it() {
    let decoder = decoder();
    let (first, second) = (tokens(20, 0), tokens(30, 5));
    for mut signal in signals() {
        let alone = values(&decoder, &mut *signal, &second, second.len());
        signal.reset();
        let (mut a, mut b) = (cache(&decoder), cache(&decoder));
        let inputs = [&first, &second].map(|ids| RowInput::next(&a, ids.clone(), LogitsOf::None));
        let output = decoder.forward(&inputs, &mut [&mut a, &mut b], &signal.plan()).expect("a pass");
        let packed = signal.push(&Chunk::new(&output.taps, 20..50).in_row(1)).expect("what the plan asks for");
        assert_eq!(packed, alone, "{signal:?}");
        assert!(
            signal.plan().needs_attention() || signal.push(&Chunk::new(&output.taps, 40..51)).is_err(),
            "the pass has 50 tokens"
        );
    }
}
