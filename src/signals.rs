//! `epikv signals`: lists the signals that can be recorded.

use std::io::Write;

use anyhow::Result;
use epikv_signals::{Build, SIGNALS};
use serde_json::{Value, json};

use crate::cli::SignalsArgs;
use crate::output::Done;

/// Prints the table of signals.
pub(crate) fn run(args: &SignalsArgs) -> Result<Done> {
    let mut out = std::io::stdout();
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
    for row in SIGNALS {
        let each = match row.build {
            Build::PerLayer(_) => "one a layer",
            Build::PerLayerAndMean(_) => "one a layer and their mean",
            Build::PerModel(_) => "one a model",
            Build::Aged(_) => "one a model, known at that age",
            Build::Late(_) => "one a model, known at the trace's end",
            Build::Score(..) => "one a model, a score of policies",
        };
        writeln!(
            out,
            "{} ({each}, unit {})\n    {}\n    {}",
            row.spec.name, row.spec.unit, row.spec.doc, row.spec.source
        )?;
    }
    Ok(Done::All)
}
