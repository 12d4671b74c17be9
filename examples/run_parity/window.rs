//! Scores of stored keys by stored queries, head by head.

use anyhow::{Result, ensure};
use epikv_model::cache::HeadView;
use epikv_signals::WindowAttention;
use epikv_stats::{Ties, top_k};

use crate::read::Heads;

/// Tolerance of scores that are probabilities, several times the noise that the makers of the references measured.
pub(crate) const PROBABILITY: f64 = 5e-6;

/// The scores of the keys of one KV head, `[n]`, by the last `w` queries of the query heads that share it.
pub(crate) fn scores(
    how: WindowAttention,
    held: HeadView<'_>,
    queries: &Heads,
    query_heads: std::ops::Range<usize>,
) -> Result<Vec<f64>> {
    ensure!(how.rows <= queries.rows, "expected {} rows of queries, got {}", how.rows, queries.rows);
    let d = queries.d;
    let row = |row: usize| -> Vec<f32> {
        query_heads.clone().flat_map(|head| queries.head(head)[row * d..(row + 1) * d].to_vec()).collect()
    };
    let rows: Vec<Vec<f32>> = (queries.rows - how.rows..queries.rows).map(row).collect();
    Ok(how.of_head(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>(), held))
}

/// The places of the `n` highest scores, ascending; of equal ones the newer.
pub(crate) fn highest(scores: &[f32], n: usize) -> Vec<u32> {
    top_k(scores, n, Ties::Newer).unwrap_or_default().into_iter().map(|place| place as u32).collect()
}
