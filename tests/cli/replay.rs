//! `epikv replay`.

use std::collections::BTreeSet;

use epikv_schemas::{EvictionCurve, EvictionReplay, Record, read_table};

use crate::support::{Place, Ran, bytes};

/// Traces of the embedded model, which solves its problems, and labels of them.
fn labelled() -> Place {
    let place = Place::new();
    let problems = ["problems", "tiny", "--n", "3", "--level", "middle", "--seed", "5", "--out", "problems.jsonl"];
    place.epikv(&problems).ok();
    let trace = ["trace", "--model", "tiny", "--problems", "problems.jsonl", "--out", "traces.parquet", "--quiet"];
    place.epikv(&trace).ok();
    let label =
        ["label", "--model", "tiny", "--traces", "traces.parquet", "--out", "labels", "--max-new", "48", "--quiet"];
    place.epikv(&label).ok();
    place
}

fn replay(place: &Place, folder: &str, more: &[&str]) -> Ran {
    let run = ["replay", "--model", "tiny", "--traces", "traces.parquet", "--labels", "labels", "--quiet"];
    place.epikv(&[&run[..], &["--out", folder], more].concat())
}

fn rows<R: Record>(place: &Place, folder: &str, file: &str) -> Vec<R> {
    read_table::<R>(&place.path(folder).join(file)).unwrap().0
}

#[test]
fn nothing_evicted_is_nothing_lost_and_labels_are_the_best_choice() {
    let place = labelled();
    let policies = ["--policies", "window,random,h2o,oracle-labels", "--budgets", "prompt+50%,4000"];
    replay(&place, "e", &policies).ok();
    let all: Vec<EvictionReplay> = rows(&place, "e", "eviction_replay.parquet");
    assert_eq!(all.len(), 3 * 4 * 2);
    for row in all.iter().filter(|row| row.budget == "4000") {
        assert_eq!((row.n_evicted, row.certificate, row.gain_end), (Some(0), Some(true), None), "{row:?}");
        assert!(row.mass_end.is_none_or(|mass| (mass - 1.0).abs() < 1e-12), "{row:?}");
        assert_eq!((&row.own_answer, &row.clean_answer), (&row.full_answer, &row.full_answer), "{row:?}");
    }
    let tight: Vec<_> = all.iter().filter(|row| row.budget != "4000").collect();
    assert!(tight.iter().all(|row| row.n_evicted > Some(0) && row.certificate == Some(true)), "{tight:?}");
    // Undefined where every token that could go is important: then a random choice is as good as the best.
    let best: Vec<f64> = tight.iter().filter(|r| r.policy == "oracle-labels").filter_map(|r| r.gain_end).collect();
    assert!(!best.is_empty() && best.iter().all(|gain| (gain - 1.0).abs() < 1e-9), "{tight:?}");
    assert!(all.iter().all(|row| row.full_correct == Some(true)), "the traces are of right answers: {all:?}");
    let curves: Vec<EvictionCurve> = rows(&place, "e", "eviction_curves.parquet");
    let scores: BTreeSet<&str> = curves.iter().map(|row| row.score.as_str()).collect();
    assert_eq!(scores, BTreeSet::from(["h2o", "labels", "random", "recency"]));
    for row in &curves {
        let other = curves.iter().find(|other| {
            (&other.trace_id, &other.score, other.percent) == (&row.trace_id, &row.score, row.percent)
                && other.kind != row.kind
        });
        let n_fed = all.iter().find(|one| one.trace_id == row.trace_id).map(|one| one.n_fed);
        assert_eq!(other.map(|other| other.n_held + row.n_held), n_fed, "each token is held by one of the two");
    }
    let report = String::from_utf8(bytes(&place.path("e").join("replay.md"))).unwrap();
    for words in ["## What predicts a free run", "No free runs", "## Keep and delete", "divergence"] {
        assert!(report.contains(words), "{words}: {report}");
    }
    assert!(epikv_schemas::Manifest::open(&place.path("e")).unwrap().verify().is_ok());
}

