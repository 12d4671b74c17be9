//! `epikv policies`: lists the eviction policies and the values of their parts.

use std::io::Write;

use anyhow::Result;
use epikv_eviction::{PARTS, POLICIES, PolicyRow};
use epikv_signals::{SCORES, ScoreRow};
use serde_json::{Value, json};

use crate::cli::PoliciesArgs;
use crate::output::Done;

/// Prints the registry.
pub(crate) fn run(args: &PoliciesArgs) -> Result<Done> {
    let mut out = crate::terminal::out();
    if args.json {
        let rows: Vec<Value> = POLICIES.iter().map(row_json).collect();
        let parts: Vec<Value> = PARTS.iter().map(|(name, values)| json!({ "part": name, "values": values })).collect();
        let scores: Vec<Value> = SCORES.iter().map(score_json).collect();
        let all = json!({ "policies": rows, "parts": parts, "scores": scores });
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(Done::All);
    }
    if args.markdown {
        write!(out, "{}", epikv_eviction::page())?;
        return Ok(Done::All);
    }
    for row in POLICIES {
        let attention = if needs_attention(row) { "; needs attention weights" } else { "" };
        writeln!(out, "{}\n    {}{attention}\n    {}\n    source: {}\n", row.name, row.doc, row.policy, row.source)?;
    }
    writeln!(out, "Parts, replaced as in `h2o;protect=sinks(4)+recency;trigger=every(64)`:")?;
    for (name, values) in PARTS.iter() {
        writeln!(out, "    {name:<9} {values}")?;
    }
    writeln!(out, "\nScores:")?;
    for row in SCORES {
        let spec = row.spec;
        let needs = if spec.needs.is_empty() { String::new() } else { format!("; needs {}", needs(row).join(", ")) };
        let differs =
            if spec.differs.is_empty() { String::new() } else { format!(". Differs from there in: {}", spec.differs) };
        writeln!(
            out,
            "    {}\n        {}{needs}\n        source: {}{differs}",
            row.forms().join(", "),
            spec.doc,
            spec.source
        )?;
    }
    Ok(Done::All)
}

fn needs_attention(row: &PolicyRow) -> bool {
    row.policy.has_budget() && row.policy.score.needs_attention(epikv_signals::REFERENCE_LAYERS)
}

fn needs(row: &ScoreRow) -> Vec<&'static str> {
    row.spec.needs.iter().map(|need| need.name()).collect()
}

fn score_json(row: &ScoreRow) -> Value {
    let spec = row.spec;
    json!({
        "name": spec.name,
        "forms": row.forms(),
        "doc": spec.doc,
        "source": spec.source,
        "differs": spec.differs,
        "needs": needs(row),
        "frozen": spec.frozen,
        "weight": spec.weight,
    })
}

fn row_json(row: &PolicyRow) -> Value {
    json!({
        "name": row.name,
        "doc": row.doc,
        "source": row.source,
        "composition": row.policy.to_string(),
        "needs_attention": needs_attention(row),
    })
}
