//! `epikv schema`: describes the columns of the record files.

use std::io::Write;

use anyhow::{Result, bail};
use epikv_schemas::describe::{json, markdown, page};
use epikv_schemas::registry;

use crate::cli::SchemaArgs;
use crate::output::Done;

/// Prints one table, all tables, or the page of the documentation.
pub(crate) fn run(args: &SchemaArgs) -> Result<Done> {
    let tables: Vec<_> = match &args.table {
        None => registry().to_vec(),
        Some(name) => {
            let Some(table) = registry().iter().find(|t| t.name == name) else {
                let known: Vec<_> = registry().iter().map(|t| t.name).collect();
                bail!("unknown table {name:?}: expected one of {}", known.join(", "))
            };
            vec![*table]
        }
    };
    let text = if args.markdown {
        page()
    } else if args.json {
        let all: Vec<_> = tables.into_iter().map(json).collect();
        format!("{}\n", serde_json::to_string_pretty(&all)?)
    } else {
        tables.into_iter().map(markdown).collect::<Vec<_>>().join("\n")
    };
    crate::terminal::out().write_all(text.as_bytes())?;
    Ok(Done::All)
}
