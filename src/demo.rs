//! `epikv demo`: the whole flow on the embedded model, in one folder, with checks at the end.
//!
//! Each step is the command that a user would type.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use epikv_analyzer::claims::TRUNCATED;
use epikv_schemas::{EvictionRun, LabelToken, LabelTrace, LabelWindow, Manifest, Record, Trace, read_table};
use epikv_tasks::problem::write_problems;
use epikv_tasks::tiny::Level;
use serde_json::json;

use crate::check::Check;
use crate::cli::{Cli, Command, DemoArgs};
use crate::job::Job;
use crate::output::Done;
use crate::pages::{DETAILS, short};
use crate::report::Refused;
use crate::{claims, correlate, evict, golds, label, problems, trace};

/// Problems, drawn with this seed.
const N_PROBLEMS: usize = 20;
const SEED: u64 = 2026;

/// `random`, `h2o`, `key-diff` and `r-kv` choose once for all heads and for each head.
const POLICIES: &str = "full,window,streaming-llm-absolute,random,random;scope=per-head,h2o,h2o;scope=global,key-diff,\
     key-diff;scope=global,r-kv,r-kv;scope=global,kv-key,epikv,epikv-raw,oracle-labels";
const BUDGETS: &str = "prompt+25%,prompt+50%";

/// The families that the demo shows; all of them take a minute more.
const CORRELATE: &[&str] = &[
    "--signals",
    "hs_l2,kv_key_var,kv_val_var,surprisal,entropy,epikv,epikv_raw,epikv_a,epikv_b,band_adaptive,kv_key",
    "--smooth",
    "raw,mean,ema,z",
    "--surrogates",
    "199",
];

/// Problems for claims: a difference of six answers is seen.
const CLAIM_PROBLEMS: usize = 40;

/// The signals that claims are about, with attention weights.
const CLAIM_SIGNALS: &str = "hs_l2,hs_cos,kv_key_var,kv_key_var_prerope,kv_key_norm,kv_key_norm_prerope,kv_val_norm,\
     kv_val_range,surprisal,attn_entropy,h2o_attn,epikv,epikv_raw";

/// The policies that claims compare.
const CLAIM_POLICIES: &str = "full,window,random,h2o,h2o;scope=global,h2o-global,h2o-global;position=rewound,\
     kv-key,epikv,epikv-raw,\
     epikv-lag,raas,r-kv,snapkv-decode,snapkv-decode;select=top-k+values(10%),snapkv-decode;select=top-k+values(50%),\
     vase,vase;select=draw,vase;select=top-k+values(25%)";

/// Where the claims' page goes.
const CLAIMS_PAGE: &str = "claims.md";

/// New tokens of a trace at most; the longest solution has about 450.
const MAX_NEW: &str = "480";
/// New tokens of a regenerated answer at most; a right one has about 25.
const ANSWER_TOKENS: &str = "64";

/// Known needs must be recovered with at least this area under the ROC curve.
const LEAST_AUC: f64 = 0.9;

/// What the manifest calls the command; by it a folder is known to be a demo's.
const COMMAND: &str = "demo";

/// The problems, which are written first.
const PROBLEMS: &str = "problems.jsonl";

/// Lines of the report of a step at most: two of them and the self-check are one report.
const STEP_LINES: usize = 70;

/// Where the reports of all steps go in the end.
const REPORT: &str = "report.md";

