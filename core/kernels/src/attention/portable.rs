//! The definition of the two inner steps.

use super::KEY_TILE;
use crate::lanes::dot;

pub(super) fn score_tile(q: &[f32], keys: &[&[f32]; KEY_TILE], scale: f32, scores: &mut [f32]) {
    for (s, k) in scores.iter_mut().zip(keys) {
        *s = dot(q, k) * scale;
    }
}

pub(super) fn add_weighted(p: &[f32], values: &[&[f32]], sum: &mut [f32]) {
    for (&p, v) in p.iter().zip(values) {
        for (s, &v) in sum.iter_mut().zip(*v) {
            *s = p.mul_add(v, *s);
        }
    }
}
