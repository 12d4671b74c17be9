//! Problems under policies and budgets, through the binary.

use std::collections::BTreeSet;

use epikv_schemas::{EvictionRun, EvictionTiming, read_table};
use serde_json::Value;

use crate::support::{Place, Ran, bytes};

/// Prompts of four tokens and texts of sixty.
const SHORT: &[&str] =
    &["evict", "--problems", "problems.jsonl", "--prompt-style", "plain", "--max-new", "60", "--quiet"];

fn evict(place: &Place, more: &[&str]) -> Ran {
    place.epikv(&[SHORT, more].concat())
}

fn runs(place: &Place, folder: &str) -> Vec<EvictionRun> {
    read_table::<EvictionRun>(&place.path(folder).join("eviction_runs.parquet")).unwrap().0
}

#[test]
fn all_policies_at_two_budgets() {
    let place = Place::new();
    place.problems();
    let ran = evict(&place, &["--policies", "all", "--budgets", "16,prompt+50%", "--out", "e", "--json"]).ok();
    let rows = runs(&place, "e");
    assert_eq!(rows.len(), 2 * (1 + 7 * 2), "no labels, so no oracle");
    let (timings, _) = read_table::<EvictionTiming>(&place.path("e").join("eviction_timings.parquet")).unwrap();
    assert_eq!(timings.len(), rows.len());
    for row in &rows {
        assert_eq!(row.certificate, Some(true), "{row:?}");
        assert_eq!(row.budget.is_none(), row.policy == "full");
        assert_eq!(row.needs_attention, row.policy == "h2o");
        if row.budget.as_deref() == Some("16") {
            assert_eq!((row.budget_tokens, row.held_peak), (Some(16), Some(17)));
            assert_eq!(row.n_evicted, row.n_new.map(|n| row.n_prompt + n - 1 - 16));
        }
    }
    let share = rows.iter().find(|row| row.budget.as_deref() == Some("prompt+50%")).unwrap();
    let full = rows.iter().find(|row| row.policy == "full" && row.problem_id == share.problem_id).unwrap();
    assert_eq!(share.budget_tokens, full.n_new.map(|n| full.n_prompt + (n + 1) / 2));
    let json: Value = serde_json::from_str(&ran.stdout()).unwrap();
    let groups = json["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 15);
    assert!(groups.iter().skip(1).all(|group| group["n_evictions"].as_i64() > Some(0)), "{groups:?}");
    for words in ["streaming-llm-absolute", "sinks(4)+recency", "not distinguishable at n=2", "epikv reads the layers"]
    {
        assert!(ran.stderr().contains(words), "{words}: {}", ran.stderr());
    }
    let report = String::from_utf8(bytes(&place.path("e").join("report.md"))).unwrap();
    assert!(report.contains("| random:0") && report.contains("## Against no eviction"), "{report}");
    let manifest = epikv_schemas::Manifest::open(&place.path("e")).unwrap();
    assert!(manifest.verify().is_ok());
}

#[test]
fn batch_and_threads_change_no_byte() {
    let place = Place::new();
    place.problems();
    let mut files = Vec::new();
    for (batch, threads) in [("1", "1"), ("2", "2"), ("8", "1")] {
        let folder = format!("e{batch}");
        let run = ["--policies", "random,h2o,epikv", "--budgets", "20", "--out", &folder, "--seed", "3"];
        let sampled = ["--temperature", "0.8", "--top-p", "0.9", "--batch", batch, "--threads", threads];
        evict(&place, &[&run[..], &sampled].concat()).ok();
        files.push(bytes(&place.path(&folder).join("eviction_runs.parquet")));
    }
    assert!(files.windows(2).all(|w| w[0] == w[1]), "runs differ");
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
fn labels_are_replayed_where_they_are_given() {
    let place = Place::new();
    place.problems();
    place
        .epikv(&["trace", "--problems", "problems.jsonl", "--out", "traces.parquet", "--max-new", "96", "--quiet"])
        .ok();
    let label =
        ["label", "--traces", "traces.parquet", "--out", "labels", "--answer", "text", "--max-new", "24", "--quiet"];
    place.epikv(&label).ok();
    let run = ["evict", "--problems", "problems.jsonl", "--max-new", "96", "--quiet", "--budgets", "prompt+70"];
    let with = ["--policies", "oracle-labels,window", "--labels", "labels"];
    place.epikv(&[&run[..], &with, &["--out", "e"]].concat()).ok();
    let rows = runs(&place, "e");
    assert!(rows.iter().any(|row| row.policy == "oracle-labels" && row.n_evictions > Some(0)), "{rows:?}");
    let without = ["--policies", "oracle-labels", "--out", "f"];
    place.epikv(&[&run[..], &without].concat()).refused(&["expected labels", "hint: --labels"]);
    let plain = ["--policies", "oracle-labels", "--labels", "labels", "--out", "g", "--prompt-style", "plain"];
    place.epikv(&[&run[..], &plain].concat()).refused(&["labels of a", "expected token", "hint: labels belong"]);
    place.write("more.jsonl", "{\"id\": \"c\", \"problem\": \"1+1?\", \"answer\": \"2\"}\n{\"id\": \"a\", \"problem\": \"2+2?\", \"answer\": \"4\"}\n");
    let more = ["--problems", "more.jsonl", "--policies", "oracle-labels", "--labels", "labels", "--out", "h"];
    let ran = place.epikv(&[&run[..], &more].concat());
    assert_eq!(ran.code(), 1, "{}", ran.stderr());
    assert!(ran.stderr().contains("c: oracle-labels has no labels of it"), "{}", ran.stderr());
}

#[test]
fn a_problem_beyond_the_context_fails_alone() {
    let place = Place::new();
    let long = "x".repeat(600);
    place.write(
        "problems.jsonl",
        format!("{{\"id\": \"long\", \"problem\": \"{long}\"}}\n{{\"id\": \"short\", \"problem\": \"?\", \"answer\": \"1\"}}\n"),
    );
    let run = ["--model", "random:0,context=500", "--policies", "window", "--budgets", "16,prompt+50%", "--out", "e"];
    let ran = evict(&place, &run);
    assert_eq!(ran.code(), 1, "{}", ran.stderr());
    assert!(ran.stderr().contains("failed: long"), "{}", ran.stderr());
    let outcomes: BTreeSet<String> =
        runs(&place, "e").into_iter().filter(|row| row.problem_id == "long").map(|row| row.outcome).collect();
    assert_eq!(outcomes, BTreeSet::from(["error".to_owned()]));
}

#[test]
fn what_is_wrong_is_named() {
    let place = Place::new();
    place.problems();
    let policies = |text: &str| evict(&place, &["--policies", text, "--budgets", "16", "--out", "e"]);
    policies("h3o").refused(&["unknown policy \"h3o\"", "streaming-llm-absolute", "hint: `epikv policies`"]);
    policies("h2o;budget=3").refused(&["unknown part \"budget\"", "protect"]);
    policies("h2o;trigger=often").refused(&["policy part trigger", "every(N)", "\"often\""]);
    evict(&place, &["--budgets", "prompt-3", "--out", "e"]).refused(&["budget: expected a number", "\"prompt-3\""]);
    evict(&place, &["--budgets", "16", "--out", "e", "--model", "random:0,layers=1"]).refused(&["layer 0 twice"]);
    assert!(!place.path("e").join("eviction_runs.parquet").exists());
    evict(&place, &["--policies", "window", "--budgets", "16", "--out", "e"]).ok();
    evict(&place, &["--policies", "window", "--budgets", "16", "--out", "e"]).refused(&["exists already", "--fresh"]);
    let rewound = ["--policies", "window;position=rewound", "--budgets", "16", "--out", "e", "--fresh"];
    let ran = evict(&place, &rewound).ok();
    assert!(ran.stderr().contains("positions are rewound"), "{}", ran.stderr());
}

#[test]
fn the_registry_is_listed() {
    let place = Place::new();
    let text = place.epikv(&["policies"]).ok().stdout();
    let json: Value = serde_json::from_str(&place.epikv(&["policies", "--json"]).ok().stdout()).unwrap();
    for row in json["policies"].as_array().unwrap() {
        assert!(text.contains(row["name"].as_str().unwrap()) && text.contains(row["composition"].as_str().unwrap()));
    }
    assert!(text.contains("every(N)"), "{text}");
}
