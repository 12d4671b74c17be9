//! The inner steps in portable code, which is their definition.

use super::{KEY_TILE, Weights};
use crate::lanes::{LANES, dot, join};

pub(super) fn score_tile(q: &[f32], keys: &[&[f32]; KEY_TILE], scale: f32, scores: &mut [f32]) {
    for (s, k) in scores.iter_mut().zip(keys) {
        *s = dot(q, k) * scale;
    }
}

pub(super) fn transpose_keys(keys: &[&[f32]; KEY_TILE], columns: &mut [[f32; KEY_TILE]]) {
    for (c, column) in columns.iter_mut().enumerate() {
        *column = keys.map(|key| key[c]);
    }
}

pub(super) fn score_columns(q: &[f32], columns: &[[f32; KEY_TILE]], scale: f32, scores: &mut [f32]) {
    let mut acc = [[0.0_f32; LANES]; KEY_TILE];
    for (c, (q, column)) in q.iter().zip(columns).enumerate() {
        for (acc, k) in acc.iter_mut().zip(column) {
            acc[c % LANES] = q.mul_add(*k, acc[c % LANES]);
        }
    }
    for (s, acc) in scores.iter_mut().zip(acc) {
        *s = join(acc) * scale;
    }
}

pub(super) fn add_weighted(weights: Weights<'_>, values: &[&[f32]], sums: &mut [f32]) {
    let d = sums.len() / weights.n_queries;
    for (sum, p) in sums.chunks_exact_mut(d).zip(weights.p.chunks(weights.stride)) {
        for (&p, v) in p.iter().zip(values) {
            for (s, &v) in sum.iter_mut().zip(*v) {
                *s = p.mul_add(v, *s);
            }
        }
    }
}
