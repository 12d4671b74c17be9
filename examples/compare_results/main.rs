//! Shows that two builds of `epikv` compute the same results.
//!
//! ```text
//! cargo run --release --example compare_results -- OLD NEW
//! ```
//!
//! `OLD` and `NEW` are binaries, or folders in which an earlier run of this program left its results. Each binary runs
//! `demo`, `evict --policies all` and `correlate --kernel explicit` on fixed seeds; then the data files are compared row by
//! row. Every column of an old file must be in the new one with equal values: the same bits of a float, null where null was.
//!
//! Set aside are provenance, `*_timings.parquet` and rows of random scores in kept sets of layers or heads. New columns, rows
//! and files are listed. Exit status 1 if a value differs, 2 if a binary could not be run or a file not be read.
//!
//! With `--keep FOLDER` the results stay in `FOLDER/old` and `FOLDER/new`.

mod files;
mod run;
mod table;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: compare_results OLD NEW [--keep FOLDER]";

/// What is to be compared, and where results are written.
struct Arguments {
    old: PathBuf,
    new: PathBuf,
    keep: Option<PathBuf>,
}

fn arguments() -> Result<Arguments> {
    let mut given = std::env::args_os().skip(1);
    let (mut sides, mut keep) = (Vec::new(), None);
    while let Some(word) = given.next() {
        if word == "--keep" {
            keep = Some(PathBuf::from(given.next().context(USAGE)?));
        } else {
            sides.push(PathBuf::from(word));
        }
    }
    let Ok([old, new]) = <[PathBuf; 2]>::try_from(sides) else { bail!(USAGE) };
    Ok(Arguments { old, new, keep })
}

/// The folder of results of one side: a folder as it is, a binary after its runs.
fn results(side: &Path, out: PathBuf) -> Result<PathBuf> {
    if side.is_dir() {
        return Ok(side.to_owned());
    }
    let started = Instant::now();
    run::all(side, &out)?;
    writeln!(io::stderr(), "{}: {:.0} seconds", side.display(), started.elapsed().as_secs_f64())?;
    Ok(out)
}

fn compare() -> Result<bool> {
    let Arguments { old, new, keep } = arguments()?;
    let scratch = tempfile::tempdir()?;
    let under = keep.unwrap_or_else(|| scratch.path().to_owned());
    let (old, new) = (results(&old, under.join("old"))?, results(&new, under.join("new"))?);
    let report = files::compare(&old, &new)?;
    report.print(&mut io::stdout().lock())?;
    Ok(report.is_equal())
}

fn main() -> Result<ExitCode> {
    match compare() {
        Ok(equal) => Ok(if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        Err(error) => {
            writeln!(io::stderr(), "error: {error:#}")?;
            Ok(ExitCode::from(2))
        }
    }
}
