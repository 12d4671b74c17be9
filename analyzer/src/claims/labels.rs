//! Figures of the labels themselves.

use std::collections::BTreeMap;

use epikv_schemas::LabelToken;
use epikv_stats::pool::clipped_z;
use epikv_stats::proportion::wilson;
use epikv_stats::{BinaryRanks, Confidence, RankScratch};

use crate::claims::part::{ByProblem, Part, Scale, Test};
use crate::claims::run::Run;

/// Rho within traces of the labels by truncation with the position.
pub(crate) fn truncation_and_position(run: &Run) -> Vec<Part> {
    let mut traces: BTreeMap<&str, Vec<&LabelToken>> = BTreeMap::new();
    for token in &run.truncated {
        traces.entry(&token.trace_id).or_default().push(token);
    }
    let mut scratch = RankScratch::default();
    let z = traces.into_iter().filter_map(|(trace, tokens)| {
        let labelled = tokens.iter().filter_map(|token| Some((token.pos as f32, token.important?)));
        let (positions, important): (Vec<f32>, Vec<bool>) = labelled.unzip();
        let rho = BinaryRanks::from_f32(&positions, &important, &mut scratch)?.rho()?;
        Some((trace, clipped_z(rho).0))
    });
    let part = |(dataset, problems)| Part::of_problems(dataset, String::new(), Scale::Fisher, &problems);
    run.by_problem(z).into_iter().filter_map(part).collect()
}

/// Important tokens over all tokens of a trace, the prompt counted as important: the published division.
pub(crate) fn important_share(run: &Run) -> Vec<Part> {
    let mut counts: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for token in &run.tokens {
        let count = counts.entry(&token.trace_id).or_default();
        let important = token.region == "prompt" || token.important == Some(true);
        *count = (count.0 + f64::from(u8::from(important)), count.1 + 1.0);
    }
    let usable = run.labels.iter().filter(|trace| trace.usable);
    let shares = usable.filter_map(|trace| {
        let (important, n) = counts.get(trace.trace_id.as_str())?;
        Some((trace.trace_id.as_str(), important / n))
    });
    let part = |(dataset, problems)| Part::of_problems(dataset, String::new(), Scale::Plain, &problems);
    run.by_problem(shares).into_iter().filter_map(part).collect()
}

/// Share of answers that come back when nothing is occluded: Wilson's interval for one trace a problem, Student's t on the
/// shares of the problems for more.
pub(crate) fn controls(run: &Run) -> Vec<Part> {
    let answered = run.labels.iter().filter(|trace| trace.original_answer.is_some());
    let same = answered
        .map(|trace| (trace.trace_id.as_str(), f64::from(u8::from(trace.control_answer == trace.original_answer))));
    let part = |(dataset, problems): (&str, ByProblem<'_>)| {
        if problems.values().any(|values| values.len() > 1) {
            return Part::of_problems(dataset, String::new(), Scale::Plain, &problems);
        }
        let (n, same) = (problems.len(), problems.values().flatten().filter(|same| **same > 0.0).count());
        let bounds = wilson(same as u64, n as u64, Confidence::P95)?;
        Some(Part::of_interval(dataset, same as f64 / n as f64, bounds, Test::Width, n))
    };
    run.by_problem(same).into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use epikv_schemas::LabelTrace;

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
        // Eight copies of each trace are still four problems.
        let mut copies = Run::default();
        for copy in 0..8 {
            let named = |id: &str| format!("{id}#{copy}");
            copies.labels.extend(run.labels.iter().map(|t| LabelTrace { trace_id: named(&t.trace_id), ..t.clone() }));
            copies.tokens.extend(run.tokens.iter().map(|t| LabelToken { trace_id: named(&t.trace_id), ..t.clone() }));
        }
        copies.truncated.clone_from(&copies.tokens);
        let all = [important_share(&copies), truncation_and_position(&copies), controls(&copies)];
        assert!(all.iter().all(|parts| parts.len() == 1 && parts[0].n == 4), "{all:?}");
        assert!((all[0][0].hi - share.hi).abs() < 1e-12 && (all[1][0].hi - early.hi).abs() < 1e-9, "{all:?}");
    }
}
