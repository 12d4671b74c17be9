//! Figures of the labels themselves.

use std::collections::BTreeMap;

use epikv_schemas::{LabelToken, LabelTrace};
use epikv_stats::moments::mean;
use epikv_stats::pool::clipped_z;
use epikv_stats::proportion::wilson;
use epikv_stats::{BinaryRanks, Confidence, RankScratch};

use crate::claims::part::{Part, Scale, Test};
use crate::claims::run::Run;

/// Rho within traces of the labels by truncation with the position.
pub(crate) fn truncation_and_position(run: &Run) -> Vec<Part> {
    let mut traces: BTreeMap<&str, Vec<&LabelToken>> = BTreeMap::new();
    for token in &run.truncated {
        traces.entry(&token.trace_id).or_default().push(token);
    }
    let mut scratch = RankScratch::default();
    let mut z = Vec::new();
    for tokens in traces.values() {
        let labelled = tokens.iter().filter_map(|token| Some((token.pos as f32, token.important?)));
        let (positions, important): (Vec<f32>, Vec<bool>) = labelled.unzip();
        let ranks = BinaryRanks::from_f32(&positions, &important, &mut scratch);
        z.extend(ranks.and_then(|ranks| ranks.rho()).map(|rho| clipped_z(rho).0));
    }
    Part::of_mean("all", String::new(), Scale::Fisher, &z).into_iter().collect()
}

/// Important tokens over all tokens of a trace, the prompt counted as important: the published division.
pub(crate) fn important_share(run: &Run) -> Vec<Part> {
    let mut counts: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for token in &run.tokens {
        let count = counts.entry(&token.trace_id).or_default();
        let important = token.region == "prompt" || token.important == Some(true);
        *count = (count.0 + f64::from(u8::from(important)), count.1 + 1.0);
    }
    let mut sets: BTreeMap<&str, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for trace in run.labels.iter().filter(|trace| trace.usable) {
        if let Some((important, n)) = counts.get(trace.trace_id.as_str()) {
            sets.entry(&trace.dataset).or_default().entry(&trace.problem_id).or_default().push(important / n);
        }
    }
    let part = |(dataset, problems): (&str, BTreeMap<&str, Vec<f64>>)| {
        let shares: Vec<f64> = problems.values().filter_map(|shares| mean(shares)).collect();
        Part::of_mean(dataset, String::new(), Scale::Plain, &shares)
    };
    sets.into_iter().filter_map(part).collect()
}

/// Share of traces whose answer comes back when nothing is occluded.
pub(crate) fn controls(run: &Run) -> Vec<Part> {
    let mut sets: BTreeMap<&str, Vec<&LabelTrace>> = BTreeMap::new();
    for trace in run.labels.iter().filter(|trace| trace.original_answer.is_some()) {
        sets.entry(&trace.dataset).or_default().push(trace);
    }
    let part = |(dataset, traces): (&str, Vec<&LabelTrace>)| {
        let same = traces.iter().filter(|trace| trace.control_answer == trace.original_answer).count();
        let (lo, hi) = wilson(same as u64, traces.len() as u64, Confidence::P95)?;
        Some(Part {
            dataset: dataset.to_owned(),
            budget: None,
            of: String::new(),
            estimate: same as f64 / traces.len() as f64,
            lo,
            hi,
            test: Test::Width,
            n: traces.len(),
            counts: format!("{same} of {} traces", traces.len()),
            unequal: None,
        })
    };
    sets.into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_counted_by_trace() {
        let token = |trace: usize, pos: i32, region: &str, important: Option<bool>| LabelToken {
            trace_id: format!("t{trace}"),
            pos,
            region: region.to_owned(),
            important,
            ..LabelToken::default()
        };
        let mut tokens = Vec::new();
        let mut labels = Vec::new();
        for trace in 0..4 {
            tokens.push(token(trace, 0, "prompt", None));
            tokens.extend((1..10).map(|pos| token(trace, pos, "reason", Some(pos < 3 + trace as i32 / 2))));
            labels.push(LabelTrace {
                trace_id: format!("t{trace}"),
                problem_id: format!("p{trace}"),
                dataset: "tiny".to_owned(),
                usable: true,
                original_answer: Some("7".to_owned()),
                control_answer: Some(if trace == 0 { "8" } else { "7" }.to_owned()),
                ..LabelTrace::default()
            });
        }
        let run = Run { truncated: tokens.clone(), tokens, labels, ..Run::default() };
        // One prompt token and 2, 2, 3, 3 important ones of ten.
        let share = &important_share(&run)[0];
        assert!((share.estimate - 0.35).abs() < 1e-12 && share.n == 4, "{share:?}");
        let early = &truncation_and_position(&run)[0];
        assert!(early.hi < -0.5 && early.n == 4, "{early:?}");
        let same = &controls(&run)[0];
        assert!((same.estimate - 0.75).abs() < 1e-12 && same.lo < 0.5, "{same:?}");
    }
}
