//! Properties that hold for any input.

use epikv_stats::kendall::kendall_tau_b;
use epikv_stats::paired::sign_flip_p;
use epikv_stats::resample::resample_counts;
use epikv_stats::rolling::rolling;
use epikv_stats::{
    BinaryRanks, Ema, EmaInit, Midranks, PooledSort, RankScratch, Rolling, RollingSpec, Ties, ema, midranks,
    ordered_key, sort_keys, spearman, top_k,
};
use proptest::prelude::*;

/// Small integers, so that ties abound, both zeros among them; and plain floats.
fn tied(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f32>> {
    let value = prop_oneof![
        4 => (-4_i8..5).prop_map(f32::from),
        1 => Just(-0.0_f32),
        3 => -1e3_f32..1e3,
        1 => Just(f32::INFINITY),
    ];
    prop::collection::vec(value, n)
}

fn labelled(n: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<f32>, Vec<bool>)> {
    tied(n).prop_flat_map(|x| {
        let n = x.len();
        (Just(x), prop::collection::vec(any::<bool>(), n))
    })
}

fn two_columns() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    labelled(2..60).prop_flat_map(|(x, _)| {
        let n = x.len();
        (Just(wide(&x)), tied(n..n + 1).prop_map(|y| wide(&y)))
    })
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}

fn as_numbers(labels: &[bool]) -> Vec<f64> {
    labels.iter().map(|&l| f64::from(u8::from(l))).collect()
}

fn binary(x: &[f32], labels: &[bool]) -> BinaryRanks {
    BinaryRanks::from_f32(x, labels, &mut RankScratch::default()).expect("no NaN")
}