/// Whether a demo may write there: nothing is there yet, or its manifest says that a demo wrote it.
fn is_new_or_a_demo(out: &Path) -> bool {
    let Ok(mut entries) = out.read_dir() else { return !out.exists() };
    let of_a_demo = |manifest: Manifest| {
        manifest.entries().iter().any(|entry| entry.info.get("command").is_some_and(|command| command == COMMAND))
    };
    entries.next().is_none() || Manifest::open(out).is_ok_and(of_a_demo)
}

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<Done> {
    let (out, started) = (&args.out, Instant::now());
    args.device.options()?;
    if !is_new_or_a_demo(out) {
        let what =
            format!("--out {}: expected a new folder or one of a demo, got one of something else", out.display());
        return Err(Refused::new(what, "another --out keeps it; a demo replaces what is in its folder").into());
    }
    let (problem_file, trace_file) = (out.join(PROBLEMS), out.join("traces.parquet"));
    let mut job = Job::open(COMMAND, out, &[PROBLEMS], true)?;
    // First of all, so that the folder of a demo that was killed is known to be one.
    let n_problems = if args.claims { CLAIM_PROBLEMS } else { N_PROBLEMS };
    let made = problems::tiny(Level::Default, SEED, n_problems);
    job.file_by(PROBLEMS, |path| Ok(write_problems(path, &made)?))?;
    job.finish()?;

    let step = |name: &str, flags: &[(&str, &Path)], words: &[&str]| -> Result<Command> {
        writeln!(crate::terminal::err(), "\n== {name}")?;
        let mut typed: Vec<OsString> =
            vec!["epikv".into(), name.into(), "--model".into(), "tiny".into(), "--fresh".into()];
        typed.extend(args.threads.iter().flat_map(|n| ["--threads".into(), n.to_string().into()]));
        let (device, dtype) = (args.device.device.to_string(), args.device.dtype.to_string());
        typed.extend(["--device".into(), device.into(), "--dtype".into(), dtype.into()]);
        // Only correlation has no rows that run together.
        let batch = (name != "correlate").then(|| ["--batch".into(), n_problems.to_string().into()]);
        typed.extend(batch.into_iter().flatten());
        typed.extend(args.quiet.then(|| "--quiet".into()));
        typed.extend(flags.iter().flat_map(|(flag, path)| [flag.into(), path.into()]));
        typed.extend(words.iter().map(OsString::from));
        Ok(Cli::try_parse_from(typed)?.command)
    };
    let mut reports = Vec::new();
    let mut all_done = true;
    let mut done = |result: Result<Done>| -> Result<()> {
        all_done &= result? == Done::All;
        Ok(())
    };
    if let Command::Trace(args) =
        step("trace", &[("--problems", &problem_file), ("--out", &trace_file)], &["--max-new", MAX_NEW])?
    {
        done(trace::run(&args))?;
    }
    if let Command::Label(args) =
        step("label", &[("--traces", &trace_file), ("--out", out)], &["--max-new", ANSWER_TOKENS])?
    {
        done(label::run(&args))?;
    }
    if args.claims {
        let (folder, words) = (out.join(TRUNCATED), ["--max-new", ANSWER_TOKENS, "--intervention", "truncate"]);
        if let Command::Label(args) = step("label", &[("--traces", &trace_file), ("--out", &folder)], &words)? {
            done(label::run(&args))?;
        }
    }
    let mut words = CORRELATE.to_vec();
    if args.claims {
        words[1] = CLAIM_SIGNALS;
        words.extend(["--kernel", "explicit"]);
    }
    if let Command::Correlate(args) =
        step("correlate", &[("--traces", &trace_file), ("--labels", out), ("--out", out)], &words)?
    {
        done(correlate::run(&args))?;
        reports.push(std::fs::read_to_string(out.join(DETAILS))?);
    }
    let policies = if args.claims { CLAIM_POLICIES } else { POLICIES };
    let words = ["--policies", policies, "--budgets", BUDGETS, "--max-new", MAX_NEW];
    if let Command::Evict(args) =
        step("evict", &[("--problems", &problem_file), ("--labels", out), ("--out", out)], &words)?
    {
        done(evict::run(&args))?;
        reports.push(std::fs::read_to_string(out.join(DETAILS))?);
    }
    let checks = checks(out)?;
    let good = checks.iter().all(|check| check.good);
    let shown: String = checks.iter().map(Check::line).collect();
    let checked = format!("# Self-check\n\n{shown}");
    let mut job = Job::open(COMMAND, out, &[REPORT, DETAILS], true)?;
    let halves = reports.iter().map(|report| short(report, STEP_LINES)).chain([checked.clone()]);
    job.file(REPORT, halves.collect::<Vec<_>>().join("\n"))?;
    reports.push(checked);
    job.file(DETAILS, reports.join("\n"))?;
    job.finish()?;
    let decided = if args.claims {
        let (page, short) = claims::page(out)?;
        let mut job = Job::open(COMMAND, out, &[CLAIMS_PAGE], true)?;
        job.file(CLAIMS_PAGE, page)?;
        job.finish()?;
        format!("claims\n{short}")
    } else {
        String::new()
    };

    let seconds = started.elapsed().as_secs_f64();
    index(out, args)?;
    writeln!(crate::terminal::err(), "\nself-check\n{shown}\n{decided}{seconds:.0} seconds -> {}", out.display())?;
    writeln!(crate::terminal::err(), "{}", next_steps(out))?;
    if args.json {
        let checks: Vec<_> = checks.iter().map(|check| json!({ "what": check.what, "good": check.good })).collect();
        writeln!(crate::terminal::out(), "{}", json!({ "checks": checks, "checks_ok": good, "seconds": seconds }))?;
    }
    Ok(if good && all_done { Done::All } else { Done::SomeFailed })
}

