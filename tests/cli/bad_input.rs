//! What bad input gets: `error:` with file, place, expected and got, exit code 2, and nothing half written.

use crate::support::{Place, bytes};

fn trace(place: &Place, more: &[&str]) -> crate::support::Ran {
    place.epikv(&[&["trace", "--out", "out.parquet", "--quiet"], more].concat())
}

#[test]
fn an_unknown_model() {
    let place = Place::new();
    place.problems();
    for model in ["no/such/folder", "no-such.gguf", "random:x", "meta-llama/Llama-3"] {
        let ran = trace(&place, &["--problems", "problems.jsonl", "--model", model]);
        assert_eq!(ran.code(), 2, "{model}: {}", ran.stderr());
        assert!(!place.path("out.parquet").exists());
    }
}

#[test]
fn a_broken_line_17() {
    let place = Place::new();
    let mut text: String = (1..=20).fold(String::new(), |text, i| {
        text + &format!("{{\"id\": \"p{i}\", \"problem\": \"?\", \"answer\": \"1\"}}\n")
    });
    text = text.replace("{\"id\": \"p17\", ", "{\"id\": \"p17\" ");
    place.write("problems.jsonl", text);
    trace(&place, &["--problems", "problems.jsonl"]).refused(&["problems.jsonl", "17"]);
    assert!(!place.path("out.parquet").exists());
}

#[test]
fn an_empty_problem_file_and_a_missing_one() {
    let place = Place::new();
    place.write("problems.jsonl", "");
    trace(&place, &["--problems", "problems.jsonl"]).refused(&["problems.jsonl"]);
    trace(&place, &["--problems", "nothing.jsonl"]).refused(&["nothing.jsonl"]);
}

#[test]
fn a_prompt_beyond_the_context_fails_alone() {
    let place = Place::new();
    let long = "x".repeat(600);
    place.write(
        "problems.jsonl",
        format!("{{\"id\": \"long\", \"problem\": \"{long}\", \"answer\": \"1\"}}\n{{\"id\": \"short\", \"problem\": \"?\", \"answer\": \"1\"}}\n"),
    );
    let ran = trace(&place, &["--problems", "problems.jsonl", "--model", "random:0,context=500", "--max-new", "8"]);
    assert_eq!(ran.code(), 1, "{}", ran.stderr());
    assert!(ran.stderr().contains("failed: long"), "{}", ran.stderr());
    assert!(place.path("out.parquet").exists());
}

#[test]
fn a_trace_beyond_the_context_fails_alone() {
    let place = Place::new();
    place.traces();
    let ran = place.epikv(&[
        "label",
        "--traces",
        "traces.parquet",
        "--out",
        "l",
        "--answer",
        "text",
        "--quiet",
        "--model",
        "random:0,context=40",
    ]);
    assert_eq!(ran.code(), 1, "{}", ran.stderr());
    assert!(ran.stderr().contains("the model's context is 40"), "{}", ran.stderr());
}

#[test]
fn traces_of_another_vocabulary_or_another_schema() {
    let place = Place::new();
    place.traces();
    let ran = place.epikv(&[
        "label",
        "--traces",
        "traces.parquet",
        "--out",
        "l",
        "--quiet",
        "--model",
        "random:0,vocab=300,layers=1",
        "--answer",
        "text",
    ]);
    assert!(ran.code() < 2, "a larger vocabulary fits: {}", ran.stderr());
    place
        .epikv(&["label", "--traces", "trace_timings.parquet", "--out", "m", "--quiet"])
        .refused(&["trace_timings.parquet holds another table", "expected: traces"]);
    let whole = bytes(&place.path("traces.parquet"));
    place.write("cut.parquet", &whole[..whole.len() / 2]);
    place.epikv(&["label", "--traces", "cut.parquet", "--out", "n", "--quiet"]).refused(&["cut.parquet"]);
}

