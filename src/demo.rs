//! `epikv demo`: the whole flow on what the binary carries, with a check of itself at the end.
//!
//! For now the model is a seeded random one. It writes no boxed answers, so what is labelled is whether the *text* after
//! the boundary changes (`--answer text`): that exercises every step and says nothing about reasoning.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Parser;
use epikv_labeler::{AnswerKind, Config, Labels, Settings, Summary};
use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Manifest, Trace, read_table};

use crate::cli::{Cli, Command, DemoArgs};
use crate::output::{Done, RunFolder};
use crate::{label, setup, trace};

/// Small problems of our own, with answers.
const PROBLEMS: &str = include_str!("../data/demo-problems.jsonl");

/// New tokens of a demo trace and of a demo regeneration: the tail of a trace without tags is its last 64 tokens.
const TRACE_TOKENS: &str = "192";
const ANSWER_TOKENS: usize = 48;

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<Done> {
    let out = &args.out;
    if out.exists() && !out.join("manifest.jsonl").exists() && out.read_dir()?.next().is_some() {
        bail!("{}: expected a new folder or one of an earlier demo, got a folder of something else", out.display());
    }
    epikv_schemas::fs::create_folder(out)?;
    let problems = out.join("problems.jsonl");
    epikv_schemas::fs::write_atomic(&problems, PROBLEMS.as_bytes())?;
    let traces = out.join("traces.parquet");
    let mut typed: Vec<std::ffi::OsString> = vec!["epikv".into(), "trace".into(), "--fresh".into()];
    typed.extend(["--max-new".into(), TRACE_TOKENS.into(), "--problems".into(), problems.into()]);
    typed.extend(["--out".into(), traces.clone().into()]);
    typed.extend(args.threads.iter().flat_map(|n| ["--threads".into(), n.to_string().into()]));
    typed.extend(args.quiet.then(|| "--quiet".into()));
    let Command::Trace(trace_args) = Cli::try_parse_from(typed)?.command else { unreachable!("a trace command") };
    trace::run(&trace_args)?;

    let model = setup::model(&trace_args.model)?;
    let (rows, _) = read_table::<Trace>(&traces)?;
    let settings = Settings {
        answer: AnswerKind::Text,
        max_new: ANSWER_TOKENS,
        threads: rayon::current_num_threads(),
        ..Settings::default()
    };
    let config = Config::try_from(settings)?;
    let folder = RunFolder::open(out, &[], true)?;
    let labels = label::run_labels(&model, &rows, &config, args.quiet)?;
    label::write(folder, &labels, &model, &config, &traces)?;
    let summary = Summary::of(&labels, &rows);
    label::print(&labels, &summary, out)?;
    let checks = checks(out, &labels)?;
    let mut err = std::io::stderr();
    writeln!(err, "\nself-check")?;
    for (what, good) in &checks {
        writeln!(err, "  {} {what}", if *good { "ok    " } else { "FAILED" })?;
    }
    writeln!(err, "the random model knows nothing: these labels show that the tool runs, not where answers come from")?;
    if args.json {
        let ok = checks.iter().all(|(_, good)| *good);
        writeln!(std::io::stdout(), "{}", serde_json::json!({ "summary": summary, "checks_ok": ok }))?;
    }
    Ok(if checks.iter().all(|(_, good)| *good) { Done::All } else { Done::SomeFailed })
}

/// What must hold of the demo's files.
fn checks(out: &Path, labels: &Labels) -> Result<Vec<(&'static str, bool)>> {
    let (windows, _) = read_table::<LabelWindow>(&out.join("label_windows.parquet"))?;
    let (tokens, _) = read_table::<LabelToken>(&out.join("label_tokens.parquet"))?;
    let (traces, _) = read_table::<LabelTrace>(&out.join("label_traces.parquet"))?;
    let tested = tokens.iter().filter(|t| t.tested).count();
    let reasoning: usize = traces.iter().filter(|t| t.usable).map(|t| t.n_reason as usize).sum();
    let golds = ["42", "7", r"\frac{1}{2}", "025"];
    let graded = golds.iter().all(|gold| {
        let text = format!(r"so \boxed{{{gold}}}");
        epikv_grader::last_box(&text)
            .is_some_and(|answer| epikv_grader::compare(answer, gold, epikv_grader::Mode::Strict).verdict.is_same())
    });
    Ok(vec![
        (
            "controls reproduce the traces",
            traces.iter().all(|t| t.control_outcome == "same") && labels.failures.is_empty(),
        ),
        ("every reasoning token is covered, no other", tested == reasoning && tested > 0),
        ("some windows change the continuation", windows.iter().any(|w| w.flipped == Some(true))),
        ("files are what the manifest lists", Manifest::open(out)?.verify().is_ok()),
        ("the grader equates its golds with themselves", graded),
    ])
}
