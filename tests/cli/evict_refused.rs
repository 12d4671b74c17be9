//! What an eviction run refuses, and what it then leaves in its folder.

use crate::evict::{evict, runs};
use crate::support::{Place, bytes};

/// Every file of a folder with its bytes.
fn contents(place: &Place, folder: &str) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(place.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries.filter(|path| path.is_file()).map(|path| (path.clone(), bytes(&path))).collect();
    all.sort();
    all
}

#[test]
fn a_budget_that_is_too_small_is_refused_or_skipped() {
    let place = Place::new();
    place.write(
        "problems.jsonl",
        "{\"id\": \"long\", \"problem\": \"what is two and two and two?\", \"answer\": \"6\"}\n\
         {\"id\": \"short\", \"problem\": \"2+2?\", \"answer\": \"4\"}\n",
    );
    let run = ["--policies", "window,streaming-llm-absolute", "--budgets", "16"];
    let refused = evict(&place, &[&run[..], &["--out", "a"]].concat());
    refused
        .refused(&["budget 16 is too small for 1 of 2 problems under window, first long", "hint: ask for 37 tokens"]);
    assert!(!place.path("a").join("eviction_runs.parquet").exists());
    evict(&place, &[&run[..], &["--out", "b", "--skip-infeasible"]].concat()).ok();
    for row in runs(&place, "b").iter().filter(|row| row.policy != "full") {
        let infeasible = row.problem_id == "long";
        assert_eq!(row.outcome == "infeasible", infeasible, "under every policy alike: {row:?}");
        assert_eq!((row.correct.is_none(), row.n_new.is_none()), (infeasible, infeasible));
    }
    // Alone, the policy that does not protect the prompt can run.
    evict(&place, &["--policies", "streaming-llm-absolute", "--budgets", "16", "--out", "c"]).ok();
}

#[test]
fn what_is_wrong_is_named() {
    let place = Place::new();
    place.problems();
    let policies = |text: &str| evict(&place, &["--policies", text, "--budgets", "16", "--out", "e"]);
    policies("h3o").refused(&["unknown policy \"h3o\"", "streaming-llm-absolute", "hint: did you mean \"h2o\"?"]);
    policies("h2o;budget=3").refused(&["unknown part \"budget\"", "protect"]);
    policies("h2o;trigger=often").refused(&["policy part trigger", "every(N)", "\"often\""]);
    evict(&place, &["--budgets", "prompt-3", "--out", "e"]).refused(&["budget: expected a number", "\"prompt-3\""]);
    for budget in ["0", "99999999999999999999", "prompt+99999999999999999999%"] {
        let refused = evict(&place, &["--budgets", budget, "--out", "e"]);
        refused.refused(&["--budgets", "expected a number from 1 to 16777216", budget]);
    }
    evict(&place, &["--budgets", "16", "--out", "e", "--model", "random:0,layers=1"])
        .refused(&["error: policy epikv: signal epikv", "layer 0 twice"]);
    policies("epikv(99+3)").refused(&["unknown policy"]);
    policies("window;score=epikv(99+3)").refused(&["error: policy window;score=epikv(99+3): signal epikv"]);
    let none = policies("h2o;trigger=every(0)").refused(&["N up to 1048576", "hint:"]);
    assert!(!none.stderr().contains("did you mean"), "{}", none.stderr());
    assert!(!place.path("e").join("eviction_runs.parquet").exists());
    evict(&place, &["--policies", "window", "--budgets", "16", "--out", "e"]).ok();
    let again = evict(&place, &["--policies", "window", "--budgets", "16", "--out", "e"]).ok();
    assert!(again.stderr().contains("generations were there already"), "{} {}", again.stdout(), again.stderr());
    let rewound = ["--policies", "window;position=rewound", "--budgets", "16", "--out", "e", "--fresh"];
    let ran = evict(&place, &rewound).ok();
    assert!(ran.stderr().contains("positions are rewound"), "{}", ran.stderr());
}

#[test]
fn a_fresh_run_that_cannot_be_leaves_the_one_before() {
    let place = Place::new();
    place.problems();
    let run = ["--policies", "window,random", "--budgets", "20", "--out", "e", "--record-steps", "--margin", "0.4"];
    evict(&place, &run).ok();
    let before = contents(&place, "e");
    assert!(before.len() > 8, "{before:?}");
    for (wrong, said) in [
        (["--problems", "nosuch"], "nosuch"),
        (["--labels", "nosuch"], "nosuch"),
        (["--policies", "h3o"], "unknown policy"),
        (["--policies", "oracle-labels"], "expected labels"),
        (["--budgets", "3"], "too small"),
        (["--model", "random:0,layers=1"], ""),
        (["--model", "nosuch"], "nosuch"),
        (["--record-signals", "nosuch"], "--record-signals"),
        (["--baseline", "h2o"], "--baseline"),
        (["--layers-from", "nosuch"], "nosuch"),
    ] {
        let more = if wrong[1].starts_with("random:") { &["--policies", "epikv"][..] } else { &[] };
        evict(&place, &[&run[..], &["--fresh"], &wrong, more].concat()).refused(&[said]);
        assert!(contents(&place, "e") == before, "{wrong:?}");
        assert!(epikv_schemas::Manifest::open(&place.path("e")).unwrap().verify().is_ok());
    }
    // One that can be replaces all of it, the declaration too.
    evict(&place, &["--policies", "window", "--budgets", "20", "--out", "e", "--fresh"]).ok();
    let names: Vec<String> = contents(&place, "e")
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|name| name.starts_with("eviction_steps") || name == "declared.json"), "{names:?}");
    assert_eq!(runs(&place, "e").len(), 4);
}

#[test]
fn what_is_compared_with_has_to_run() {
    let place = Place::new();
    place.problems();
    let run = ["--policies", "window", "--budgets", "20", "--out", "e"];
    let with = |more: &[&str]| evict(&place, &[&run[..], more].concat());
    with(&["--baseline", "h2o"]).refused(&["--baseline: expected", "full, window, got h2o", "hint: --policies"]);
    with(&["--primary", "h2o:full"]).refused(&["--primary: expected", "got h2o"]);
    with(&["--primary", "window:h2o"]).refused(&["--primary: expected", "got h2o"]);
    assert!(!place.path("e").exists());
    with(&["--baseline", "window", "--primary", "window:full"]).ok();
    // What the folder has already can be compared with.
    let more = ["--policies", "h2o", "--budgets", "20", "--out", "e", "--baseline", "window"];
    let ran = evict(&place, &more).ok();
    assert!(ran.stderr().lines().any(|line| line.contains("| h2o ") && line.contains("| window ")), "{}", ran.stderr());
}

#[test]
fn large_numbers_take_no_more_memory_than_the_context() {
    let place = Place::new();
    place.problems();
    let run = ["--model", "random:0,context=120", "--policies", "window,streaming-llm,snapkv", "--out", "e"];
    let large = ["--budgets", "16777216", "--max-new", "16777216"];
    evict(&place, &[&run[..], &large].concat()).ok();
    assert!(runs(&place, "e").iter().all(|row| row.n_new > Some(0) && row.n_prompt + row.n_new.unwrap_or(0) <= 121));
    let last_seed = ["--policies", "random;seed=4294967295", "--eviction-seeds", "2", "--budgets", "20", "--out", "f"];
    evict(&place, &last_seed).ok();
}
