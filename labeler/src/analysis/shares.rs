//! Important shares of the traces of a run, by data set, under every mapping of outcomes to flips and both divisions.
//!
//! ```text
//! reasoning       important reasoning tokens / reasoning tokens with a label
//! prompt_counted  (important reasoning tokens + prompt tokens) / all tokens of the trace
//! ```
//!
//! The second is the published division. It counts each prompt token as important and divides by all tokens, also those
//! that were never tested. Shares are means over traces, with a `BCa` bootstrap interval over traces.

use std::collections::BTreeMap;

use epikv_schemas::{LabelToken, LabelTrace, LabelWindow};
use epikv_stats::Confidence;
use epikv_stats::bootstrap::bootstrap_interval;
use epikv_stats::moments::mean;
use epikv_stats::resample::resample_indices;
use serde::Serialize;

use crate::analysis::summary::{FlipOf, MAPPINGS, flip_of};
use crate::windows::token_labels::token_labels;

/// Bootstrap samples.
const REPLICATES: u64 = 2000;

/// One share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The data set, or `all`.
    pub dataset: String,
    /// The mapping of outcomes to flips.
    pub mapping: &'static str,
    /// `reasoning` or `prompt_counted`.
    pub divided_by: &'static str,
    /// Usable traces for which it is defined.
    pub n_traces: usize,
    /// Mean over them.
    pub share: Option<f64>,
    /// 95 % interval; null with fewer than two different traces.
    pub interval: Option<(f64, f64)>,
}

/// A usable trace.
struct OfTrace<'a> {
    windows: Vec<&'a LabelWindow>,
    n_prompt: usize,
    n_tokens: usize,
}

impl OfTrace<'_> {
    /// Important tokens, and tokens with a label.
    fn count(&self, flip: FlipOf) -> (usize, usize) {
        let spans: Vec<_> = self.windows.iter().map(|w| (w.start as usize..w.end as usize, flip_of(w, flip))).collect();
        let labels = token_labels(self.n_tokens, &spans);
        let known = labels.iter().filter_map(|label| label.important);
        known.fold((0, 0), |(important, n), label| (important + usize::from(label), n + 1))
    }
}

/// A division of the counts of a trace.
type Division = fn(&OfTrace<'_>, usize, usize) -> Option<f64>;

const DIVISIONS: [(&str, Division); 2] = [
    ("reasoning", |_, important, n| (n > 0).then(|| important as f64 / n as f64)),
    ("prompt_counted", |trace, important, _| {
        (trace.n_tokens > 0).then(|| (important + trace.n_prompt) as f64 / trace.n_tokens as f64)
    }),
];

/// All shares of a run: for each data set, and for `all` where there are several. `seed` is that of the bootstrap.
///
/// Windows whose span does not lie inside their trace are left out.
pub fn shares(windows: &[LabelWindow], tokens: &[LabelToken], traces: &[LabelTrace], seed: u64) -> Vec<Share> {
    let usable: BTreeMap<&str, &str> =
        traces.iter().filter(|t| t.usable).map(|t| (t.trace_id.as_str(), t.dataset.as_str())).collect();
    let mut of_traces: BTreeMap<&str, OfTrace<'_>> = BTreeMap::new();
    for token in tokens.iter().filter(|t| usable.contains_key(t.trace_id.as_str())) {
        let entry = of_traces.entry(&token.trace_id);
        let trace = entry.or_insert(OfTrace { windows: Vec::new(), n_prompt: 0, n_tokens: 0 });
        trace.n_tokens += 1;
        trace.n_prompt += usize::from(token.region == "prompt");
    }
    for window in windows {
        if let Some(trace) = of_traces.get_mut(window.trace_id.as_str())
            && (0..=window.end).contains(&window.start)
            && window.end as usize <= trace.n_tokens
        {
            trace.windows.push(window);
        }
    }
    let mut datasets: Vec<&str> = usable.values().copied().collect();
    datasets.sort_unstable();
    datasets.dedup();
    let groups = datasets.iter().map(|d| Some(*d)).chain((datasets.len() > 1).then_some(None));
    let mut all = Vec::new();
    for group in groups {
        for (mapping, flip) in MAPPINGS {
            let counted: Vec<_> = of_traces
                .iter()
                .filter(|(id, _)| group.is_none_or(|group| usable[**id] == group))
                .map(|(_, trace)| (trace, trace.count(*flip)))
                .collect();
            for (divided_by, division) in DIVISIONS {
                let values: Vec<f64> =
                    counted.iter().filter_map(|(trace, (important, n))| division(trace, *important, *n)).collect();
                all.push(Share {
                    dataset: group.unwrap_or("all").to_owned(),
                    mapping,
                    divided_by,
                    n_traces: values.len(),
                    share: mean(&values),
                    interval: interval(&values, seed),
                });
            }
        }
    }
    all
}

/// The `BCa` interval of a mean over traces.
fn interval(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    let estimate = mean(values)?;
    let n = values.len();
    let sum: f64 = values.iter().sum();
    let jackknife: Vec<f64> = values.iter().filter(|_| n > 1).map(|v| (sum - v) / (n - 1) as f64).collect();
    let replicate = |b: u64| resample_indices(seed, b, n).into_iter().map(|i| values[i]).sum::<f64>() / n as f64;
    let replicates: Vec<f64> = (0..REPLICATES).map(replicate).collect();
    bootstrap_interval(estimate, &replicates, &jackknife, Confidence::P95)?.bca
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::shared::{labelled, window};

    /// A trace of two prompt tokens, six of reasoning and two of the answer.
    fn tokens(trace: &str) -> impl Iterator<Item = LabelToken> + '_ {
        (0..10).map(move |pos| LabelToken {
            trace_id: trace.to_owned(),
            pos,
            token_id: 0,
            region: ["prompt", "reason", "answer"][usize::from(pos > 1) + usize::from(pos > 7)].to_owned(),
            tested: false,
            important: None,
            n_cover: 0,
            n_flip: 0,
        })
    }

    #[test]
    fn both_divisions_and_all_mappings() {
        let windows = [
            window("a", 2, 5, "changed"),
            window("a", 5, 8, "same"),
            window("b", 2, 8, "truncated"),
            window("b", 7, 99, "changed"), // not inside its trace
        ];
        let tokens: Vec<LabelToken> = tokens("a").chain(tokens("b")).collect();
        let all = shares(&windows, &tokens, &[labelled("a"), labelled("b")], 0);
        let find = |mapping: &str, division: &str| {
            let share = all.iter().find(|s| s.mapping == mapping && s.divided_by == division).expect("a row");
            (share.n_traces, share.share)
        };
        assert_eq!(all.len(), 2 * MAPPINGS.len());
        assert_eq!(find("changed_only", "reasoning"), (1, Some(0.5)), "nothing is known of b");
        assert_eq!(find("truncated_flips", "reasoning"), (2, Some(0.75)));
        assert_eq!(find("changed_only", "prompt_counted"), (2, Some(f64::midpoint(0.5, 0.2))));
        assert_eq!(find("truncated_flips", "prompt_counted"), (2, Some(f64::midpoint(0.5, 0.8))));
    }
}