#[test]
fn results_are_not_replaced_unasked() {
    let place = Place::new();
    place.traces();
    let before = bytes(&place.path("traces.parquet"));
    let again = ["trace", "--problems", "problems.jsonl", "--out", "traces.parquet", "--quiet", "--max-new", "3"];
    place.epikv(&again).refused(&["traces.parquet exists already", "hint: --fresh"]);
    assert_eq!(bytes(&place.path("traces.parquet")), before);
    place.epikv(&[&again[..], &["--fresh"]].concat()).ok();
    assert_ne!(bytes(&place.path("traces.parquet")), before);
}

#[test]
fn traces_of_another_tokenizer_are_refused() {
    let place = Place::new();
    place.traces();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/model/gguf/llama-r1-q8_0.gguf");
    place.epikv(&["label", "--traces", "traces.parquet", "--out", "l", "--quiet", "--model", model]).refused(&[
        "traces.parquet",
        "another vocabulary",
        "expected tokenizer",
        "llama-r1-q8_0.gguf",
        "hint: --model must be the one",
    ]);
}

#[test]
fn the_input_is_not_overwritten() {
    let place = Place::new();
    place.traces();
    let run = ["trace", "--problems", "traces.parquet", "--out", "traces.parquet", "--fresh", "--quiet"];
    place.epikv(&run).refused(&["another file than the input"]);
    place
        .epikv(&["trace", "--problems", "problems.jsonl", "--out", "manifest.jsonl", "--fresh"])
        .refused(&[".parquet"]);
}

#[test]
fn a_run_that_could_not_be_leaves_no_folder() {
    let place = Place::new();
    place.traces();
    for run in [
        &["trace", "--problems", "none.jsonl", "--out", "new/deep/out.parquet"][..],
        &["label", "--traces", "none.parquet", "--out", "new/deep"],
        &["correlate", "--traces", "traces.parquet", "--labels", "none", "--out", "new/deep"],
        &["evict", "--problems", "none.jsonl", "--budgets", "16", "--out", "new/deep"],
        &["evict", "--problems", "problems.jsonl", "--budgets", "3", "--out", "new/deep"],
        &["evict", "--problems", "problems.jsonl", "--budgets", "3", "--shard", "1/2", "--out", "new/deep"],
        &["evict", "--replay", "none.parquet", "--budgets", "16", "--out", "new/deep"],
        &["evict", "--replay", "traces.parquet", "--budgets", "3", "--out", "new/deep"],
    ] {
        place.epikv(&[run, &["--quiet"]].concat()).refused(&[]);
        assert!(!place.path("new").exists(), "{run:?}");
    }
    // What was there stays.
    std::fs::create_dir(place.path("mine")).unwrap();
    place.epikv(&["label", "--traces", "none.parquet", "--out", "mine/deep"]).refused(&[]);
    assert!(place.path("mine").exists() && !place.path("mine/deep").exists());
}

#[test]
fn a_demo_replaces_nothing_but_a_demo() {
    let place = Place::new();
    place.epikv(&["plan", "--out", "run"]).ok();
    let before = bytes(&place.path("run/manifest.jsonl"));
    place.epikv(&["demo", "--out", "run"]).refused(&["--out run: expected a new folder or one of a demo", "hint:"]);
    assert_eq!(bytes(&place.path("run/manifest.jsonl")), before);
    assert!(!place.path("run/problems.jsonl").exists());
    place.write("file", "mine");
    place.epikv(&["demo", "--out", "file"]).refused(&["--out file: expected a new folder"]);
    assert_eq!(bytes(&place.path("file")), b"mine");
    place.epikv(&["plan", "--out", "file"]).refused(&["file: expected a folder, got a file"]);
}

#[test]
fn an_output_folder_that_cannot_be_made() {
    let place = Place::new();
    place.problems();
    place.write("file", "");
    let ran = place.epikv(&["trace", "--problems", "problems.jsonl", "--out", "file/out.parquet", "--quiet"]);
    ran.refused(&["file: expected a folder, got a file", "hint: "]);
    place.epikv(&["plan", "--out", "file"]).refused(&["file: expected a folder, got a file", "hint: "]);
}

