//! `epikv claims`: the claims of the papers, how each is tested, and what a run says of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use epikv_analyzer::claims::{Claim, Figure, Judged, Part, Run, Says, Tested, Verdict, judge};
use epikv_stats::{Confidence, FisherMethod, fisher_interval};
use epikv_words::exact_p;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::ClaimsArgs;
use crate::output::Done;

/// The list lies at the root of the repository.
const CLAIMS: &str = include_str!("../claims.toml");

/// Parts of a claim that are shown, those that speak most against it first.
const SHOWN: usize = 6;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    claim: Vec<Claim>,
}

/// The claims of `claims.toml`.
fn claims() -> Result<Vec<Claim>> {
    let claims: Claims = toml::from_str(CLAIMS).context("claims.toml")?;
    Ok(claims.claim)
}

/// What arithmetic alone says of a claim, and the calculation.
fn computed(name: &str) -> Option<(bool, String)> {
    match name {
        "concurrency" => {
            let [short, long] = [2048, 32_768].map(crate::plan::requests_of_the_paper);
            let word = |n: Option<u64>| n.map_or("no".to_owned(), |n| n.to_string());
            let line = format!(
                "{} requests at 2,048 slots and {} at 32,768: floor((0.9 x 80 GiB - 16 GiB) / (slots x 128 KiB))",
                word(short),
                word(long)
            );
            Some(((short, long) == (Some(224), Some(14)), line))
        }
        "attention-maps" => {
            let gib = crate::plan::attention_gib_of_the_paper(8192);
            Some((gib > 80.0, format!("{gib:.0} GiB: 32 layers x 32 heads x 8,192 x 8,192 x 2 bytes")))
        }
        "aime-intervals" => {
            // The strongest coefficient of the published files of each set, and at most so many traces.
            let published = [("AIME-2024", 0.260, 14), ("AIME-2024, eager", 0.227, 11), ("AIME-2026, eager", 0.306, 9)];
            let mut lines = Vec::new();
            let mut spans = true;
            for (set, rho, traces) in published {
                let interval = fisher_interval(rho, traces, Confidence::P95, FisherMethod::Plain);
                let (lo, hi) = interval.lo.zip(interval.hi)?;
                spans &= lo < 0.0;
                lines.push(format!("{set}: {rho} of {traces} traces [{lo:+.2}, {hi:+.2}]"));
            }
            Some((spans, lines.join("; ")))
        }
        "best-on-every-task" => {
            // GPQA-Diamond at 2,048 tokens, Qwen3-14B.
            let (vase, r_kv) = (57.39, 59.09);
            Some((
                vase > r_kv,
                format!("the published table has {vase} for VaSE and {r_kv} for R-KV on GPQA-Diamond at 2,048"),
            ))
        }
        _ => None,
    }
}

/// A claim with what is known of it.
#[derive(Debug, Serialize)]
struct Row {
    claim: Claim,
    estimand: String,
    verdict: &'static str,
    decided: bool,
    /// Decided by figures of the run, not by arithmetic.
    measured: bool,
    p: Option<f64>,
    p_holm: Option<f64>,
    parts: Vec<Part>,
    arithmetic: Option<String>,
}

/// The claims, with the verdicts of a run where there is one.
fn rows(run: Option<&Run>) -> Result<Vec<Row>> {
    let claims = claims()?;
    let parts: Vec<Vec<Part>> =
        claims.iter().map(|claim| run.map_or_else(Vec::new, |run| claim.figure.parts(run))).collect();
    let tested: Vec<Tested<'_>> = claims
        .iter()
        .zip(&parts)
        .map(|(claim, parts)| Tested { says: claim.says.unwrap_or(Says::Above(0.0)), own: &claim.own, parts })
        .collect();
    let judged = judge(run.map_or("", |run| &run.model), &tested);
    let row = |((claim, parts), judged): ((Claim, Vec<Part>), Judged)| {
        let by_arithmetic = match &claim.figure {
            Figure::Arithmetic { name } => computed(name),
            _ => None,
        };
        let verdict = match &by_arithmetic {
            Some((true, _)) => Verdict::Holds,
            Some((false, _)) => Verdict::Contradicted,
            None => judged.verdict,
        };
        Row {
            estimand: claim.figure.words(),
            verdict: verdict.words(),
            decided: verdict.is_decided(),
            measured: !parts.is_empty(),
            p: judged.p,
            p_holm: judged.p_holm,
            parts,
            arithmetic: by_arithmetic.map(|(_, line)| line),
            claim,
        }
    };
    Ok(claims.into_iter().zip(parts).zip(judged).map(row).collect())
}

