//! `epikv claims`: the claims of the papers, how each is tested, and the figures of a run for it.

use std::io::Write;

use anyhow::{Context, Result};
use epikv_analyzer::claim_verdict::{Verdict, verdicts};
use epikv_analyzer::claims::{Measured, Run};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::ClaimsArgs;
use crate::output::Done;

/// The list lies at the root of the repository.
const CLAIMS: &str = include_str!("../claims.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    claim: Vec<Claim>,
}

/// A row of the list.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    id: String,
    source: String,
    #[serde(rename = "claim")]
    statement: String,
    command: String,
    data: String,
    needs: Needs,
    check: String,
}

/// What a verdict needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
enum Needs {
    /// The weights of DeepSeek-R1-Distill-Llama-8B.
    #[serde(rename = "r1-8b")]
    R1Of8B,
    /// The weights of a Qwen3 model.
    #[serde(rename = "qwen3")]
    Qwen3,
    /// Arithmetic alone.
    #[serde(rename = "nothing")]
    Nothing,
}

impl Needs {
    /// The verdict, with what arithmetic says where that is enough.
    fn verdict(self, computed: Option<&Computed>) -> &'static str {
        match (self, computed) {
            (Self::R1Of8B, _) => "needs the 8B weights",
            (Self::Qwen3, _) => "needs the weights of Qwen3",
            (Self::Nothing, Some(Computed { holds: true, .. })) => "holds",
            (Self::Nothing, Some(Computed { holds: false, .. })) => "does not hold",
            (Self::Nothing, None) => "not computed",
        }
    }
}

/// What arithmetic alone says of a claim.
#[derive(Debug)]
struct Computed {
    holds: bool,
    line: String,
}

/// The figure of a claim that takes no run; none where it takes one.
fn computed(check: &str) -> Option<Computed> {
    (check == "concurrency").then(|| {
        let [short, long] = [2048, 32_768].map(crate::plan::requests_of_the_paper);
        let word = |n: Option<u64>| n.map_or("no".to_owned(), |n| n.to_string());
        let line = format!(
            "{} requests at 2,048 slots and {} at 32,768: floor((0.9 x 80 GiB - 16 GiB) / (slots x 128 KiB))",
            word(short),
            word(long)
        );
        Computed { holds: (short, long) == (Some(224), Some(14)), line }
    })
}

fn claims() -> Result<Vec<Claim>> {
    let claims: Claims = toml::from_str(CLAIMS).context("claims.toml")?;
    Ok(claims.claim)
}

/// Prints the list, with the figures of a run beside it where one is given.
pub(crate) fn run(args: &ClaimsArgs) -> Result<Done> {
    let run = args.run.as_deref().map(Run::open).transpose()?;
    let mut rows = Vec::new();
    for claim in claims()? {
        let by_arithmetic = computed(&claim.check);
        let measured = match (&by_arithmetic, &run) {
            (Some(Computed { line, .. }), _) => {
                Some(Measured { model: "paper".to_owned(), lines: vec![line.clone()], parts: Vec::new() })
            }
            (None, Some(run)) => run.measure(&claim.check),
            (None, None) => None,
        };
        let verdict = claim.needs.verdict(by_arithmetic.as_ref());
        rows.push((claim, verdict, measured));
    }
    let parts: Vec<_> = rows
        .iter()
        .map(|(_, _, measured)| measured.as_ref().map_or_else(Vec::new, |found| found.parts.clone()))
        .collect();
    let here: Vec<&str> = verdicts(&parts).into_iter().map(Verdict::words).collect();
    let mut out = std::io::stdout();
    if args.json {
        let rows: Vec<_> = rows
            .iter()
            .zip(&here)
            .map(|((claim, verdict, measured), here)| {
                json!({ "claim": claim, "verdict": verdict, "here": here, "measured": measured })
            })
            .collect();
        writeln!(out, "{}", json!({ "claims": rows }))?;
        return Ok(Done::All);
    }
    for (((claim, verdict, measured), here), parts) in rows.iter().zip(here).zip(&parts) {
        writeln!(out, "{}  [{}]\n  {}", claim.id, claim.source, claim.statement)?;
        writeln!(out, "  verdict: {verdict}\n  data: {}\n  command: {}", claim.data, claim.command)?;
        if let Some(Measured { model, lines, .. }) = measured {
            for line in lines {
                writeln!(out, "  on {model}: {line}")?;
            }
            if !parts.is_empty() {
                writeln!(out, "  on this model and data: {here}")?;
            }
        }
    }
    Ok(Done::All)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;

    use epikv_analyzer::claims::CHECKS;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_claim_is_complete_and_its_command_can_be_typed() {
        let claims = claims().unwrap();
        let ids: BTreeSet<_> = claims.iter().map(|claim| &claim.id).collect();
        assert_eq!(ids.len(), claims.len());
        for claim in &claims {
            let by_arithmetic = computed(&claim.check);
            let read = CHECKS.iter().any(|(name, _)| *name == claim.check);
            assert!(read || by_arithmetic.is_some(), "{}: {}", claim.id, claim.check);
            assert_eq!(
                claim.needs == Needs::Nothing,
                by_arithmetic.is_some(),
                "{}: arithmetic needs nothing",
                claim.id
            );
            let typed = claim.command.replace("--model M", "--model random:0").replace('\'', "");
            Cli::try_parse_from(typed.split_whitespace()).unwrap_or_else(|error| panic!("{}: {error}", claim.id));
            assert!(!claim.statement.is_empty() && !claim.data.is_empty() && !claim.source.is_empty());
        }
        let used: BTreeSet<_> = claims.iter().map(|claim| claim.check.as_str()).collect();
        assert!(CHECKS.iter().all(|(name, _)| used.contains(name)), "a check that no claim uses");
        let holds = computed("concurrency").expect("arithmetic");
        assert!(holds.holds && holds.line.contains("224") && holds.line.contains("14"), "{holds:?}");
    }
}
