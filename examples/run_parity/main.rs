//! Runs reference numbers of other programs through the toolkit.
//!
//! ```text
//! cargo run --release --example run_parity -- FOLDER [--kind KIND] [--device cpu|tensor|cuda:N]
//! ```
//!
//! `FOLDER` holds `models/*/` (a model with `hf.json`), `kvpress.json.gz`, `kvpress_decode.json.gz`, `epikv.json.gz`,
//! `vase.json.gz`, `originals.json.gz` and the tensors that these name, or some of them; `tests/golden/parity` is one. Models,
//! ratios, budgets and settings are taken as they come.
//!
//! The models compute on `--device`, the CPU unless told otherwise.
//!
//! Prints each failure with what was expected and got, what the toolkit lacks, and how many cases of each kind passed,
//! failed and are not implemented. Exit status 1 if a case failed, 2 if nothing could be run.

mod check;
mod epikv;
mod kvpress;
mod models;
mod originals;
mod policies;
mod read;
mod steps;
#[cfg(test)]
mod tests;
mod vase;
mod window;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use epikv_model::backend::DeviceName;

use crate::check::Outcome;

const USAGE: &str = "usage: run_parity FOLDER [--kind models|kvpress|kvpress_decode|epikv|vase|originals] \
                     [--device cpu|tensor|cuda:N]";

/// Runs the cases of one kind of a folder into an outcome.
type Runner = fn(&Path, DeviceName, &mut Outcome) -> Result<()>;

/// The kinds of cases, with the file or folder that holds them.
const KINDS: &[(&str, &str, Runner)] = &[
    ("models", "models", models::run),
    ("kvpress", "kvpress.json.gz", kvpress::run),
    ("kvpress_decode", "kvpress_decode.json.gz", kvpress::run_decode),
    ("epikv", "epikv.json.gz", epikv::run),
    ("vase", "vase.json.gz", vase::run),
    ("originals", "originals.json.gz", originals::run),
];

/// Runs all kinds of cases that a folder has, or one.
///
/// # Errors
/// If there is none.
fn run(folder: &Path, only: Option<&str>, device: DeviceName) -> Result<Outcome> {
    ensure!(only.is_none_or(|only| KINDS.iter().any(|(kind, ..)| *kind == only)), USAGE);
    let mut outcome = Outcome::default();
    for (kind, file, runner) in KINDS.iter().filter(|(kind, ..)| only.is_none_or(|only| *kind == only)) {
        if folder.join(file).exists() {
            outcome.start(kind);
            runner(folder, device, &mut outcome)?;
        }
    }
    ensure!(!outcome.is_empty(), "{}: expected parity cases, found none", folder.display());
    Ok(outcome)
}

fn from_arguments() -> Result<Outcome> {
    let mut given = std::env::args().skip(1);
    let (mut folder, mut kind, mut device) = (None, None, DeviceName::Cpu);
    while let Some(word) = given.next() {
        if word == "--kind" {
            kind = Some(given.next().context(USAGE)?);
        } else if word == "--device" {
            device = given.next().context(USAGE)?.parse()?;
        } else if folder.replace(PathBuf::from(word)).is_some() {
            bail!(USAGE);
        }
    }
    run(&folder.context(USAGE)?, kind.as_deref(), device)
}

fn main() -> Result<ExitCode> {
    match from_arguments() {
        Ok(outcome) => {
            outcome.print(&mut io::stdout().lock())?;
            Ok(if outcome.n_failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Err(error) => {
            writeln!(io::stderr(), "error: {error:#}")?;
            Ok(ExitCode::from(2))
        }
    }
}
