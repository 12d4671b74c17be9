//! What commands print and where they stop: streams that close, text that steers a terminal, inputs that are too large, and
//! commands that were done already.

use std::process::{Command, Stdio};

use epikv_schemas::{Provenance, Trace, read_table};

use crate::support::{Place, bytes, rewrite};

fn text(place: &Place, file: &str) -> String {
    String::from_utf8(bytes(&place.path(file))).unwrap()
}

#[test]
fn a_closed_stream_ends_silently_with_the_true_exit_code() {
    let place = Place::new();
    let shell = |script: &str| {
        let script = script.replace("epikv", env!("CARGO_BIN_EXE_epikv"));
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -o pipefail; {script}")]).current_dir(place.path(""));
        command.stdin(Stdio::null()).output().unwrap()
    };
    for script in ["epikv policies | head -1", "epikv schema | head -1", "epikv signals --json | head -c 10"] {
        let ran = shell(script);
        assert_eq!(ran.status.code(), Some(0), "{script}: {ran:?}");
        assert!(ran.stderr.is_empty(), "{script}: {ran:?}");
    }
    let ran = shell("epikv problems tiny --n 2 --out a.jsonl 2>/dev/full");
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(place.path("a.jsonl").exists());
    assert_eq!(shell("epikv problems tiny --n 3 --out a.jsonl 2>/dev/full").status.code(), Some(2));
    // What was asked for on stdout and could not be written is a failure.
    assert_eq!(shell("epikv policies >/dev/full").status.code(), Some(2));
    // A limit on the size of files is an error like a full disk.
    let ran = shell("ulimit -f 1; epikv problems tiny --n 200 --out b.jsonl");
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(!place.path("b.jsonl").exists());
}

#[test]
fn text_of_data_steers_no_terminal() {
    let place = Place::new();
    let name = "a\u{1b}]0;title\u{7}\u{9b}31m\u{202e}.parquet";
    let ran = place.epikv(&["label", "--traces", name, "--out", "l"]);
    let shown = ran.stderr();
    assert_eq!(ran.code(), 2);
    assert!(shown.contains("\\u001b]0;title\\u0007\\u009b31m\\u202e"), "{shown:?}");
    assert!(!shown.contains(|c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}'), "{shown:?}");
}

#[test]
fn a_problem_that_no_model_can_read_is_refused_by_its_size() {
    let place = Place::new();
    place.write("long.jsonl", format!("{{\"problem\": \"{}\"}}\n", "x".repeat(50 << 20)));
    let trace = ["trace", "--problems", "long.jsonl", "--out", "t.parquet"];
    place.epikv(&trace).refused(&["long.jsonl, line 1", "at most 1048576 bytes", "hint: "]);
}

#[test]
fn a_list_longer_than_any_trace_is_refused_before_it_is_read() {
    let place = Place::new();
    place.traces();
    let (mut traces, _) = read_table::<Trace>(&place.path("traces.parquet")).unwrap();
    traces[0].token_ids = vec![7; 100_000_000];
    rewrite(&place.path("traces.parquet"), &traces[..1], &Provenance::new());
    assert!(bytes(&place.path("traces.parquet")).len() < 1 << 20, "a small file");
    place.epikv(&["label", "--traces", "traces.parquet", "--out", "l"]).refused(&["token_ids", "8388608 values a row"]);
}

#[test]
fn the_same_finished_command_again_ends_with_nothing_to_do() {
    let place = Place::new();
    place.traces();
    place.epikv(&["label", "--traces", "traces.parquet", "--answer", "text", "--max-new", "16", "--out", "l"]).ok();
    let on_labels = ["--traces", "traces.parquet", "--labels", "l"];
    let commands = [
        vec!["problems", "tiny", "--n", "3", "--out", "p.jsonl"],
        [&["export"], &on_labels[..], &["--out", "page.html"]].concat(),
        [&["labels", "export"], &on_labels[..], &["--out", "l.jsonl"]].concat(),
    ];
    for command in commands {
        place.epikv(&command).ok();
        let again = place.epikv(&command).ok();
        assert!(again.stderr().starts_with("nothing to do: "), "{}", again.stderr());
        let out = command.last().unwrap();
        place.write(out, "mine");
        place.epikv(&command).refused(&[out, "exists already", "hint: --fresh"]);
        assert_eq!(text(&place, out), "mine");
    }
}