/// The first lines of a page: what was decided, and of what it says nothing.
fn in_short(rows: &[Row], run: Option<&Run>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.verdict).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(verdict, n)| format!("{n} {verdict}")).collect();
    let decided = rows.iter().filter(|row| row.decided).count();
    let measured = rows.iter().filter(|row| row.decided && row.measured).count();
    let of = run.map_or_else(|| "no run was given".to_owned(), |run| format!("on {}", run.model));
    format!(
        "Of {} claims {decided} are decided, {measured} of them by measurement, {of}: {}.\nA verdict speaks of this model \
         and these problems only. A decision needs the whole 95 % interval of every part on one side of the threshold, and \
         p < 0.05 after Holm over the page.\n",
        rows.len(),
        counts.join(", ")
    )
}

/// A part on one line.
fn part_line(part: &Part) -> String {
    let place: Vec<&str> = [part.dataset.as_str(), part.budget.as_deref().unwrap_or(""), part.of.as_str()]
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect();
    let detectable = part.detectable().map_or_else(String::new, |least| format!(", smallest detectable {least:.3}"));
    let counts = if part.counts.is_empty() { String::new() } else { format!("; {}", part.counts) };
    let (estimate, lo, hi) = (part.estimate, part.lo, part.hi);
    format!("{}: {estimate:+.4} [{lo:+.4}, {hi:+.4}] over {} problems{detectable}{counts}", place.join(", "), part.n)
}

/// The parts that are shown, and how many lie on which side.
fn part_lines(row: &Row) -> Vec<String> {
    let Some(says) = row.claim.says.filter(|_| !row.parts.is_empty()) else { return Vec::new() };
    let sides: Vec<(f64, f64)> = row.parts.iter().map(|part| part.p_sides(says)).collect();
    let [on, other] =
        [sides.iter().filter(|side| side.0 < 1.0).count(), sides.iter().filter(|side| side.1 < 1.0).count()];
    let mut lines = vec![format!(
        "{on} of {} intervals on the claim's side, {other} on the other{}",
        row.parts.len(),
        row.p.zip(row.p_holm).map_or_else(String::new, |(p, holm)| format!(
            "; p {}, by Holm {}",
            exact_p(p),
            exact_p(holm)
        ))
    )];
    let mut order: Vec<usize> = (0..row.parts.len()).collect();
    order.sort_by(|&a, &b| sides[a].1.total_cmp(&sides[b].1).then(sides[b].0.total_cmp(&sides[a].0)).then(a.cmp(&b)));
    lines.extend(order.iter().take(SHOWN).map(|&i| part_line(&row.parts[i])));
    if row.parts.len() > SHOWN {
        lines.push(format!("and {} more, see --json", row.parts.len() - SHOWN));
    }
    lines
}

/// The page in Markdown.
fn markdown(rows: &[Row], run: Option<&Run>) -> String {
    let mut page = format!("# The claims of the papers\n\n**In short.** {}\n", in_short(rows, run));
    page.push_str("| claim | verdict | intervals on its side | p, Holm |\n| --- | --- | ---: | ---: |\n");
    for row in rows {
        let on = row.claim.says.map_or(0, |says| row.parts.iter().filter(|part| part.p_sides(says).0 < 1.0).count());
        let (on, p) = if row.parts.is_empty() {
            (String::new(), String::new())
        } else {
            (format!("{on} of {}", row.parts.len()), row.p_holm.map(exact_p).unwrap_or_default())
        };
        // Writing to a string does not fail.
        let _ = writeln!(page, "| [{0}](#{0}) | {1} | {on} | {p} |", row.claim.id, row.verdict);
    }
    for row in rows {
        let claim = &row.claim;
        let _ = writeln!(page, "\n## {}\n\n{} ({})\n", claim.id, claim.statement, claim.source);
        for line in facts(row) {
            let _ = writeln!(page, "- {line}");
        }
    }
    page
}

