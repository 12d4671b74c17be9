//! `epikv signals`: lists the signals that can be recorded.

use std::io::Write;

use anyhow::Result;
use epikv_signals::SIGNALS;
use serde_json::{Value, json};

use crate::cli::SignalsArgs;
use crate::output::Done;

/// Prints the table of signals.
pub(crate) fn run(args: &SignalsArgs) -> Result<Done> {
    let mut out = crate::terminal::out();
    if args.json {
        let all: Vec<Value> = SIGNALS
            .iter()
            .map(|row| {
                let spec = row.spec;
                let per_layer = row.has_layers();
                json!({
                    "name": spec.name, "per_layer": per_layer, "unit": spec.unit, "doc": spec.doc, "source": spec.source,
                })
            })
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(Done::All);
    }
    if args.markdown {
        write!(out, "{}", epikv_signals::page())?;
        return Ok(Done::All);
    }
    for row in SIGNALS {
        let (spec, values) = (row.spec, row.values());
        writeln!(out, "{} ({values}, unit {})\n    {}\n    {}", spec.name, spec.unit, spec.doc, spec.source)?;
    }
    writeln!(
        out,
        "Scores of `epikv policies`, except labels, are signals too: SCORE is the score at the end of the trace,"
    )?;
    writeln!(out, "SCORE@age=W the score when W tokens have followed, as in `snapkv,r-kv(lambda0.3)@age=64`.")?;
    Ok(Done::All)
}
