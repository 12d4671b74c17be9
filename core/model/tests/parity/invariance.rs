//! The bits of a row do not depend on other rows, on chunks, on threads, on a shared prefix or on where slots lie.

use std::sync::Arc;

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Pos, Prefix, RowCache, Scope};
use epikv_model::decoder::{AttentionKernel, Decoder};
use epikv_model::linear::WeightFormat;
use epikv_model::load::{ModelRef, open};
use epikv_model::taps::ProbePlan;

use crate::golden::values;

const SPECS: &[&str] = &[
    "random:1,layers=3,heads=9,kv_heads=3,hidden=576,ffn=1536,vocab=700",
    "random:2,layers=2,heads=4,kv_heads=2,hidden=64,vocab=272",
    "random:3,layers=2,heads=6,kv_heads=1,hidden=72,head_dim=20,vocab=99,arch=qwen2",
    "random:4,layers=2,heads=4,kv_heads=4,hidden=96,head_dim=32,vocab=130,arch=qwen3,tied=true",
];

fn decoder(spec: &str, format: WeightFormat) -> Decoder {
    let (config, weights, _) = open(&spec.parse::<ModelRef>().unwrap()).unwrap();
    Decoder::load(config, &*weights, &Device::Cpu, format).unwrap()
}

fn tokens(decoder: &Decoder, n: usize, seed: usize) -> Vec<u32> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729 + i * i) % decoder.config().vocab_size) as u32).collect()
}

fn cache(decoder: &Decoder) -> RowCache {
    decoder.cache(Scope::Global, Capacity::Growing).unwrap()
}

/// Bits of the logits after each of the last `n` tokens.
fn feed(decoder: &Decoder, cache: &mut RowCache, tokens: &[u32], n: usize) -> Vec<u32> {
    let row = RowInput::next(cache, tokens.to_vec(), if n == 0 { LogitsOf::None } else { LogitsOf::LastN(n) });
    let output = decoder.forward(&[row], &mut [cache], &ProbePlan::default()).unwrap();
    output.logits.map_or(Vec::new(), |l| values(&l).iter().map(|x| x.to_bits()).collect())
}

#[test]
fn looking_at_every_attention_weight_changes_no_bit() {
    for spec in SPECS {
        let (fused, explicit) = (decoder(spec, WeightFormat::F32), decoder(spec, WeightFormat::F32));
        let explicit = explicit.with_kernel(AttentionKernel::Explicit);
        let row = tokens(&fused, 40, 3);
        let fed = |decoder: &Decoder| {
            let mut cache = cache(decoder);
            // A prompt at once, then a token at a time.
            let mut bits = feed(decoder, &mut cache, &row[..30], 30);
            bits.extend(row[30..].iter().flat_map(|token| feed(decoder, &mut cache, &[*token], 1)));
            bits
        };
        assert_eq!(fed(&explicit), fed(&fused), "{spec}");
        let mut cache = cache(&explicit);
        let input = RowInput::next(&cache, row, LogitsOf::None);
        let output = explicit.forward(&[input], &mut [&mut cache], &ProbePlan::default()).unwrap();
        assert!(output.taps.attention(0).is_none(), "nothing that was not asked for is handed out");
    }
}