/// Verdict, estimand, threshold, figures and command of a claim.
fn facts(row: &Row) -> Vec<String> {
    let claim = &row.claim;
    let mut lines = vec![format!("verdict: {}", row.verdict), format!("estimand: {}", row.estimand)];
    lines.extend(claim.says.map(|says| format!("says: {}, in every part", says.words())));
    lines.extend(row.arithmetic.iter().cloned());
    lines.extend(part_lines(row));
    lines.extend(claim.note.iter().map(|note| format!("note: {note}")));
    lines.extend(claim.command.iter().map(|command| format!("command: {}", command.replace('|', "\\|"))));
    lines
}

/// The page of a run, and its first lines.
pub(crate) fn page(folder: &Path) -> Result<(String, String)> {
    let run = Run::open(folder)?;
    let rows = rows(Some(&run))?;
    Ok((markdown(&rows, Some(&run)), in_short(&rows, Some(&run))))
}

/// Prints the list, with the verdicts of a run where one is given.
pub(crate) fn run(args: &ClaimsArgs) -> Result<Done> {
    let run = args.run.as_deref().map(Run::open).transpose()?;
    let rows = rows(run.as_ref())?;
    let mut out = crate::terminal::out();
    if args.json {
        let model = run.as_ref().map(|run| &run.model);
        writeln!(out, "{}", json!({ "model": model, "claims": rows }))?;
    } else if args.markdown {
        write!(out, "{}", markdown(&rows, run.as_ref()))?;
    } else {
        writeln!(out, "{}", in_short(&rows, run.as_ref()))?;
        for row in &rows {
            writeln!(out, "{}  [{}]\n  {}", row.claim.id, row.claim.source, row.claim.statement)?;
            for line in facts(row) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    Ok(Done::All)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;
    use epikv_analyzer::claims::Effect;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_claim_is_complete_and_its_command_can_be_typed() {
        let claims = claims().unwrap();
        let ids: BTreeSet<_> = claims.iter().map(|claim| &claim.id).collect();
        assert_eq!(ids.len(), claims.len());
        assert!(claims.len() >= 40, "{}", claims.len());
        for claim in &claims {
            assert!(!claim.statement.is_empty() && !claim.source.is_empty() && !claim.figure.words().is_empty());
            match &claim.figure {
                Figure::Arithmetic { name } => assert!(computed(name).is_some(), "{name}"),
                Figure::Missing { .. } => assert!(claim.says.is_none() && claim.command.is_none(), "{}", claim.id),
                figure => {
                    assert!(claim.says.is_some() && claim.command.is_some(), "{}", claim.id);
                    if let Figure::Runs { a, b, effect: Effect::Scope, .. } = figure {
                        let score = |policy: &String| policy.split(';').next().map(str::to_owned);
                        assert_eq!(score(a), score(b), "{}: a scope effect is of one score", claim.id);
                    }
                    if let Figure::Runs { a, b, .. } = figure {
                        for policy in [a, b].into_iter().filter(|policy| *policy != "*") {
                            let parsed = epikv_eviction::parse_policies([policy.as_str()], true).expect(policy);
                            assert_eq!(&parsed[0].name, policy, "as results name it");
                        }
                    }
                }
            }
            if let Some(command) = &claim.command {
                let typed = command.replace("--model M", "--model random:0").replace('\'', "");
                Cli::try_parse_from(typed.split_whitespace()).unwrap_or_else(|error| panic!("{}: {error}", claim.id));
            }
        }
    }

    #[test]
    fn arithmetic_decides_without_a_run() {
        let rows = rows(None).unwrap();
        let of = |id: &str| rows.iter().find(|row| row.claim.id == id).map(|row| row.verdict);
        assert_eq!(of("sixteen-times-as-many-requests"), Some("holds"));
        assert_eq!(of("no-attention-maps-at-8k"), Some("holds"));
        assert_eq!(of("aime-intervals-span-zero"), Some("holds"));
        assert_eq!(of("best-on-every-task"), Some("contradicted"));
        assert_eq!(of("better-than-recency"), Some("not measured"));
        assert!(in_short(&rows, None).starts_with("Of "));
    }
}
