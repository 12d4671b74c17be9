//! Attention against a plain f64 computation, and the same bits for any cut, slot order, prefix or thread count.

use epikv_kernels::attention::{AttentionRow, AttentionShape, HeadObservation, Observe, Segment, Slots, attend};

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0) * 2.0
        })
        .collect()
}

struct Case {
    shape: AttentionShape,
    n: usize,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// `n` tokens; q `[n, H, D]`, k and v `[H_kv, n, D]`.
fn case(n_heads: usize, n_kv_heads: usize, head_dim: usize, n: usize) -> Case {
    let shape = AttentionShape { n_heads, n_kv_heads, head_dim, scale: 1.0 / (head_dim as f32).sqrt() };
    Case {
        shape,
        n,
        q: numbers(n * n_heads * head_dim, 1),
        k: numbers(n_kv_heads * n * head_dim, 2),
        v: numbers(n_kv_heads * n * head_dim, 3),
    }
}

impl Case {
    /// Attends for tokens `from..to`, with the first `prefix` keys in a segment of their own.
    fn run(&self, from: usize, to: usize, prefix: usize, observe: &Observe) -> (Vec<f32>, Vec<HeadObservation>) {
        let (d, width) = (self.shape.head_dim, self.shape.n_heads * self.shape.head_dim);
        let heads = (0..self.shape.n_kv_heads)
            .map(|h| {
                let of = |all: &'_ [f32]| -> std::ops::Range<usize> {
                    h * self.n * d..(h + 1) * self.n * d % (all.len() + 1)
                };
                let (k, v) = (&self.k[of(&self.k)], &self.v[of(&self.v)]);
                [
                    Segment { k: &k[..prefix * d], v: &v[..prefix * d], slots: Slots::First(prefix) },
                    Segment { k: &k[prefix * d..], v: &v[prefix * d..], slots: Slots::First(to - prefix) },
                ]
            })
            .collect();
        let row = AttentionRow { q: &self.q[from * width..to * width], heads };
        let mut out = vec![f32::NAN; (to - from) * width];
        let seen = attend(&[row], self.shape, observe, &mut out);
        (out, seen.into_iter().next().unwrap_or_default())
    }

    /// Output and weights of one token and query head in f64.
    fn plain(&self, t: usize, h: usize) -> (Vec<f64>, Vec<f64>) {
        let (d, kv) = (self.shape.head_dim, h / (self.shape.n_heads / self.shape.n_kv_heads));
        let q = &self.q[(t * self.shape.n_heads + h) * d..][..d];
        let row = |all: &'_ [f32], j: usize| -> Vec<f64> {
            all[(kv * self.n + j) * d..][..d].iter().map(|&x| f64::from(x)).collect()
        };
        let s: Vec<f64> = (0..=t)
            .map(|j| {
                row(&self.k, j).iter().zip(q).map(|(k, &q)| k * f64::from(q)).sum::<f64>() * f64::from(self.shape.scale)
            })
            .collect();
        let max = s.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let e: Vec<f64> = s.iter().map(|x| (x - max).exp()).collect();
        let z: f64 = e.iter().sum();
        let p: Vec<f64> = e.iter().map(|x| x / z).collect();
        let o = (0..d).map(|c| (0..=t).map(|j| p[j] * row(&self.v, j)[c]).sum()).collect();
        (o, p)
    }
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn matches_plain_arithmetic() {
    for (heads, kv, d, n) in [(4, 2, 16, 37), (9, 3, 64, 70), (2, 2, 20, 19), (6, 1, 8, 9), (3, 3, 6, 12)] {
        let case = case(heads, kv, d, n);
        let (out, _) = case.run(0, n, 0, &Observe::default());
        for t in 0..n {
            for h in 0..heads {
                let (want, _) = case.plain(t, h);
                for c in 0..d {
                    let got = f64::from(out[(t * heads + h) * d + c]);
                    assert!((got - want[c]).abs() < 2e-6, "{heads}/{kv} D={d} token {t} head {h}: {got} {}", want[c]);
                }
            }
        }
    }
}

