//! Problems to traces to labels, and the same bytes whatever the batch and the threads.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Trace, read_table};

use crate::support::{Place, bytes};

const DATA: &[&str] = &["label_windows.parquet", "label_tokens.parquet", "label_traces.parquet"];

#[test]
fn the_demo_checks_itself() {
    let place = Place::new();
    let ran = place.epikv(&["demo", "--out", "demo", "--quiet", "--json"]).ok();
    assert!(ran.stdout().contains("\"checks_ok\":true"), "{}", ran.stdout());
    let others =
        ["traces.parquet", "correlations.parquet", "eviction_runs.parquet", "figure_layers.png", "manifest.jsonl"];
    for file in DATA.iter().chain(&others) {
        assert!(place.path("demo").join(file).exists(), "{file}");
    }
    let manifest = epikv_schemas::Manifest::open(&place.path("demo")).unwrap();
    assert_eq!(manifest.entries()[0].part.file, "problems.jsonl", "by it a killed demo is known to be one");
    assert!(manifest.entries()[0].info.get("command").is_some_and(|command| command == "demo"));
    let report = std::fs::read_to_string(place.path("demo").join("report.md")).unwrap();
    assert!(report.lines().count() <= 150 && report.matches("**In short**").count() == 2, "{report}");
    let index = std::fs::read_to_string(place.path("demo").join("README.md")).unwrap();
    assert!(DATA.iter().all(|file| index.contains(&format!("`{file}`"))), "{index}");
    other_readers_agree(&place.path("demo"));
}

/// pandas, Polars, DuckDB, pyarrow and Hugging Face `datasets` sum every column of every file to the same values.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn other_readers_agree(folder: &Path) {
    let python = std::env::var_os("EPIKV_PYTHON").unwrap_or_else(|| "python3".into());
    let python = |args: &[&OsStr]| Command::new(&python).args(args).output();
    let imports = "import datasets, duckdb, pandas, polars, pyarrow";
    match python(&["-c".as_ref(), imports.as_ref()]) {
        Ok(ran) if ran.status.success() => {}
        _ => {
            eprintln!("skipped: EPIKV_PYTHON (or python3) has not the packages of tests/interop/requirements.txt");
            return;
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/sums.py");
    let ran = python(&[script.as_os_str(), folder.as_os_str()]).unwrap();
    let text = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && text.contains("5 readers, 0 differences"), "{text}");
}

#[test]
fn batch_and_threads_change_no_byte() {
    let place = Place::new();
    place.problems();
    let mut traces = Vec::new();
    let mut labels = Vec::new();
    for (batch, threads, protocol) in [("1", "1", "naive"), ("2", "2", "fast"), ("8", "1", "fast"), ("3", "2", "naive")]
    {
        let (file, folder) = (format!("t{batch}.parquet"), format!("l{batch}"));
        let run = ["--batch", batch, "--threads", threads, "--quiet", "--seed", "5"];
        let trace = ["trace", "--problems", "problems.jsonl", "--out", &file, "--max-new", "100"];
        let sampled = ["--samples", "2", "--temperature", "0.8", "--top-p", "0.9"];
        place.epikv(&[&trace[..], &sampled, &run].concat()).ok();
        traces.push(bytes(&place.path(&file)));
        std::fs::copy(place.path(&file), place.path("traces.parquet")).unwrap();
        let label = ["label", "--traces", "traces.parquet", "--out", &folder, "--answer", "text", "--max-new", "24"];
        place
            .epikv(
                &[&label[..], &["--filler", "randmulti", "--include-unusable", "--protocol", protocol], &run].concat(),
            )
            .ok();
        labels.push(DATA.iter().map(|f| bytes(&place.path(&folder).join(f))).collect::<Vec<_>>());
    }
    assert!(traces.windows(2).all(|w| w[0] == w[1]), "traces differ");
    assert!(labels.windows(2).all(|w| w[0] == w[1]), "labels differ");
}

#[test]
fn the_files_hold_what_the_schema_says() {
    let place = Place::new();
    place.traces();
    place
        .epikv(&[
            "label",
            "--traces",
            "traces.parquet",
            "--out",
            "labels",
            "--answer",
            "text",
            "--max-new",
            "32",
            "--quiet",
        ])
        .ok();
    let (traces, provenance) = read_table::<Trace>(&place.path("traces.parquet")).unwrap();
    assert_eq!(provenance.get("model").unwrap()["id"], "random:0");
    let folder = place.path("labels");
    let (windows, _) = read_table::<LabelWindow>(&folder.join(DATA[0])).unwrap();
    let (tokens, _) = read_table::<LabelToken>(&folder.join(DATA[1])).unwrap();
    let (summary, _) = read_table::<LabelTrace>(&folder.join(DATA[2])).unwrap();
    for (trace, label) in traces.iter().zip(&summary) {
        assert!(label.usable, "the control repeats a greedy trace: {label:?}");
        let own: Vec<_> = windows.iter().filter(|w| w.trace_id == trace.trace_id).collect();
        assert_eq!(own.len() as i32, label.n_windows);
        assert_eq!(label.n_windows as usize, (trace.boundary - trace.reason_start).div_ceil_by(16));
        assert!(own.iter().all(|w| w.start >= trace.reason_start && w.end <= trace.boundary));
        for token in tokens.iter().filter(|t| t.trace_id == trace.trace_id) {
            let covering = own.iter().filter(|w| (w.start..w.end).contains(&token.pos));
            let flips: Vec<bool> = covering.filter_map(|w| w.flipped).collect();
            assert_eq!(token.tested, (trace.reason_start..trace.boundary).contains(&token.pos));
            assert_eq!(token.important, (!flips.is_empty()).then(|| flips.iter().any(|f| *f)));
        }
    }
}