fn spec(window: usize, ddof: usize) -> RollingSpec {
    RollingSpec::new(window).expect("not empty").with_ddof(ddof)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ranks_sum_to_a_triangle(x in tied(0..200)) {
        let ranks = Midranks::new(&wide(&x)).expect("no NaN");
        let n = x.len() as u64;
        prop_assert_eq!(ranks.twice().iter().sum::<u64>(), n * (n + 1));
    }

    #[test]
    fn rho_is_symmetric_and_bounded((x, y) in two_columns()) {
        let rho = spearman(&x, &y);
        prop_assert_eq!(rho, spearman(&y, &x));
        prop_assert!(rho.is_none_or(|r| (-1.0..=1.0).contains(&r)));
        prop_assert!(spearman(&x, &x).is_none_or(|r| r.to_bits() == 1.0_f64.to_bits()));
    }

    #[test]
    fn rho_is_invariant_under_monotone_maps((x, y) in two_columns()) {
        let up: Vec<f64> = x.iter().map(|v| v.powi(3) + 2.0 * v).collect();
        let down: Vec<f64> = y.iter().map(|v| -v).collect();
        prop_assert_eq!(spearman(&up, &y), spearman(&x, &y));
        prop_assert_eq!(spearman(&x, &down), spearman(&x, &y).map(|r| -r));
    }

    #[test]
    fn binary_form_equals_general_form((x, labels) in labelled(0..300)) {
        let ranks = binary(&x, &labels);
        let general = spearman(&wide(&x), &as_numbers(&labels));
        prop_assert_eq!(ranks.rho().map(f64::to_bits), general.map(f64::to_bits));
        prop_assert_eq!(Some(ranks), BinaryRanks::from_f64(&wide(&x), &labels));
    }

    #[test]
    fn rho_is_the_mann_whitney_z((x, labels) in labelled(2..200)) {
        let ranks = binary(&x, &labels);
        if let (Some(rho), Some(u)) = (ranks.rho(), ranks.u_pos()) {
            let (n, m, k) = (ranks.n as f64, ranks.n_pos as f64, ranks.n_neg() as f64);
            let variance = m * k / 12.0 * (n + 1.0 - ranks.tie_sum as f64 / (n * (n - 1.0)));
            let z = (u - m * k / 2.0) / variance.sqrt();
            prop_assert!((rho * (n - 1.0).sqrt() - z).abs() <= 1e-11 * z.abs().max(1.0));
        }
    }

    #[test]
    fn auc_is_the_share_of_ordered_pairs((x, labels) in labelled(0..60)) {
        let mut twice_wins = 0_u32;
        let mut pairs = 0_u32;
        for (a, _) in x.iter().zip(&labels).filter(|(_, l)| **l) {
            for (b, _) in x.iter().zip(&labels).filter(|(_, l)| !**l) {
                pairs += 1;
                twice_wins += if a > b { 2 } else { u32::from(a >= b) };
            }
        }
        let want = (pairs > 0).then(|| f64::from(twice_wins) / (2.0 * f64::from(pairs)));
        prop_assert_eq!(binary(&x, &labels).auc(), want);
    }

    #[test]
    fn radix_sort_equals_the_standard_sort(x in prop::collection::vec(any::<f32>(), 0..3000)) {
        let mut keys: Vec<u32> = x.iter().map(|&v| ordered_key(v)).collect();
        let mut want = keys.clone();
        want.sort_unstable();
        let mut scratch = vec![0; keys.len()];
        sort_keys(&mut keys, &mut scratch);
        prop_assert_eq!(keys, want);
    }

    #[test]
    fn long_columns_equal_the_general_form((x, labels) in labelled(1500..2500)) {
        prop_assert_eq!(Some(binary(&x, &labels)), BinaryRanks::from_f64(&wide(&x), &labels));
    }

    #[test]
    fn a_resample_equals_ranking_it(traces in prop::collection::vec(labelled(0..20), 1..6), seed in any::<u64>()) {
        let borrowed: Vec<(&[f32], &[bool])> = traces.iter().map(|(x, l)| (x.as_slice(), l.as_slice())).collect();
        let sorted = PooledSort::new(&borrowed).expect("no NaN");
        let counts = resample_counts(seed, 0, traces.len());
        let (mut signal, mut labels) = (Vec::new(), Vec::new());
        for ((x, l), &count) in traces.iter().zip(&counts) {
            for _ in 0..count {
                signal.extend_from_slice(x);
                labels.extend_from_slice(l);
            }
        }
        prop_assert_eq!(sorted.with_multiplicity(&counts), binary(&signal, &labels));
    }

    #[test]
    fn streaming_equals_batch_bit_for_bit(
        x in prop::collection::vec(-1e6_f64..1e6, 0..150),
        window in 1_usize..70,
        ddof in 0_usize..2,
        lagged in any::<bool>(),
    ) {
        let spec = if lagged { spec(window, ddof).lagged() } else { spec(window, ddof) };
        let bits = |p: Option<epikv_stats::RollingPoint>| p.map(|p| [p.mean, p.sd, p.z].map(f64::to_bits));
        let mut stream = Rolling::new(spec);
        for (point, &v) in rolling(&x, spec).into_iter().zip(&x) {
            prop_assert_eq!(bits(stream.push(v)), bits(point));
        }
    }

    #[test]
    fn rolling_is_causal(
        x in prop::collection::vec(-10.0_f64..10.0, 2..100),
        later in prop::collection::vec(-1e9_f64..1e9, 100),
        cut in any::<prop::sample::Index>(),
    ) {
        let t = cut.index(x.len());
        let mut changed = x.clone();
        changed[t..].copy_from_slice(&later[t..x.len()]);
        let (a, b) = (rolling(&x, spec(16, 0)), rolling(&changed, spec(16, 0)));
        prop_assert_eq!(&a[..t], &b[..t]);
    }

    #[test]
    fn rolling_z_is_bounded(x in prop::collection::vec(-1e3_f64..1e3, 1..100)) {
        for point in rolling(&x, spec(64, 0)).into_iter().flatten() {
            prop_assert!(point.z.abs() <= 63_f64.sqrt());
        }
    }

    #[test]
    fn ema_streams_and_stays_inside(x in prop::collection::vec(-1e3_f64..1e3, 1..60), decay in 0.0_f64..0.999) {
        for init in [EmaInit::First, EmaInit::Debiased] {
            let whole = ema::ema(&x, decay, init).expect("decay in range");
            let mut stream = Ema::new(decay, init).expect("decay in range");
            let (lo, hi) = x.iter().fold((f64::MAX, f64::MIN), |(lo, hi), &v| (lo.min(v), hi.max(v)));
            for (&v, want) in x.iter().zip(whole) {
                let got = stream.push(v).expect("finite");
                prop_assert_eq!(Some(got.to_bits()), want.map(f64::to_bits));
                prop_assert!(got >= lo - 1e-9 && got <= hi + 1e-9);
            }
        }
    }

    #[test]
    fn top_k_is_the_head_of_the_sort(x in tied(0..80), k in 0_usize..90) {
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse((ordered_key(x[i]), i)));
        order.truncate(k);
        order.sort_unstable();
        prop_assert_eq!(top_k(&x, k, Ties::Newer), Some(order));
    }

    #[test]
    fn tau_and_rho_agree_in_sign_at_the_ends(x in tied(2..40)) {
        let x = wide(&x);
        let reversed: Vec<f64> = x.iter().map(|v| -v).collect();
        prop_assert!(kendall_tau_b(&x, &x).is_none_or(|t| (t - 1.0).abs() < 1e-15));
        prop_assert!(kendall_tau_b(&x, &reversed).is_none_or(|t| (t + 1.0).abs() < 1e-15));
    }

    #[test]
    fn sign_flips_equal_enumeration(d in prop::collection::vec(-5_i8..6, 0..11)) {
        let d: Vec<f64> = d.into_iter().map(f64::from).collect();
        let bound = d.iter().sum::<f64>().abs();
        let all = 1_u32 << d.len();
        let count = (0..all)
            .filter(|mask| {
                let sum: f64 = d.iter().enumerate().map(|(i, d)| if mask >> i & 1 == 1 { *d } else { -d }).sum();
                sum.abs() >= bound
            })
            .count();
        let want = count as f64 / f64::from(all);
        prop_assert!((sign_flip_p(&d).expect("few") - want).abs() < 1e-12);
    }

    #[test]
    fn nan_is_never_ranked(mut x in prop::collection::vec(-1.0_f64..1.0, 1..20), at in any::<prop::sample::Index>()) {
        let at = at.index(x.len());
        x[at] = f64::NAN;
        prop_assert_eq!(midranks(&x), None);
    }
}
