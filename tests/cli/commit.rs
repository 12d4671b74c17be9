//! The files of a run appear together, whatever stops it; and two runs never write the same files.

use epikv_schemas::{Lock, Manifest};

use crate::support::{Place, bytes};

const LABEL: &[&str] = &["label", "--traces", "traces.parquet", "--answer", "text", "--max-new", "16", "--quiet"];

#[test]
fn a_second_run_into_the_same_file_is_refused_by_its_name() {
    let place = Place::new();
    place.problems();
    let trace = ["trace", "--problems", "problems.jsonl", "--max-new", "8", "--quiet", "--out"];
    let first =
        Lock::take(&place.path(".unfinished/traces.parquet.lock"), &place.path("traces.parquet")).expect("a lock");
    let refused = place.epikv(&[&trace[..], &["traces.parquet"]].concat());
    refused.refused(&["traces.parquet is being written by another run", "hint: "]);
    // Another file of the same folder is no other run's matter.
    place.epikv(&[&trace[..], &["others.parquet"]].concat()).ok();
    drop(first);
    place.epikv(&[&trace[..], &["traces.parquet"]].concat()).ok();
    assert!(!place.path(".unfinished").exists(), "nothing is left beside the results");
    Manifest::open(&place.path("")).and_then(|manifest| manifest.verify()).expect("both runs are listed");
}

/// A run that was killed after its commit record was written: the record and the staged files are there, and one file of an
/// older run.
#[test]
fn a_run_that_was_killed_while_it_moved_its_files_is_completed() {
    let place = Place::new();
    place.traces();
    place.epikv(&[LABEL, &["--out", "whole"]].concat()).ok();
    place.epikv(&[LABEL, &["--out", "killed"]].concat()).ok();
    let killed = place.path("killed");
    let entries = Manifest::open(&killed).expect("a manifest").entries().to_vec();
    let staged = killed.join(".unfinished/label_windows.parquet.d");
    std::fs::create_dir_all(&staged).expect("a folder");
    let files: Vec<_> = entries.iter().map(|entry| entry.part.file.clone()).collect();
    // The first file was moved before the kill, the others were not.
    for file in &files[1..] {
        std::fs::rename(killed.join(file), staged.join(file)).expect("a rename");
    }
    let moved: Vec<_> = entries.iter().map(|entry| &entry.part).collect();
    let record = serde_json::json!({
        "staged": ".unfinished/label_windows.parquet.d", "moved": moved, "in_place": [], "info": entries[0].info,
    });
    place.write("killed/commit.json", record.to_string());
    place.write("killed/manifest.jsonl", "");
    let correlate = ["correlate", "--traces", "traces.parquet", "--labels", "killed", "--out", "c", "--quiet"];
    place.epikv(&correlate).refused(&["was stopped while it put its files in place", "hint: run the command"]);

    let again = place.epikv(&[LABEL, &["--out", "killed"]].concat()).ok();
    assert!(again.stderr().contains("nothing to do"), "{}", again.stderr());
    for file in files.iter().filter(|file| !file.contains("timings")) {
        assert_eq!(bytes(&killed.join(file)), bytes(&place.path("whole").join(file)), "{file}");
    }
    assert_eq!(Manifest::open(&killed).expect("a manifest").entries().len(), files.len());
    assert!(!killed.join("commit.json").exists() && !killed.join(".unfinished").exists());
}

#[test]
fn a_file_that_its_manifest_does_not_know_is_refused() {
    let place = Place::new();
    place.traces();
    place.epikv(&[LABEL, &["--out", "labels"]].concat()).ok();
    let mut damaged = bytes(&place.path("labels/label_tokens.parquet"));
    damaged[100] ^= 1;
    place.write("labels/label_tokens.parquet", damaged);
    let correlate = ["correlate", "--traces", "traces.parquet", "--labels", "labels", "--out", "c", "--quiet"];
    place.epikv(&correlate).refused(&["label_tokens.parquet is not the file that its manifest records"]);
}

#[test]
fn the_same_command_again_has_nothing_to_do() {
    let place = Place::new();
    place.traces();
    let label = [LABEL, &["--out", "labels"]].concat();
    place.epikv(&label).ok();
    let again = place.epikv(&[&label[..], &["--threads", "1", "--batch", "1"]].concat()).ok();
    assert!(again.stderr().contains("nothing to do: labels"), "{}", again.stderr());
    place.epikv(&[&label[..], &["--window", "32"]].concat()).refused(&["exists already"]);
    // Another input under the same name is another run.
    place
        .epikv(&["trace", "--problems", "problems.jsonl", "--out", "traces.parquet", "--max-new", "40", "--fresh"])
        .ok();
    place.epikv(&label).refused(&["exists already"]);
}