#[test]
fn company_chunks_and_threads_change_no_bit() {
    for spec in SPECS {
        for format in [WeightFormat::F32, WeightFormat::Q8_0] {
            if format == WeightFormat::Q8_0 && !spec.contains("hidden=64") {
                continue;
            }
            let decoder = decoder(spec, format);
            let lengths = [33, 1, 70, 8];
            let rows: Vec<Vec<u32>> = lengths.iter().enumerate().map(|(i, &n)| tokens(&decoder, n, i)).collect();
            let alone: Vec<Vec<u32>> =
                rows.iter().map(|row| feed(&decoder, &mut cache(&decoder), row, row.len())).collect();

            let mut caches: Vec<RowCache> = rows.iter().map(|_| cache(&decoder)).collect();
            let inputs: Vec<RowInput> =
                rows.iter().zip(&caches).map(|(r, c)| RowInput::next(c, r.clone(), LogitsOf::LastN(r.len()))).collect();
            let mut borrowed: Vec<&mut RowCache> = caches.iter_mut().collect();
            let packed = decoder.forward(&inputs, &mut borrowed, &ProbePlan::default()).unwrap();
            let packed: Vec<u32> = values(&packed.logits.unwrap()).iter().map(|x| x.to_bits()).collect();
            assert_eq!(packed, alone.concat(), "{spec}: packed");

            for chunk in [1, 2, 7, 32] {
                let mut own = cache(&decoder);
                let got: Vec<u32> = rows[2].chunks(chunk).flat_map(|c| feed(&decoder, &mut own, c, c.len())).collect();
                assert_eq!(got, alone[2], "{spec}: chunks of {chunk}");
            }
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let got = pool.install(|| feed(&decoder, &mut cache(&decoder), &rows[2], 70));
                assert_eq!(got, alone[2], "{spec}: {threads} threads");
            }
        }
    }
}

#[test]
fn a_shared_prefix_changes_no_bit() {
    for spec in SPECS {
        let decoder = decoder(spec, WeightFormat::F32);
        let all = tokens(&decoder, 90, 5);
        let want = feed(&decoder, &mut cache(&decoder), &all, 10);
        let mut first = cache(&decoder);
        feed(&decoder, &mut first, &all[..75], 0);
        let prefix = Arc::new(Prefix::freeze(first).unwrap());
        for used in [0, 1, 40, 64, 75] {
            let mut row = cache(&decoder).with_prefix(prefix.clone(), used).unwrap();
            assert_eq!(feed(&decoder, &mut row, &all[used..], 10), want, "{spec}: {used} shared");
        }
    }
}

#[test]
fn slots_and_compaction_change_no_bit() {
    for scope in [Scope::Global, Scope::PerLayer, Scope::PerHead] {
        let decoder = decoder(SPECS[1], WeightFormat::F32);
        let all = tokens(&decoder, 60, 9);
        let keep = |pos: Pos| pos.0 < 5 || pos.0.is_multiple_of(3) || pos.0 > 36;
        let logits = |capacity: Capacity, compact: bool| {
            let mut row = decoder.cache(scope, capacity).unwrap();
            feed(&decoder, &mut row, &all[..40], 0);
            for set in 0..row.sets().len() {
                row.evict(set, keep);
            }
            if compact {
                row.compact(|_| 40).unwrap();
            }
            all[40..].iter().flat_map(|&t| feed(&decoder, &mut row, &[t], 1)).collect::<Vec<_>>()
        };
        let want = logits(Capacity::Growing, false);
        assert_eq!(logits(Capacity::Fixed(44), false), want, "{scope:?}: freed slots are taken again");
        assert_eq!(logits(Capacity::Fixed(44), true), want, "{scope:?}: compacted");
        let mut whole = decoder.cache(scope, Capacity::Growing).unwrap();
        feed(&decoder, &mut whole, &all[..40], 0);
        let full: Vec<u32> = all[40..].iter().flat_map(|&t| feed(&decoder, &mut whole, &[t], 1)).collect();
        assert_ne!(full, want, "{scope:?}: evicting matters");
    }
}

#[test]
fn a_full_cache_says_so_and_stays_as_it_was() {
    let decoder = decoder(SPECS[1], WeightFormat::F32);
    let mut row = decoder.cache(Scope::Global, Capacity::Fixed(10)).unwrap();
    feed(&decoder, &mut row, &tokens(&decoder, 8, 1), 0);
    let input = RowInput::next(&row, tokens(&decoder, 3, 2), LogitsOf::Last);
    let error = decoder.forward(&[input], &mut [&mut row], &ProbePlan::default()).unwrap_err();
    assert_eq!(error.to_string(), "cache full: 3 tokens to append, 2 of 10 slots free");
    assert_eq!((row.len(0), row.last()), (8, Some(Pos(7))));
    assert_eq!(row.bytes(), 10 * decoder.config().kv_bytes_per_token());
}