#[test]
fn batch_and_threads_change_no_byte_and_free_runs_are_predicted() {
    let place = labelled();
    let policies = ["--policies", "window,random,epikv,h2o", "--budgets", "prompt+50%"];
    let free = ["evict", "--model", "tiny", "--problems", "problems.jsonl", "--quiet", "--out", "a"];
    place.epikv(&[&free[..], &policies].concat()).ok();
    for (folder, batch, threads) in [("a", "1", "1"), ("b", "3", "2")] {
        replay(&place, folder, &[&policies[..], &["--batch", batch, "--threads", threads]].concat()).ok();
    }
    for file in ["eviction_replay.parquet", "eviction_curves.parquet"] {
        assert_eq!(bytes(&place.path("a").join(file)), bytes(&place.path("b").join(file)), "{file}");
    }
    for (folder, batch) in [("a", 1), ("b", 3)] {
        let manifest = epikv_schemas::Manifest::open(&place.path(folder)).unwrap();
        let of_file = |entry: &&epikv_schemas::Entry| entry.part.file == "eviction_replay.parquet";
        let entry = manifest.entries().iter().rfind(of_file).expect("listed");
        assert!(entry.info.get("batch").is_some_and(|n| *n == batch), "as many rows as were asked for: {entry:?}");
    }
    let report = |folder: &str| String::from_utf8(bytes(&place.path(folder).join("replay.md"))).unwrap();
    assert!(!report("a").contains("No free runs") && report("b").contains("No free runs"), "{}", report("a"));
    assert!(report("a").contains("label mass over steps"), "{}", report("a"));
}

#[test]
fn what_is_wrong_is_named() {
    let place = labelled();
    replay(&place, "e", &["--policies", "window", "--budgets", "8"]).refused(&["is too small", "hint: ask for"]);
    let ran = replay(&place, "f", &["--policies", "window", "--budgets", "8", "--skip-infeasible"]).ok();
    assert!(ran.stderr().contains("0/0"), "{}", ran.stderr());
    let none = ["replay", "--traces", "none.parquet", "--budgets", "prompt+8", "--out", "g"];
    place.epikv(&none).refused(&["none.parquet"]);
    let both = ["replay", "--traces", "traces.parquet", "--problems", "problems.jsonl", "--budgets", "9", "--out", "g"];
    assert_eq!(place.epikv(&both).code(), 2);
    let compared = replay(&place, "g", &["--policies", "window", "--budgets", "prompt+50%", "--baseline", "window"]);
    compared.refused(&["--baseline"]);
}

#[test]
fn long_answers_take_no_more_memory_than_the_context() {
    let place = Place::new();
    place.traces();
    let run = ["replay", "--traces", "traces.parquet", "--limit", "1", "--model", "random:0,context=300", "--quiet"];
    let large = ["--answer-tokens", "16777216", "--policies", "window", "--budgets", "16777216", "--out", "e"];
    place.epikv(&[&run[..], &large].concat()).ok();
    assert_eq!(rows::<EvictionReplay>(&place, "e", "eviction_replay.parquet").len(), 1);
}

#[test]
fn a_killed_replay_goes_on_where_it_was() {
    let place = labelled();
    let policies: &[&str] = &["--policies", "window,random,h2o,oracle-labels", "--budgets", "prompt+50%,prompt+25%"];
    let tables = |folder: &str| {
        ["eviction_replay.parquet", "eviction_curves.parquet"].map(|file| bytes(&place.path(folder).join(file)))
    };
    replay(&place, "whole", policies).ok();
    let run =
        ["replay", "--model", "tiny", "--traces", "traces.parquet", "--labels", "labels", "--quiet", "--batch", "1"];
    let mut child = place.spawn(&[&run[..], &["--threads", "1", "--out", "killed"], policies].concat());
    // A file that was being written when the run was killed has another name.
    let is_cell = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".parquet"))
    };
    let kept = || {
        std::fs::read_dir(place.path("killed/.cells"))
            .map_or(0, |all| all.filter_map(|e| is_cell(e).then_some(())).count())
    };
    while kept() < 4 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.path("killed/eviction_replay.parquet").exists(), "it was killed before it had ended");
    let ran = replay(&place, "killed", policies).ok();
    assert!(ran.stderr().contains("rows were there already"), "{}", ran.stderr());
    assert_eq!(tables("killed"), tables("whole"));
    assert_eq!(kept(), 0, "nothing is left of the unfinished run");
    // Other settings find nothing of it, and --fresh starts over.
    let ran = replay(&place, "killed", &[policies, &["--fresh", "--answer-tokens", "9"]].concat()).ok();
    assert!(!ran.stderr().contains("there already"), "{}", ran.stderr());
}
