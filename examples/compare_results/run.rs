//! The runs whose results are compared. Seeds are fixed, so two runs of a binary give the same data files.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Problems of `evict` and `correlate`; the demo has its own.
const PROBLEMS: &[&str] = &["problems", "tiny", "--n", "4", "--seed", "7", "--out", "problems.jsonl"];

/// All commands, in the order in which one needs the results of another. Paths are relative to the folder of results.
const COMMANDS: &[&[&str]] = &[
    &["demo", "--out", "demo", "--quiet"],
    PROBLEMS,
    &[
        "evict",
        "--problems",
        "problems.jsonl",
        "--policies",
        "all",
        "--budgets",
        "prompt+25%,prompt+50%",
        "--max-new",
        "480",
        "--record-steps",
        "--out",
        "evict",
        "--quiet",
    ],
    &["trace", "--problems", "problems.jsonl", "--max-new", "480", "--out", "traces.parquet", "--quiet"],
    &["label", "--traces", "traces.parquet", "--max-new", "64", "--out", "labels", "--quiet"],
    &[
        "correlate",
        "--traces",
        "traces.parquet",
        "--labels",
        "labels",
        "--kernel",
        "explicit",
        "--bootstrap",
        "200",
        "--surrogates",
        "99",
        "--out",
        "correlate",
        "--quiet",
    ],
];

/// Runs all commands of a binary in a new folder.
///
/// # Errors
/// If the folder has something in it, or a command does not end with exit status 0.
pub(crate) fn all(binary: &Path, out: &Path) -> Result<()> {
    let binary = binary.canonicalize().with_context(|| format!("no binary {}", binary.display()))?;
    fs::create_dir_all(out).with_context(|| format!("creating {}", out.display()))?;
    ensure!(fs::read_dir(out)?.next().is_none(), "{}: expected a new folder, got one with files in it", out.display());
    for arguments in COMMANDS {
        let mut command = Command::new(&binary);
        command.args(*arguments).current_dir(out).stdin(Stdio::null());
        let ended = command.output().with_context(|| format!("starting {}", binary.display()))?;
        let said = || String::from_utf8_lossy(&ended.stderr).into_owned();
        ensure!(ended.status.success(), "{} {}: {}\n{}", binary.display(), arguments.join(" "), ended.status, said());
    }
    Ok(())
}