#[test]
fn chunks_prefixes_and_threads_change_no_bit() {
    for (heads, kv, d) in [(9, 3, 64), (4, 2, 16), (4, 4, 12)] {
        let n = 61;
        let case = case(heads, kv, d, n);
        let (all, _) = case.run(0, n, 0, &Observe::default());
        let width = heads * d;
        for cut in [1, 2, 7, 8, 9, 30, 60] {
            let (first, _) = case.run(0, cut, 0, &Observe::default());
            let (second, _) = case.run(cut, n, cut.min(5), &Observe::default());
            assert_eq!(bits(&[first, second].concat()), bits(&all), "cut at {cut}");
        }
        let single: Vec<f32> = (0..n).flat_map(|t| case.run(t, t + 1, t / 2, &Observe::default()).0).collect();
        assert_eq!(bits(&single), bits(&all), "one by one");
        let pool = rayon_pool(3);
        assert_eq!(bits(&pool.install(|| case.run(0, n, 17, &Observe::default()).0)), bits(&all));
        assert_eq!(case.run(0, n, 0, &Observe::default()).0.len(), n * width);
    }
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool")
}

#[test]
fn slot_order_changes_no_bit() {
    let case = case(4, 2, 16, 23);
    let d = 16;
    let (want, _) = case.run(22, 23, 0, &Observe::default());
    // Key j is stored at slot (j * 7) mod 31, the rest of the storage is garbage.
    let order: Vec<u32> = (0..23).map(|j| (j * 7) % 31).collect();
    let scatter = |all: &[f32], h: usize| {
        let mut stored = vec![1e30_f32; 31 * d];
        for (j, &slot) in order.iter().enumerate() {
            stored[slot as usize * d..][..d].copy_from_slice(&all[(h * 23 + j) * d..][..d]);
        }
        stored
    };
    let stores: Vec<(Vec<f32>, Vec<f32>)> = (0..2).map(|h| (scatter(&case.k, h), scatter(&case.v, h))).collect();
    let heads = stores
        .iter()
        .map(|(k, v)| {
            [Segment { k: &[], v: &[], slots: Slots::First(0) }, Segment { k, v, slots: Slots::List(&order) }]
        })
        .collect();
    let mut out = vec![0.0; 64];
    attend(&[AttentionRow { q: &case.q[22 * 64..], heads }], case.shape, &Observe::default(), &mut out);
    assert_eq!(bits(&out), bits(&want));
}

#[test]
fn observations_are_the_weights() {
    let (heads, kv, n) = (4, 2, 21);
    let case = case(heads, kv, 16, n);
    let observe = Observe { column_sum: true, ages: vec![0, 2], entropy: true, distance: true, last_rows: 3 };
    let (out, seen) = case.run(0, n, 4, &observe);
    assert_eq!(bits(&out), bits(&case.run(0, n, 4, &Observe::default()).0), "observing changes no bit");
    for h in 0..heads {
        let (head, g) = (&seen[h / 2], h % 2);
        let (mut sums, mut own, mut young) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for t in 0..n {
            let (_, p) = case.plain(t, h);
            let distance: f64 = p.iter().enumerate().map(|(j, p)| p * (t - j) as f64).sum();
            assert!((f64::from(head.distance[t * 2 + g]) - distance).abs() < 1e-4);
            let entropy: f64 = p.iter().map(|p| -p * p.ln()).sum();
            assert!((f64::from(head.entropy[t * 2 + g]) - entropy).abs() < 1e-5);
            for (j, p) in p.iter().enumerate() {
                sums[j] += p;
                own[j] += if t == j { *p } else { 0.0 };
                young[j] += if t - j <= 2 { *p } else { 0.0 };
                if t >= n - 3 {
                    let got = f64::from(head.last_rows[(g * 3 + t - (n - 3)) * n + j]);
                    assert!((got - p).abs() < 1e-6);
                }
            }
        }
        for (got, want) in [(&head.column_sum, &sums), (&head.young_sums[&0], &own), (&head.young_sums[&2], &young)] {
            for (got, want) in got[g * n..].iter().zip(want) {
                assert!((f64::from(*got) - want).abs() < 1e-5);
            }
        }
    }
}
