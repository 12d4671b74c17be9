//! `epikv problems`: generated problems with known answers.

use std::io::Write;

use anyhow::{Result, bail};
use epikv_tasks::problem::{Problem, problem_lines, write_problems};
use epikv_tasks::tiny::{Level, TinyProblem};

use crate::cli::{Family, ProblemsArgs};
use crate::output::{Done, check_alone};

/// Writes a file of problems.
pub(crate) fn run(args: &ProblemsArgs) -> Result<Done> {
    if args.out.extension().is_none_or(|extension| extension != "jsonl") {
        bail!("--out {}: expected a file name that ends in .jsonl", args.out.display());
    }
    if let Some(folder) = args.out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        epikv_schemas::fs::create_folder(folder)?;
    }
    let level = args.level;
    let problems = match args.family {
        Family::Tiny => tiny(level, args.seed, args.n),
    };
    check_alone(&args.out, problem_lines(&args.out, &problems)?.as_bytes(), args.fresh)?;
    write_problems(&args.out, &problems)?;
    writeln!(crate::terminal::err(), "{} problems, level {} -> {}", args.n, level.name(), args.out.display())?;
    Ok(Done::All)
}

/// The first `n` problems of a seed.
pub(crate) fn tiny(level: Level, seed: u64, n: usize) -> Vec<Problem> {
    (0..n as u64).map(|index| TinyProblem::generate(level, seed, index).to_problem()).collect()
}
