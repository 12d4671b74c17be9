//! The fast product against its definition, bit by bit, over shapes, row counts, packings and threads.

use epikv_kernels::gemm::{PackedWeights, matmul, matmul_reference};
use proptest::prelude::*;

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect()
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| x.to_bits()).collect()
}

fn product(x: &[f32], w: &PackedWeights, bias: Option<&[f32]>) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len() / w.n_inputs() * w.n_outputs()];
    matmul(x, w, bias, &mut out);
    out
}

/// Stands for rounding to f16: any function will do, since both sides use it.
fn coarse(v: f32) -> f32 {
    f32::from_bits(v.to_bits() & 0xFFFF_E000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn equals_the_definition(rows in 1_usize..20, k in prop_oneof![1_usize..70, 250_usize..800], n in 1_usize..90, with_bias: bool, seed: u64) {
        let w = PackedWeights::f32(&numbers(n * k, seed), n, k);
        let (x, bias) = (numbers(rows * k, seed ^ 1), numbers(n, seed ^ 2));
        let bias = with_bias.then_some(bias.as_slice());
        let mut want = vec![0.0; rows * n];
        matmul_reference(&x, &w, bias, &mut want);
        prop_assert_eq!(bits(&product(&x, &w, bias)), bits(&want));
    }

    #[test]
    fn q8_equals_f32_on_the_rounded_weights(rows in 1_usize..9, blocks in 1_usize..4, n in 1_usize..70, seed: u64) {
        let k = 32 * blocks;
        let q8 = PackedWeights::q8(&numbers(n * k, seed), n, k, coarse).expect("whole blocks");
        let rounded: Vec<f32> = (0..n * k).map(|i| q8.get(i / k, i % k)).collect();
        let f32s = PackedWeights::f32(&rounded, n, k);
        let x = numbers(rows * k, seed ^ 1);
        prop_assert_eq!(bits(&product(&x, &q8, None)), bits(&product(&x, &f32s, None)));
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_company_and_on_any_number_of_threads() {
    for (n, k) in [(576, 576), (192, 576), (1536, 576), (576, 1536), (130, 64), (7, 3)] {
        let w = PackedWeights::f32(&numbers(n * k, 5), n, k);
        let x = numbers(211 * k, 6);
        let all = product(&x, &w, None);
        let alone: Vec<f32> = x.chunks_exact(k).flat_map(|row| product(row, &w, None)).collect();
        assert_eq!(bits(&all), bits(&alone), "{n} x {k}: 211 rows at once and one by one");
        for rows in [2, 3, 5, 6, 7, 13, 96, 97, 190] {
            let part = product(&x[k * 11..][..k * rows], &w, None);
            assert_eq!(bits(&part), bits(&all[n * 11..][..n * rows]), "{n} x {k}: {rows} rows");
        }
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            assert_eq!(bits(&pool.install(|| product(&x, &w, None))), bits(&all), "{threads} threads");
        }
    }
}

#[test]
fn q8_refuses_a_partial_block() {
    assert_eq!(PackedWeights::q8(&[0.0; 40], 1, 40, coarse).expect_err("40 inputs").n_inputs, 40);
}

#[test]
fn q8_of_zeros_is_zero_and_extremes_are_kept() {
    let mut row = [0.0_f32; 64];
    row[33] = -2.0;
    let w = PackedWeights::q8(&row, 1, 64, |v| v).expect("whole blocks");
    assert_eq!((w.get(0, 0), w.get(0, 33)), (0.0, -2.0));
}