#[test]
fn schema_prints_every_table() {
    let place = Place::new();
    let text = place.epikv(&["schema"]).ok().stdout();
    for table in epikv_schemas::registry() {
        assert!(text.contains(table.name), "{}", table.name);
        place.epikv(&["schema", table.name, "--json"]).ok();
    }
    place.epikv(&["schema", "no_such"]).refused(&["unknown table \"no_such\"", "label_windows"]);
}

/// Rounded-up division of counts stored as i32.
trait DivCeilBy {
    fn div_ceil_by(self, by: usize) -> usize;
}

impl DivCeilBy for i32 {
    fn div_ceil_by(self, by: usize) -> usize {
        usize::try_from(self).unwrap().div_ceil(by)
    }
}

/// The embedded model ends right after its box, so where to stop changes texts and no answer.
#[test]
fn labels_do_not_depend_on_stopping_at_the_box_or_after_it() {
    let place = Place::new();
    place.epikv(&["problems", "tiny", "--n", "1", "--seed", "3", "--out", "problems.jsonl"]).ok();
    let tiny = ["--model", "tiny", "--quiet"];
    place.epikv(&[&["trace", "--problems", "problems.jsonl", "--out", "traces.parquet"], &tiny[..]].concat()).ok();
    let windows = ["eos", "at-box"].map(|stop| {
        let label = ["label", "--traces", "traces.parquet", "--out", stop, "--stop", stop, "--max-new", "64"];
        place.epikv(&[&label, &tiny[..]].concat()).ok();
        read_table::<LabelWindow>(&place.path(stop).join(DATA[0])).unwrap().0
    });
    let [eos, at_box] = &windows;
    assert_eq!(eos.len(), at_box.len());
    for (eos, at_box) in eos.iter().zip(at_box) {
        assert_eq!((&eos.answer, &eos.outcome), (&at_box.answer, &at_box.outcome), "window {}", eos.window);
        assert!(at_box.hit_limit || at_box.answer_text.ends_with('}'), "{}", at_box.answer_text);
        assert!(at_box.n_new <= eos.n_new);
    }
}

#[test]
fn arms_label_side_by_side_and_are_compared() {
    let place = Place::new();
    place.traces();
    let label = ["label", "--traces", "traces.parquet", "--answer", "text", "--max-new", "16", "--quiet"];
    let ran = place.epikv(&[&label[..], &["--out", "arms", "--arms", "eos,pad,token:5"]].concat()).ok();
    assert_eq!(ran.stdout().lines().count(), 2 + 3, "three pairs\n{}", ran.stdout());
    place.epikv(&[&label[..], &["--out", "alone", "--filler", "token:5"]].concat()).ok();
    for file in DATA {
        let of = |folder: &str| bytes(&place.path(folder).join(file));
        assert_eq!(of("arms/token-5"), of("alone"), "{file}");
    }
    let shares = place.epikv(&["label", "--summary", "alone"]).ok().stdout();
    assert_eq!(shares.lines().count(), 2 + 4 * 2 + 1 + 2 + 1, "shares, then positions\n{shares}");
    place.epikv(&[&label[..], &["--out", "twice", "--arms", "eos,eos"]].concat()).refused(&[
        "--arms",
        "different fillers",
        "eos",
    ]);
}

#[test]
fn a_dry_run_counts_and_writes_nothing() {
    let place = Place::new();
    place.traces();
    let label = ["label", "--traces", "traces.parquet", "--out", "none", "--answer", "text", "--dry-run", "--json"];
    let ran = place.epikv(&[&label[..], &["--rates", "1000,10"]].concat()).ok();
    let report: serde_json::Value = serde_json::from_str(&ran.stdout()).unwrap();
    let count = |name: &str| report["estimate"][name].as_f64().unwrap();
    assert!(count("n_windows") > 0.0 && count("decode") == 0.0);
    assert_eq!(report["seconds"].as_f64(), Some((count("prefill") + count("draft")) / 1000.0));
    assert!(!place.path("none").exists());
    place.epikv(&[&label[..], &["--rates", "0,1"]].concat()).refused(&["--rates", "PREFILL,DECODE"]);
}