#[test]
fn a_folder_where_a_file_is_expected() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    // Problems may lie in a folder of parts.
    let trace = ["trace", "--problems", "folder", "--out", "out.parquet"];
    place.epikv(&trace).refused(&["folder: expected at least one part that ends in .parquet, .jsonl or .csv"]);
    let commands: [&[&str]; 3] = [
        &["label", "--traces", "folder", "--out", "l"],
        &["correlate", "--traces", "folder", "--labels", "l", "--out", "c"],
        &["grade", "--file", "folder"],
    ];
    for command in commands {
        place.epikv(command).refused(&["folder: expected a file, got a folder", "hint: "]);
    }
}

#[test]
fn problems_that_are_no_parquet() {
    let place = Place::new();
    place.write("cut.parquet", "PAR1");
    trace(&place, &["--problems", "cut.parquet"]).refused(&["cut.parquet", "hint: the file may be cut short"]);
}

#[test]
fn settings_outside_their_range() {
    let place = Place::new();
    place.traces();
    let label = ["label", "--traces", "traces.parquet", "--out", "l"];
    place.epikv(&[&label[..], &["--stride", "64"]].concat()).refused(&["--stride", "32"]);
    assert_eq!(place.epikv(&[&label[..], &["--batch", "0"]].concat()).code(), 2);
    assert_eq!(place.epikv(&[&label[..], &["--threads", "100000"]].concat()).code(), 2);
    for larger in [["--window", "18446744073709551615"], ["--max-new", "1099511627776"], ["--batch", "4097"]] {
        place.epikv(&[&label[..], &larger].concat()).refused(&[larger[0], larger[1], "from 1 to"]);
    }
    assert!(!place.path("l").exists());
    place.epikv(&[&label[..], &["--window", "16777216", "--stride", "1048576", "--max-new", "4"]].concat()).ok();
    place
        .epikv(&["problems", "tiny", "--n", "99999999999999999", "--out", "p.jsonl"])
        .refused(&["--n", "from 1 to 1000000"]);
    trace(&place, &["--problems", "problems.jsonl", "--temperature=-1"]).refused(&["--temperature"]);
}

#[test]
fn flags_that_need_another_are_refused_without_it() {
    let place = Place::new();
    place.problems();
    let evict = ["evict", "--problems", "problems.jsonl", "--budgets", "20", "--out", "e"];
    place.epikv(&[&evict[..], &["--hold", "trigger=each"]].concat()).refused(&[
        "--hold trigger=each",
        "--swap",
        "hint:",
    ]);
    place
        .epikv(&[&evict[..], &["--policies", "h2o", "--hold", "x"]].concat())
        .refused(&["--hold x", "--swap", "hint:"]);
    place.epikv(&[&evict[..], &["--layers-dataset", "x"]].concat()).refused(&["--layers-from"]);
    let label = ["label", "--model", "tiny", "--traces", "none.parquet", "--out", "l"];
    place.epikv(&[&label[..], &["--lag", "3"]].concat()).refused(&["--lag 3", "--intervention evict", "hint:"]);
    place.epikv(&[&label[..], &["--rates", "1,2"]].concat()).refused(&["--dry-run"]);
    place.epikv(&[&label[..], &["--against", "MISSING"]].concat()).refused(&["MISSING"]);
    let trace = ["trace", "--problems", "problems.jsonl", "--out", "t.parquet"];
    place.epikv(&[&trace[..], &["--think-tags", "<a>,</a>"]].concat()).refused(&["--import"]);
    assert!(!place.path("e").exists() && !place.path("l").exists() && !place.path("t.parquet").exists());
}

#[test]
fn shells_and_man_know_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = place.epikv(&["completions", shell]).ok().stdout();
        assert!(script.contains("correlate") && script.contains("budgets"), "{shell}");
    }
    place.epikv(&["man", "--out", "man"]).ok();
    for page in ["epikv.1", "epikv-trace.1", "epikv-labels-summary.1"] {
        assert!(place.path("man").join(page).exists(), "{page}");
    }
}
