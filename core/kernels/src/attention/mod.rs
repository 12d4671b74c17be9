//! Causal attention of packed rows over cached keys and values.
//!
//! For a query `q` and the visible keys `k_0 .. k_{n-1}` in order of their positions:
//!
//! - `s_j = scale * dot(q, k_j)`, the dot product in lane order ([`crate::lanes`]);
//! - `p = softmax(s)` ([`crate::pointwise::softmax`]);
//! - `o = sum_j p_j v_j`, one chain per channel over `j`.
//!
//! Keys may lie in a shared prefix and in slots of any order: only the order of positions counts, so evicting into free
//! slots, compacting or sharing a prefix changes no bit.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod observe;
mod portable;

use rayon::prelude::*;

use crate::disjoint::Disjoint;
use crate::lanes::LANES;
use crate::pointwise::softmax;

pub use observe::{HeadObservation, Observe};

/// Tokens that a work item takes together when nothing is observed.
const TOKEN_BLOCK: usize = 8;

/// Values that stay in the first-level cache while all queries of a block read them.
const VALUE_TILE: usize = 32;

/// Keys that a score step takes together.
pub(crate) const KEY_TILE: usize = 8;

/// Below this many multiply-adds attention runs on the calling thread.
const SERIAL_BELOW: usize = 1 << 16;

/// Sizes shared by all rows.
#[derive(Debug, Clone, Copy)]
pub struct AttentionShape {
    /// Query heads `H`.
    pub n_heads: usize,
    /// Key/value heads; query head `h` reads KV head `h / (H / n_kv_heads)`.
    pub n_kv_heads: usize,
    /// Head size `D`.
    pub head_dim: usize,
    /// Factor of the scores, usually `1 / sqrt(D)`.
    pub scale: f32,
}

/// Which stored vectors are visible, in order of positions.
#[derive(Debug, Clone, Copy)]
pub enum Slots<'a> {
    /// The first `n`, in storage order.
    First(usize),
    /// These.
    List(&'a [u32]),
}

impl Slots<'_> {
    fn len(&self) -> usize {
        match self {
            Self::First(n) => *n,
            Self::List(list) => list.len(),
        }
    }
}

/// Stored keys and values of one KV head.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// Keys `[capacity, D]`, after rotation.
    pub k: &'a [f32],
    /// Values `[capacity, D]`.
    pub v: &'a [f32],
    /// The visible ones.
    pub slots: Slots<'a>,
}

/// One row of the batch: its new tokens and, for each KV head, everything stored, the new tokens included.
#[derive(Debug)]
pub struct AttentionRow<'a> {
    /// Queries `[T, H, D]` of the new tokens, after rotation.
    pub q: &'a [f32],
    /// For each KV head a shared prefix (possibly empty) and the row's own slots. Together they list all visible keys in
    /// order of positions; the last `T` are those of the new tokens, so token `t` sees all but the last `T - 1 - t`.
    pub heads: Vec<[Segment<'a>; 2]>,
}

/// Attends for all rows and writes `[sum T, H, D]`; returns what was asked to be observed, by row and KV head.
///
/// # Panics
/// If shapes disagree or a slot is outside its storage.
pub fn attend<'a>(
    rows: &[AttentionRow<'a>],
    shape: AttentionShape,
    observe: &Observe,
    out: &mut [f32],
) -> Vec<Vec<HeadObservation>> {
    let token_width = shape.n_heads * shape.head_dim;
    let mut items = Vec::new();
    let (mut first_token, mut work) = (0, 0);
    for (r, row) in rows.iter().enumerate() {
        let n_tokens = check(row, shape);
        // Column sums run over all tokens of a row in order, so an observed row is not cut.
        let block = if observe.any() { n_tokens } else { TOKEN_BLOCK };
        for head in 0..shape.n_kv_heads {
            for from in (0..n_tokens).step_by(block.max(1)) {
                let to = n_tokens.min(from + block);
                items.push(Item { row: r, head, tokens: from..to, n_tokens, first_token });
            }
        }
        work += n_tokens * row.heads.iter().map(keys).max().unwrap_or(0) * token_width;
        first_token += n_tokens;
    }
    assert_eq!(out.len(), first_token * token_width, "attend: out has the wrong length");
    let target = Disjoint::new(out);
    let run =
        |scratch: &mut Scratch<'a>, item: &Item| (item.row, item.run(&rows[item.row], shape, observe, target, scratch));
    let results: Vec<_> = if work < SERIAL_BELOW || rayon::current_num_threads() == 1 {
        let mut scratch = Scratch::default();
        items.iter().map(|item| run(&mut scratch, item)).collect()
    } else {
        items.par_iter().map_init(Scratch::default, run).collect()
    };
    let mut observed: Vec<Vec<HeadObservation>> = rows.iter().map(|_| Vec::new()).collect();
    if observe.any() {
        for (row, observation) in results {
            observed[row].push(observation);
        }
    }
    observed
}