/// What to open, and the same with a model and problems of one's own.
fn next_steps(out: &Path) -> String {
    format!(
        "open {0}/report.md, {0}/figure_layers.svg and {0}/figure_accuracy.svg; {0}/README.md lists all files\n\
         next, with a model of your own:\n  \
         epikv trace --model FOLDER_OR_GGUF --problems problems.jsonl --out run/traces.parquet\n  \
         epikv label --model FOLDER_OR_GGUF --traces run/traces.parquet --out run/labels",
        out.display()
    )
}

/// `README.md` of the folder: what each file is.
fn index(out: &Path, args: &DemoArgs) -> Result<()> {
    let mut lines =
        vec![(REPORT.to_owned(), "reports of `correlate` and `evict`, and the self-check: read this first".to_owned())];
    lines.push((DETAILS.to_owned(), "the same with all sections".to_owned()));
    if args.claims {
        lines.push((CLAIMS_PAGE.to_owned(), "verdicts on the papers' claims".to_owned()));
    }
    lines.push((PROBLEMS.to_owned(), "the problems, with the values that each answer needs".to_owned()));
    for table in epikv_schemas::registry() {
        let file = format!("{}.parquet", table.name);
        if out.join(&file).exists() {
            // The first sentence says what a row is.
            let doc = table.doc.trim().split(". ").next().unwrap_or_default().trim_end_matches('.');
            lines.push((file, doc.replace('\n', " ")));
        }
    }
    lines.push((
        "figure_*.svg, .png".to_owned(),
        "figures; the numbers of each are in the `.csv` of the same name".to_owned(),
    ));
    lines.push(("report.csv".to_owned(), "the table of accuracy".to_owned()));
    lines.push(("manifest.jsonl".to_owned(), "size, hash and origin of each file".to_owned()));
    let rows: Vec<String> = lines.iter().map(|(file, what)| format!("| `{file}` | {what} |")).collect();
    let page = format!(
        "# Files of `epikv demo`\n\nTables are Parquet; docs/files.md of the toolkit has each column, and so has `epikv schema \
         TABLE`.\n\n| file | what |\n| --- | --- |\n{}\n",
        rows.join("\n")
    );
    let mut job = Job::open(COMMAND, out, &["README.md"], true)?;
    job.file("README.md", page)?;
    job.finish()
}

/// What must hold of the demo's files.
fn checks(out: &Path) -> Result<Vec<Check>> {
    let windows: Vec<LabelWindow> = table(out)?;
    let tokens: Vec<LabelToken> = table(out)?;
    let labelled: Vec<LabelTrace> = table(out)?;
    let traces: Vec<Trace> = table(out)?;
    let runs: Vec<EvictionRun> = table(out)?;

    let tested = tokens.iter().filter(|token| token.tested).count();
    let reasoning: usize = labelled.iter().filter(|trace| trace.usable).map(|trace| trace.n_reason as usize).sum();
    let same = labelled.iter().filter(|trace| trace.control_outcome == "same").count();
    let known = epikv_labeler::Known::of(&windows, &labelled, &traces);
    let auc = known.and_then(|known| known.auc);
    let evicting: Vec<&EvictionRun> = runs.iter().filter(|run| run.budget.is_some()).collect();
    let held = evicting.iter().filter(|run| run.certificate == Some(true)).count();
    let fired = evicting.iter().filter(|run| run.n_evictions.is_some_and(|n| n > 0)).count();
    let manifest = Manifest::open(out)?.verify();
    Ok(vec![
        Check::share("controls reproduce the traces' answers", same, labelled.len()),
        Check::share("reasoning tokens covered by windows", tested, reasoning),
        Check {
            good: auc.is_some_and(|auc| auc >= LEAST_AUC),
            what: "labels recover the values that the answers need",
            figure: auc.map_or("undefined".to_owned(), |auc| format!("AUC {auc:.3}")),
        },
        Check::share("generations that kept the budget and lost no protected token", held, evicting.len()),
        Check::share("generations under a budget that evicted", fired, evicting.len()),
        golds::reflexive("gold answers that the grader finds equal to themselves", &golds::built_in()),
        Check {
            good: manifest.is_ok(),
            what: "files are what the manifest lists",
            figure: manifest.map_or_else(|error| error.to_string(), |()| "all".to_owned()),
        },
    ])
}

fn table<R: Record>(folder: &Path) -> Result<Vec<R>> {
    let (rows, _) = read_table(&folder.join(format!("{}.parquet", R::table().name)))?;
    Ok(rows)
}
