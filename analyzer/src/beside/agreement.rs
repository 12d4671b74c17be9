//! Do two scores keep the same tokens? Every pair of scores, trace by trace, at the `k` that a budget implies.
//!
//! At the end of a trace of `n` tokens a layer with budget `K` holds the prompt, the newest `R` tokens and `k = K - prompt - R`
//! of the `n - prompt - R` others; each score would keep its own `k` of them, if it were known from the start. A token that
//! either score does not define is left out.

use epikv_stats::agreement::rank_agreement;
use epikv_stats::{Ties, agreement};
use rayon::prelude::*;

use crate::beside::replay::Limits;
use crate::record::Column;
use crate::study::sample::Sample;

/// Two scores on one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// Name of the trace.
    pub trace_id: String,
    /// Its problem set.
    pub dataset: String,
    /// The scores, in the order of their columns.
    pub scores: [&'static str; 2],
    /// Tokens compared.
    pub n: usize,
    /// Tokens that the budget keeps of them.
    pub k: usize,
    /// Coefficients and overlap; undefined parts are `None`.
    pub found: agreement::Agreement,
}

/// Compares all pairs of scores, the columns without a layer, on every sample; `limits` has one entry a sample.
///
/// # Panics
/// If there is not one entry a sample.
pub fn agreements(samples: &[&Sample], limits: &[Limits]) -> Vec<Agreement> {
    assert_eq!(samples.len(), limits.len(), "limits of every sample");
    samples.par_iter().zip(limits).flat_map_iter(|(sample, limits)| of_trace(sample, *limits)).collect()
}

fn of_trace(sample: &Sample, limits: Limits) -> Vec<Agreement> {
    let recording = &sample.recording;
    let scores: Vec<&Column> = recording.columns.iter().filter(|column| column.layer.is_none()).collect();
    let end = recording.token_ids.len().saturating_sub(limits.recency);
    let room = limits.budget.saturating_sub(limits.n_prompt + limits.recency);
    let mut all = Vec::new();
    for (at, a) in scores.iter().enumerate() {
        for b in &scores[at + 1..] {
            let both = |pos: usize| Some((f64::from(a.values[pos]?), f64::from(b.values[pos]?)));
            let (x, y): (Vec<f64>, Vec<f64>) = (limits.n_prompt..end).filter_map(both).unzip();
            let k = room.min(x.len());
            if let Some(found) = rank_agreement(&x, &y, k, Ties::Newer) {
                all.push(Agreement {
                    trace_id: recording.trace_id.clone(),
                    dataset: sample.dataset.clone(),
                    scores: [a.signal, b.signal],
                    n: x.len(),
                    k,
                    found,
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recording;
    use crate::study::join::Mask;

    #[test]
    fn scores_are_compared_outside_what_is_protected() {
        let column = |signal, layer, values: [Option<f32>; 8]| Column { signal, layer, values: values.to_vec() };
        let a = [9.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0].map(Some);
        let mut b = [0.0, 0.0, 1.0, 3.0, 2.0, 4.0, 9.0, 9.0].map(Some);
        b[6] = None;
        let columns = vec![column("a", None, a), column("b", None, b), column("c", Some(0), a)];
        let recording = Recording { trace_id: "t".to_owned(), token_ids: vec![1; 8], n_prompt: 2, columns };
        let sample = Sample {
            dataset: "d".to_owned(),
            problem_id: "p".to_owned(),
            recording,
            random: None,
            mask: Mask::default(),
            windows: None,
        };
        let found = agreements(&[&sample], &[Limits { n_prompt: 2, budget: 5, recency: 1 }]);
        assert_eq!(found.len(), 1, "a column of a layer is no score");
        assert_eq!((found[0].scores, found[0].n, found[0].k), (["a", "b"], 4, 2));
        // Ranks 1 2 3 4 and 1 3 2 4; the two largest share one.
        assert!((found[0].found.spearman.expect("defined") - 0.8).abs() < 1e-15);
        assert_eq!(found[0].found.top.map(|top| (top.overlap, top.expected_precision)), Some((1, 0.5)));
    }
}