fn keys(segments: &[Segment<'_>; 2]) -> usize {
    segments[0].slots.len() + segments[1].slots.len()
}

/// Checks one row against the shape and returns its number of new tokens.
fn check(row: &AttentionRow<'_>, shape: AttentionShape) -> usize {
    let d = shape.head_dim;
    let n_tokens = row.q.len() / (shape.n_heads * d);
    assert_eq!(row.q.len(), n_tokens * shape.n_heads * d, "attend: q is not whole tokens");
    assert_eq!(row.heads.len(), shape.n_kv_heads, "attend: one pair of segments a KV head");
    for segments in &row.heads {
        assert!(keys(segments) >= n_tokens, "attend: fewer keys than new tokens");
        for s in segments {
            let stored = s.k.len() / d;
            assert!(s.k.len() == stored * d && s.v.len() == s.k.len(), "attend: storage is not whole vectors");
            let last = match s.slots {
                Slots::First(n) => n,
                Slots::List(list) => list.iter().max().map_or(0, |&m| m as usize + 1),
            };
            assert!(last <= stored, "attend: slot {last} of {stored}");
        }
    }
    n_tokens
}

/// Buffers that the items of a thread share, so that a decode step does not ask for memory at every head.
#[derive(Default)]
struct Scratch<'a> {
    /// Visible keys in order of positions, and then the last one again up to a whole tile.
    keys: Vec<&'a [f32]>,
    /// Visible values in order of positions.
    values: Vec<&'a [f32]>,
    /// A tile of keys, `[D, KEY_TILE]`.
    columns: Vec<[f32; KEY_TILE]>,
    /// `[queries, keys rounded up]`; what is not written for an item is not read for it either.
    scores: Vec<f32>,
    /// `[queries, D]`.
    sums: Vec<f32>,
}

/// Some tokens of one row for one KV head and its query heads.
struct Item {
    row: usize,
    head: usize,
    tokens: std::ops::Range<usize>,
    n_tokens: usize,
    first_token: usize,
}

impl Item {
    fn run<'a>(
        &self,
        row: &AttentionRow<'a>,
        shape: AttentionShape,
        observe: &Observe,
        out: Disjoint,
        scratch: &mut Scratch<'a>,
    ) -> HeadObservation {
        let (d, group) = (shape.head_dim, shape.n_heads / shape.n_kv_heads);
        let segments = &row.heads[self.head];
        let n_keys = keys(segments);
        let mut observation = HeadObservation::new(observe, group, self.n_tokens, n_keys);
        let Scratch { keys, values, columns, scores, sums } = scratch;
        gather(segments, d, n_keys - (self.n_tokens - self.tokens.end), keys, values);
        // Queries of a block, token-major: (token, query head of the group).
        for from in self.tokens.clone().step_by(TOKEN_BLOCK) {
            let tokens = from..self.tokens.end.min(from + TOKEN_BLOCK);
            let n_queries = tokens.len() * group;
            let query = |i: usize| {
                let at = ((tokens.start + i / group) * shape.n_heads + self.head * group + i % group) * d;
                &row.q[at..at + d]
            };
            let visible = |i: usize| n_keys - (self.n_tokens - 1 - (tokens.start + i / group));
            let most = visible(n_queries - 1);
            let stride = most.next_multiple_of(KEY_TILE);
            scores.resize(n_queries * stride, 0.0);
            let (tiles, _) = keys.as_chunks::<KEY_TILE>();
            for (key, tile) in (0..most).step_by(KEY_TILE).zip(tiles) {
                // Scores of keys that a query does not see are never read.
                let seeing = (0..n_queries).filter(|&i| visible(i) > key);
                if n_queries * LANES >= d {
                    transpose(tile, columns);
                    for i in seeing {
                        score_columns(query(i), columns, shape.scale, &mut scores[i * stride + key..][..KEY_TILE]);
                    }
                } else {
                    for i in seeing {
                        score_tile(query(i), tile, shape.scale, &mut scores[i * stride + key..][..KEY_TILE]);
                    }
                }
            }
            for i in 0..n_queries {
                let p = &mut scores[i * stride..][..visible(i)];
                softmax(p);
                observation.see(tokens.start + i / group, i % group, p);
            }
            sums.clear();
            sums.resize(n_queries * d, 0.0);
            for key in (0..most).step_by(VALUE_TILE) {
                // The query heads of a token see the same keys.
                for i in (0..n_queries).step_by(group) {
                    let end = visible(i).min(key + VALUE_TILE);
                    if end > key {
                        let weights = Weights { p: &scores[i * stride + key..], stride, n_queries: group };
                        add_weighted(weights, &values[key..end], &mut sums[i * d..(i + group) * d]);
                    }
                }
            }
            for (i, sum) in sums.chunks_exact(d).enumerate() {
                let token = self.first_token + tokens.start + i / group;
                let at = (token * shape.n_heads + self.head * group + i % group) * d;
                // SAFETY: `at + d` is inside out (its length was checked), and this (token, head) belongs to this item.
                #[expect(unsafe_code, reason = "disjoint writes of several threads into one buffer")]
                unsafe {
                    std::ptr::copy_nonoverlapping(sum.as_ptr(), out.at(at), d);
                }
            }
        }
        observation
    }
}

