//! A run that is killed at any moment goes on where it was, and ends with the files of a run that was not.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Place, bytes};

const DATA: &[&str] = &["label_windows.parquet", "label_tokens.parquet", "label_traces.parquet"];
const LABEL: &[&str] = &[
    "label",
    "--model",
    "tiny",
    "--traces",
    "traces.parquet",
    "--answer",
    "text",
    "--max-new",
    "32",
    "--batch",
    "2",
    "--quiet",
];

/// Two short traces of the embedded model.
fn place() -> Place {
    let place = Place::new();
    place.problems();
    place
        .epikv(&[
            "trace",
            "--model",
            "tiny",
            "--problems",
            "problems.jsonl",
            "--out",
            "traces.parquet",
            "--max-new",
            "250",
            "--quiet",
        ])
        .ok();
    place
}

fn data(place: &Place, folder: &str) -> Vec<Vec<u8>> {
    DATA.iter().map(|file| bytes(&place.path(folder).join(file))).collect()
}

#[test]
fn a_labelling_that_was_killed_twenty_times_gives_the_same_bytes() {
    let place = place();
    place.epikv(&[LABEL, &["--out", "whole"]].concat()).ok();
    let mut n_killed = 0;
    // Moments spread over the run, by a fixed rule.
    for moment in 0..20_u64 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_epikv"));
        command.args(LABEL).args(["--out", "killed"]).current_dir(place.path("")).stderr(Stdio::null());
        let mut run = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(10 + moment * 37 % 200));
        let ended = run.try_wait().unwrap().is_some();
        run.kill().ok();
        run.wait().unwrap();
        if ended {
            break;
        }
        n_killed += 1;
        assert!(DATA.iter().all(|file| !place.path("killed").join(file).exists()), "nothing half written");
    }
    assert!(n_killed > 0, "no run was killed before its end");
    if !place.path("killed").join(DATA[0]).exists() {
        place.epikv(&[LABEL, &["--out", "killed"]].concat()).ok();
    }
    assert_eq!(data(&place, "whole"), data(&place, "killed"));
    assert!(!place.path("killed").join("label_journal.jsonl").exists(), "a journal ends with its run");
}

#[test]
fn a_damaged_journal_costs_what_it_lost_and_another_runs_journal_counts_for_nothing() {
    let place = place();
    place.epikv(&[LABEL, &["--out", "whole"]].concat()).ok();
    std::fs::create_dir(place.path("labels")).unwrap();
    let journal = place.path("labels").join("label_journal.jsonl");
    for damage in ["", "{\"version\":1}\n{\"context\":\"x\"}\n", "not json\n", "\u{0}\u{0}"] {
        std::fs::write(&journal, damage).unwrap();
        place.epikv(&[LABEL, &["--out", "labels"]].concat()).ok();
        assert_eq!(data(&place, "whole"), data(&place, "labels"), "{damage:?}");
        std::fs::remove_dir_all(place.path("labels")).unwrap();
        std::fs::create_dir(place.path("labels")).unwrap();
    }
}

#[test]
fn traces_that_were_killed_ten_times_have_the_same_bytes() {
    let place = Place::new();
    place.epikv(&["problems", "tiny", "--n", "4", "--seed", "5", "--out", "problems.jsonl"]).ok();
    let run = |out: &'static str| {
        [
            "trace",
            "--model",
            "tiny",
            "--problems",
            "problems.jsonl",
            "--max-new",
            "480",
            "--batch",
            "1",
            "--quiet",
            "--out",
            out,
        ]
    };
    place.epikv(&run("whole/traces.parquet")).ok();
    let journal = place.path("killed").join("traces_journal.jsonl");
    let file = place.path("killed").join("traces.parquet");
    let mut n_lines = 0;
    for moment in 0..10_u64 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_epikv"));
        command.args(run("killed/traces.parquet")).current_dir(place.path("")).stderr(Stdio::null());
        let mut killed = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(60 + moment * 37 % 200));
        let ended = killed.try_wait().unwrap().is_some();
        killed.kill().ok();
        killed.wait().unwrap();
        if ended {
            break;
        }
        assert!(!file.exists(), "nothing half written");
        let now = std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
        assert!(now >= n_lines, "what was kept stays: {now} lines after {n_lines}");
        n_lines = now;
    }
    // A line in the middle is damaged: only its generation is made again.
    if let Ok(mut kept) = std::fs::read(&journal) {
        let middle = kept.len() / 2;
        kept[middle] ^= 1;
        std::fs::write(&journal, kept).unwrap();
    }
    if !file.exists() {
        place.epikv(&run("killed/traces.parquet")).ok();
    }
    assert_eq!(bytes(&place.path("whole").join("traces.parquet")), bytes(&file));
    assert!(!journal.exists(), "a journal ends with its run");
}

#[test]
fn arms_that_were_killed_go_on_with_the_next() {
    let place = place();
    let arms = [LABEL, &["--arms", "eos,token:7"], &["--out", "arms"]].concat();
    place.epikv(&arms).ok();
    let whole = data(&place, "arms/token-7");
    // As after a kill in the second arm: the first is finished, the second is not there.
    std::fs::remove_dir_all(place.path("arms/token-7")).unwrap();
    place.epikv(&arms).ok();
    assert_eq!(whole, data(&place, "arms/token-7"));
}
