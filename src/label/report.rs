//! What `epikv label` prints.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use epikv_labeler::{ArmComparison, Estimate, Known, Labels, NoiseFloor, Position, Rates, Summary};
use epikv_model::session::Ledger;
use serde_json::json;

use crate::output::Done;

/// Fillers side by side.
pub(super) fn arms_table(comparisons: &[ArmComparison]) -> Result<String> {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let mut table = String::from(
        "| arms | windows | both flip | only first | only second | kappa | traces | first more | second more | sign p |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for one in comparisons {
        let (first, second) = &one.arms;
        let (kappa, p) = (number(one.kappa), number(one.sign_p));
        writeln!(
            table,
            "| {first}, {second} | {} | {} | {} | {} | {kappa} | {} | {} | {} | {p} |",
            one.n_windows,
            one.n_both,
            one.n_only_first,
            one.n_only_second,
            one.n_traces,
            one.n_first_more,
            one.n_second_more
        )?;
    }
    Ok(table)
}

/// How often an intervention agrees with the occlusion of the same windows. No kappa: they ask different questions.
pub(super) fn agreement_table(pair: &ArmComparison) -> Result<String> {
    let ArmComparison { arms: (own, other), n_windows, n_both, n_only_first, n_only_second, .. } = pair;
    let agree = n_windows - n_only_first - n_only_second;
    let share = if *n_windows > 0 { format!("{:.3}", agree as f64 / *n_windows as f64) } else { "-".to_owned() };
    let mut table =
        String::from("| labels | against | windows | agree | share | both flip | only first | only second |\n");
    table.push_str("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    writeln!(
        table,
        "| {own} | {other} | {n_windows} | {agree} | {share} | {n_both} | {n_only_first} | {n_only_second} |"
    )?;
    Ok(table)
}

/// What the run would cost.
pub(super) fn print_estimate(estimate: &Estimate, rates: Rates, as_json: bool) -> Result<Done> {
    let (seconds, naive_seconds) = estimate.seconds(rates);
    if as_json {
        let report =
            json!({ "estimate": estimate, "rates": rates, "seconds": seconds, "naive_seconds": naive_seconds });
        writeln!(crate::terminal::out(), "{report}")?;
    }
    let Estimate { n_traces, n_failed, n_windows, prefill, draft, decode, naive, weight_bytes, cache_bytes } = estimate;
    let mib = |bytes: &usize| *bytes as f64 / f64::from(1 << 20);
    writeln!(
        crate::terminal::err(),
        "{n_traces} traces, {n_failed} that cannot be labelled, {n_windows} windows\n\
         tokens: {prefill} read, {draft} read as drafts, {decode} decoded if no answer changes; naive: {} read, {} decoded\n\
         memory: {:.1} MiB of weights, {:.1} MiB of keys and values\n\
         at {:.0} tokens read and {:.0} decoded a second: {seconds:.0} s, naive {naive_seconds:.0} s",
        naive.0,
        naive.1,
        mib(weight_bytes),
        mib(cache_bytes),
        rates.prefill,
        rates.decode,
    )?;
    Ok(Done::All)
}

/// How well the labels recover the values that the answers need.
fn print_known(out: &mut impl Write, known: &Known) -> Result<()> {
    let auc = known.auc.map_or("-".to_owned(), |auc| format!("{auc:.3}"));
    writeln!(
        out,
        "known needs of {} traces: windows that hide a value flip {}/{}, clear ones {}/{}, {} between; AUC {auc}",
        known.n_traces, known.n_hiding_flipped, known.n_hiding, known.n_clear_flipped, known.n_clear, known.n_between
    )?;
    for (n, values) in &known.by_mentions {
        writeln!(
            out,
            "  values stated {n}x: {} of {} missed, {} never hidden by one window",
            values.n_missed, values.n_hidden, values.n_never_hidden
        )?;
    }
    Ok(())
}

/// How many traces there are of each kind; a kind without any is left out, and so is the reason that it would have.
fn counts(summary: &Summary) -> String {
    let n_unusable = summary.n_traces - summary.n_usable;
    let kinds = [
        (n_unusable, format!("not {:?}", summary.unusable)),
        (summary.n_incorrect, "wrong and left out".to_owned()),
        (summary.n_failed, "failed".to_owned()),
    ];
    let n = summary.n_traces + summary.n_incorrect + summary.n_failed;
    let counted = kinds.iter().filter(|(n, _)| *n > 0).map(|(n, kind)| format!(", {n} {kind}"));
    format!("{n} traces: {} usable{}", summary.n_usable, counted.collect::<String>())
}

/// The summary on stderr.
pub(super) fn print(labels: &Labels, summary: &Summary, out: &Path) -> Result<()> {
    let mut err = crate::terminal::err();
    for failure in &labels.failures {
        writeln!(err, "failed: {}", failure.error)?;
    }
    writeln!(err, "{} -> {}", counts(summary), out.display())?;
    writeln!(err, "{} windows of usable traces: {:?}", summary.n_windows, summary.outcomes)?;
    for (mapping, share) in &summary.important_share {
        match share {
            Some(share) => writeln!(err, "important share, {mapping}: {share:.3}")?,
            None => writeln!(err, "important share, {mapping}: - (no usable trace)")?,
        }
    }
    if let Some(known) = &summary.known {
        print_known(&mut err, known)?;
    }
    let Position { rho, by_decile, .. } = &summary.position;
    let number = |value: &Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let deciles: Vec<String> = by_decile.iter().map(number).collect();
    writeln!(
        err,
        "position: rho of label and position {}, important share by tenth of the reasoning {}",
        number(rho),
        deciles.join(" ")
    )?;
    if !labels.refined.is_empty() {
        let n = labels.refined.iter().filter(|part| part.smallest).count();
        writeln!(err, "parts: {} tried, {n} smallest ones that flip", labels.refined.len())?;
    }
    if !labels.pairs.is_empty() {
        let n = labels.pairs.iter().filter(|pair| pair.flipped == Some(true)).count();
        writeln!(err, "pairs of windows that do not flip alone: {n} of {} flip together", labels.pairs.len())?;
    }
    let NoiseFloor { n_windows, n_identity_changed, n_repeated_changed } = summary.noise_floor;
    writeln!(
        err,
        "noise floor: of {n_windows} windows the answer changes for {n_identity_changed} overwritten by their own tokens, \
         for {n_repeated_changed} occluded once more"
    )?;
    let Ledger { prefill, draft, decode, .. } = labels.ledger;
    writeln!(err, "tokens: {prefill} read, {draft} read as drafts, {decode} decoded")?;
    Ok(())
}
