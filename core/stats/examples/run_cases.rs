//! Runs a file of golden cases: `cargo run --release -p epikv-stats --example run_cases -- FILE`.
//!
//! Prints each failure and the line `N passed, N failed`. Exit status 1 if any failed, 2 if the file can't be read.

#[path = "../tests/support/cases.rs"]
mod cases;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let Some(path) = std::env::args_os().nth(1) else {
        writeln!(io::stderr(), "usage: run_cases FILE")?;
        return Ok(ExitCode::from(2));
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            writeln!(io::stderr(), "error: reading {}: {error}", path.display())?;
            return Ok(ExitCode::from(2));
        }
    };
    let outcome = cases::run(&text);
    let mut out = io::stdout().lock();
    for failure in &outcome.failures {
        writeln!(out, "{failure}")?;
    }
    writeln!(out, "{} passed, {} failed", outcome.passed, outcome.failures.len())?;
    Ok(if outcome.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