/// Finds the first `n_visible` keys and values of a head, and asks for them before they are used: free slots are taken in any order,
/// which no hardware foresees.
fn gather<'a>(
    segments: &[Segment<'a>; 2],
    d: usize,
    n_visible: usize,
    keys: &mut Vec<&'a [f32]>,
    values: &mut Vec<&'a [f32]>,
) {
    keys.clear();
    values.clear();
    for Segment { k, v, slots } in segments {
        let n = slots.len().min(n_visible - keys.len());
        let mut add = |slot: usize| {
            let (key, value) = (&k[slot * d..(slot + 1) * d], &v[slot * d..(slot + 1) * d]);
            #[cfg(target_arch = "x86_64")]
            {
                avx2::prefetch(key);
                avx2::prefetch(value);
            }
            keys.push(key);
            values.push(value);
        };
        match slots {
            Slots::First(_) => (0..n).for_each(&mut add),
            Slots::List(list) => list[..n].iter().for_each(|&slot| add(slot as usize)),
        }
    }
    if let Some(&last) = keys.last() {
        keys.resize(keys.len().next_multiple_of(KEY_TILE), last);
    }
}

/// `scores[i] = scale * dot(q, keys[i])` for eight keys.
fn score_tile(q: &[f32], keys: &[&[f32]; KEY_TILE], scale: f32, scores: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if crate::instruction_set() == crate::Isa::Avx2 && q.len().is_multiple_of(LANES) {
        avx2::score_tile(q, keys, scale, scores);
        return;
    }
    portable::score_tile(q, keys, scale, scores);
}

/// `columns[c][i] = keys[i][c]`: pays where many queries read the tile.
fn transpose(keys: &[&[f32]; KEY_TILE], columns: &mut Vec<[f32; KEY_TILE]>) {
    columns.resize(keys[0].len(), [0.0; KEY_TILE]);
    #[cfg(target_arch = "x86_64")]
    if crate::instruction_set() == crate::Isa::Avx2 && columns.len().is_multiple_of(LANES) {
        avx2::transpose_keys(keys, columns);
        return;
    }
    portable::transpose_keys(keys, columns);
}

/// The same as [`score_tile`] from the columns of the tile.
fn score_columns(q: &[f32], columns: &[[f32; KEY_TILE]], scale: f32, scores: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if crate::instruction_set() == crate::Isa::Avx2 && q.len().is_multiple_of(LANES) {
        avx2::score_columns(q, columns, scale, scores);
        return;
    }
    portable::score_columns(q, columns, scale, scores);
}

/// Weights of some values for several queries.
#[derive(Clone, Copy)]
struct Weights<'a> {
    /// `[n_queries, stride]`, of which the first columns count.
    p: &'a [f32],
    stride: usize,
    n_queries: usize,
}

/// `sums[q][c] = fma(p[q][j], values[j][c], sums[q][c])` over `j` in order.
fn add_weighted(weights: Weights<'_>, values: &[&[f32]], sums: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if crate::instruction_set() == crate::Isa::Avx2 && values[0].len().is_multiple_of(LANES) {
        avx2::add_weighted(weights, values, sums);
        return;
    }
    portable::add_weighted(weights, values, sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, and all ways to the same bits.
    #[test]
    fn tiles_and_columns_and_plain_code_agree_bit_by_bit() {
        let number = |i: usize| ((i * 7919) % 2003) as f32 / 997.0 - 1.0;
        for d in [8, 16, 24, 64, 80, 12] {
            let stored: Vec<f32> = (0..KEY_TILE * d).map(number).collect();
            let keys: [&[f32]; KEY_TILE] = std::array::from_fn(|i| &stored[i * d..(i + 1) * d]);
            let q: Vec<f32> = (0..d).map(|i| number(i + 55)).collect();
            let score = |f: &dyn Fn(&mut [f32])| {
                let mut scores = [0.0_f32; KEY_TILE];
                f(&mut scores);
                scores.map(f32::to_bits)
            };
            let mut columns = Vec::new();
            transpose(&keys, &mut columns);
            let plain = score(&|s| portable::score_tile(&q, &keys, 0.3, s));
            assert_eq!(score(&|s| score_tile(&q, &keys, 0.3, s)), plain, "{d}");
            assert_eq!(score(&|s| score_columns(&q, &columns, 0.3, s)), plain, "{d}");
            assert_eq!(score(&|s| portable::score_columns(&q, &columns, 0.3, s)), plain, "{d}");

            for n_queries in 1..6 {
                let p: Vec<f32> = (0..n_queries * 9).map(|i| number(i + 3)).collect();
                let weights = Weights { p: &p, stride: 9, n_queries };
                let (mut fast, mut plain) = (vec![0.5; n_queries * d], vec![0.5; n_queries * d]);
                add_weighted(weights, &keys[..7], &mut fast);
                portable::add_weighted(weights, &keys[..7], &mut plain);
                assert_eq!(fast, plain, "{d} {n_queries}");
            }
        }
    }
}
