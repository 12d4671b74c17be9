//! Problems under policies and budgets, through the binary.

use std::collections::BTreeSet;

use epikv_schemas::{EvictionRun, EvictionStep, EvictionTiming, read_table};
use serde_json::Value;

use crate::support::{Place, Ran, bytes};

/// Prompts of four tokens and texts of sixty.
const SHORT: &[&str] =
    &["evict", "--problems", "problems.jsonl", "--prompt-style", "plain", "--max-new", "60", "--quiet"];

pub(crate) fn evict(place: &Place, more: &[&str]) -> Ran {
    place.epikv(&[SHORT, more].concat())
}

pub(crate) fn runs(place: &Place, folder: &str) -> Vec<EvictionRun> {
    read_table::<EvictionRun>(&place.path(folder).join("eviction_runs.parquet")).unwrap().0
}

#[test]
fn all_policies_at_two_budgets() {
    let place = Place::new();
    place.problems();
    let ran = evict(&place, &["--policies", "all", "--budgets", "16,prompt+50%", "--out", "e", "--json"]).ok();
    let rows = runs(&place, "e");
    assert_eq!(rows.len(), 2 * (2 + 21 * 2), "no labels, so no oracle");
    let (timings, _) = read_table::<EvictionTiming>(&place.path("e").join("eviction_timings.parquet")).unwrap();
    assert_eq!(timings.len(), rows.len());
    let looks = |timing: &EvictionTiming| matches!(timing.policy.as_str(), "h2o" | "h2o-global" | "tova" | "raas");
    assert!(timings.iter().all(|timing| timing.kernel.starts_with("explicit ") == looks(timing)));
    for row in &rows {
        assert_eq!(row.certificate, Some(true), "{row:?}");
        assert_eq!(row.budget.is_none(), row.policy.starts_with("full"));
        assert_eq!(row.needs_attention, matches!(row.policy.as_str(), "h2o" | "h2o-global" | "tova" | "raas"));
        let waits = row.composition.contains("buffer") || row.composition.contains("prefill");
        if row.budget.as_deref() == Some("16") && !waits {
            assert_eq!((row.budget_tokens, row.held_peak), (Some(16), Some(17)));
            assert_eq!(row.n_evicted, row.n_new.map(|n| row.n_prompt + n - 1 - 16));
        }
    }
    let share = rows.iter().find(|row| row.budget.as_deref() == Some("prompt+50%")).unwrap();
    let full = rows.iter().find(|row| row.policy == "full" && row.problem_id == share.problem_id).unwrap();
    assert_eq!(share.budget_tokens, full.n_new.map(|n| full.n_prompt + (n + 1) / 2));
    let json: Value = serde_json::from_str(&ran.stdout()).unwrap();
    let groups = json["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 44);
    let each = |group: &&Value| group["composition"].as_str().is_some_and(|parts| parts.contains("trigger=each"));
    assert!(groups.iter().filter(each).all(|group| group["n_evictions"].as_i64() > Some(0)));
    assert_eq!(groups.iter().filter(each).count(), 2 * 14);
    for words in ["streaming-llm-absolute", "sinks(4)+recency", "not distinguishable at n=2", "epikv reads the layers"]
    {
        assert!(ran.stderr().contains(words), "{words}: {}", ran.stderr());
    }
    let report = String::from_utf8(bytes(&place.path("e").join("report_details.md"))).unwrap();
    assert!(report.contains("| random:0") && report.contains("## Comparisons"), "{report}");
    let short = String::from_utf8(bytes(&place.path("e").join("report.md"))).unwrap();
    assert!(short.contains("**In short**") && short.contains("Evicted nothing: "), "{short}");
    assert!(short.lines().count() <= 150, "{} lines", short.lines().count());
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
    place.epikv(&[&run[..], &plain].concat()).refused(&[
        "labels of a",
        "expected token",
        "hint: use the model and prompt flags",
    ]);
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
fn the_registry_is_listed() {
    let place = Place::new();
    let text = place.epikv(&["policies"]).ok().stdout();
    let json: Value = serde_json::from_str(&place.epikv(&["policies", "--json"]).ok().stdout()).unwrap();
    for row in json["policies"].as_array().unwrap() {
        assert!(text.contains(row["name"].as_str().unwrap()) && text.contains(row["composition"].as_str().unwrap()));
    }
    assert!(text.contains("every(N)"), "{text}");
}

/// Two samples of two problems under two policies at two budgets.
const GRID: &[&str] = &["--budgets", "20,24", "--samples", "2", "--temperature", "0.8", "--seed", "3"];

fn grid(place: &Place, folder: &str, more: &[&str]) -> Ran {
    evict(place, &[GRID, &["--out", folder], more].concat())
}

#[test]
fn order_shards_and_additions_change_no_byte() {
    let place = Place::new();
    place.problems();
    let all: &[&str] = &["--policies", "random,h2o"];
    grid(&place, "whole", all).ok();
    let want = bytes(&place.path("whole").join("eviction_runs.parquet"));
    let rows = runs(&place, "whole");
    assert_eq!(rows.len(), 2 * 2 * (1 + 2 * 2));
    let texts: BTreeSet<_> = rows.iter().filter(|r| r.policy == "full").map(|r| r.token_ids.clone()).collect();
    assert_eq!(texts.len(), 4, "every sample has random numbers of its own");

    for shard in ["2/2", "1/2"] {
        grid(&place, "shards", &[all, &["--shard", shard, "--batch", "1"]].concat()).ok();
        assert!(!place.path("shards").join("eviction_runs.parquet").exists());
    }
    let ran = grid(&place, "shards", &["--policies", "h2o,full,random"]).ok();
    assert!(ran.stderr().contains("20 generations were there already"), "{}", ran.stderr());
    assert_eq!(bytes(&place.path("shards").join("eviction_runs.parquet")), want);

    grid(&place, "grown", &["--policies", "random", "--budgets", "24", "--samples", "1"]).ok();
    grid(&place, "grown", all).ok();
    assert_eq!(bytes(&place.path("grown").join("eviction_runs.parquet")), want);
    assert!(epikv_schemas::Manifest::open(&place.path("grown")).unwrap().verify().is_ok());

    let conflict = grid(&place, "whole", &[all, &["--seed", "4"]].concat());
    conflict.refused(&["a under full, sample 0, was made with another", "hint: --fresh starts over"]);
    grid(&place, "whole", &[all, &["--seed", "4", "--fresh"]].concat()).ok();
    assert_ne!(bytes(&place.path("whole").join("eviction_runs.parquet")), want);
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let place = Place::new();
    place.problems();
    let all: &[&str] = &["--policies", "random,h2o,epikv", "--threads", "1", "--batch", "1"];
    grid(&place, "whole", all).ok();
    let mut child = place.start(&[SHORT, GRID, &["--out", "killed"], all].concat());
    let kept = || std::fs::read_dir(place.path("killed/.cells")).map_or(0, Iterator::count);
    while kept() < 4 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = grid(&place, "killed", all).ok();
    assert!(ran.stderr().contains("generations were there already"), "{}", ran.stderr());
    let table = |folder: &str| bytes(&place.path(folder).join("eviction_runs.parquet"));
    assert_eq!(table("killed"), table("whole"));
    let (timings, _) = read_table::<EvictionTiming>(&place.path("killed").join("eviction_timings.parquet")).unwrap();
    assert_eq!(timings.len(), runs(&place, "killed").len());
}

#[test]
fn every_eviction_can_be_recorded() {
    let place = Place::new();
    place.problems();
    let run = ["--policies", "h2o,epikv", "--budgets", "20", "--out", "e", "--record-steps"];
    evict(&place, &run).ok();
    let mut steps: Vec<EvictionStep> = Vec::new();
    for entry in std::fs::read_dir(place.path("e")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("eviction_steps-") {
            steps.extend(read_table::<EvictionStep>(&path).unwrap().0);
        }
    }
    for row in runs(&place, "e").iter().filter(|row| row.policy != "full") {
        let own: Vec<_> = steps.iter().filter(|s| s.policy == row.policy && s.problem_id == row.problem_id).collect();
        let sets: BTreeSet<_> = own.iter().map(|step| (step.layer, step.head)).collect();
        assert_eq!(own.len() as i32, row.n_evicted.unwrap() * sets.len() as i32);
        assert_eq!(row.policy == "epikv", sets.len() == 1, "{sets:?}");
        for step in own {
            assert!(step.pos >= row.n_prompt && step.pos <= row.n_prompt + step.step - 5, "protected: {step:?}");
            match step.reason.as_str() {
                "lowest_score" => assert!(step.kept_score.is_none_or(|kept| step.score.unwrap() < kept), "{step:?}"),
                "tie" => assert_eq!(step.score, step.kept_score),
                _ => assert_eq!(step.score, None),
            }
        }
    }
    // What was recorded need not be done again.
    let ran = evict(&place, &run).ok();
    assert!(ran.stderr().contains("6 generations were there already"), "{}", ran.stderr());
    assert!(epikv_schemas::Manifest::open(&place.path("e")).unwrap().verify().is_ok());
}

#[test]
fn a_swap_changes_the_score_alone() {
    let place = Place::new();
    place.problems();
    let run = ["--swap", "score=epikv,h2o,random,recency,kv-key", "--hold", "protect=prompt+recency;trigger=buffer(4)"];
    evict(
        &place,
        &[&run[..], &["--budgets", "20", "--out", "e", "--primary", "window;score=epikv;trigger=buffer(4):full"]]
            .concat(),
    )
    .ok();
    let rows = runs(&place, "e");
    let held: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.policy != "full")
        .map(|row| row.composition.split_once(';').unwrap().1.to_owned())
        .collect();
    assert_eq!(held.len(), 1, "{held:?}");
    let scores: BTreeSet<&str> = rows.iter().map(|row| row.composition.split(';').next().unwrap()).collect();
    assert_eq!(scores.len(), 5, "{scores:?}");
    let report = String::from_utf8(bytes(&place.path("e").join("report_details.md"))).unwrap();
    let table = report.split("## Only the score differs").nth(1).expect("a section").split("\n## ").next().unwrap();
    assert!(table.contains("held: `protect=prompt+recency;select=top-k;trigger=buffer(4);scope=global"), "{table}");
    for score in ["| epikv ", "| h2o ", "| random ", "| recency ", "| kv-key "] {
        assert!(table.contains(score), "{score}: {table}");
    }
    assert!(
        report.contains("| random;trigger=buffer(4) "),
        "rows of the table of policies where there is one: {report}"
    );
}

#[test]
fn what_is_declared_late_does_not_count() {
    let place = Place::new();
    place.problems();
    let run = ["--policies", "window,random", "--budgets", "20", "--out", "e"];
    let first = ["--margin", "0.4", "--primary", "window:random"];
    evict(&place, &[&run[..], &first].concat()).ok();
    let report = || String::from_utf8(bytes(&place.path("e").join("report_details.md"))).unwrap();
    assert!(report().contains("equivalent means within 40 points"), "{}", report());
    assert!(report().contains("| primary "), "{}", report());
    // Declared once, it stays declared; anything else comes too late.
    evict(&place, &run).ok();
    assert!(report().contains("equivalent means within 40 points") && report().contains("| primary "), "{}", report());
    let late = evict(&place, &[&run[..], &["--primary", "random:full"]].concat()).ok();
    assert!(late.stderr().contains("warning: random:full was declared after"), "{}", late.stderr());
    let other = evict(&place, &[&run[..], &["--margin", "0.5"]].concat());
    other.refused(&["--margin 0.5: expected a margin that was declared before", "declared: 0.4"]);
    evict(&place, &[&run[..], &["--margin", "0.5", "--fresh"]].concat()).ok();
    assert_eq!(evict(&place, &["--margin", "1.5", "--budgets", "20", "--out", "f"]).code(), 2);
}

#[test]
fn draws_are_repeated_and_the_matched_size_is_that_of_the_budget() {
    let place = Place::new();
    place.problems();
    let run = ["--policies", "random,window;trigger=buffer(5)", "--budgets", "24", "--eviction-seeds", "5"];
    evict(&place, &[&run[..], &["--out", "e", "--match", "peak"]].concat()).ok();
    let all = runs(&place, "e");
    let seeds: BTreeSet<&str> = all.iter().map(|r| r.policy.as_str()).filter(|p| p.starts_with("random")).collect();
    assert_eq!(seeds.len(), 5, "{seeds:?}");
    let drawn: BTreeSet<_> =
        all.iter().filter(|r| r.problem_id == "a" && r.policy.starts_with("random")).map(|r| &r.token_ids).collect();
    assert!(drawn.len() > 1, "other draws, other texts");
    for row in all.iter().filter(|row| row.policy != "full") {
        assert_eq!(row.held_max, Some(24), "{row:?}");
        let after = if row.policy.starts_with("window") { 20 } else { 24 };
        assert_eq!(row.budget_tokens, Some(after), "{row:?}");
    }
    let report = String::from_utf8(bytes(&place.path("e").join("report_details.md"))).unwrap();
    assert!(report.contains("## Draws") && report.contains("the peak size"), "{report}");
    let small = ["--policies", "window;trigger=buffer(40)", "--budgets", "24", "--match", "peak", "--out", "f"];
    evict(&place, &small).refused(&["trigger buffer(40)", "hint: --match steady"]);
}

#[test]
fn signals_are_recorded_under_eviction() {
    let place = Place::new();
    place.problems();
    let run = ["--policies", "window", "--budgets", "20,2000", "--record-signals", "hs_l2,epikv", "--out", "e"];
    evict(&place, &run).ok();
    let mut rows: Vec<epikv_schemas::EvictionSignal> = Vec::new();
    for entry in std::fs::read_dir(place.path("e")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("eviction_signals-") {
            rows.extend(read_table::<epikv_schemas::EvictionSignal>(&path).unwrap().0);
        }
    }
    for run in runs(&place, "e") {
        let own: Vec<_> = rows
            .iter()
            .filter(|r| (&r.policy, &r.budget, &r.problem_id) == (&run.policy, &run.budget, &run.problem_id))
            .collect();
        // Every generated token but the last is fed; `hs_l2` has four layers, `epikv` has none.
        assert_eq!(own.len() as i32, 5 * (run.n_new.unwrap() - 1), "{run:?}");
        for row in own {
            let same = run.first_difference.is_none_or(|differs| row.pos < run.n_prompt + differs);
            assert_eq!(row.full_value.is_some(), same && row.value.is_some() && run.budget.is_some(), "{row:?}");
            if run.budget.as_deref() == Some("2000") {
                assert_eq!(row.value, row.full_value, "nothing was evicted");
            }
        }
    }
    let report = String::from_utf8(bytes(&place.path("e").join("report_details.md"))).unwrap();
    assert!(report.contains("## Drift") && report.contains("| hs_l2 "), "{report}");
    assert!(epikv_schemas::Manifest::open(&place.path("e")).unwrap().verify().is_ok());
    let ran = evict(&place, &run).ok();
    assert!(ran.stderr().contains("6 generations were there already"), "{}", ran.stderr());
    evict(&place, &["--budgets", "20", "--out", "f", "--record-signals", "hs_l3"])
        .refused(&["error: --record-signals hs_l3: unknown signal \"hs_l3\"", "hint: `epikv signals`"]);
}

#[test]
fn the_table_says_what_was_generated_and_how_long_it_took() {
    let place = Place::new();
    place.problems();
    let ran = evict(&place, &["--policies", "window", "--budgets", "20", "--out", "e"]).ok();
    let report = String::from_utf8(bytes(&place.path("e").join("report_details.md"))).unwrap();
    for text in [ran.stderr(), report] {
        let row = |start: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"));
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let (heads, cells) = (row("| policy"), row("| window"));
        let cell = |head: &str| cells[heads.iter().position(|cell| cell == head).expect(head)].parse::<f64>();
        let new: Vec<f64> =
            runs(&place, "e").iter().filter(|r| r.policy == "window").map(|r| f64::from(r.n_new.unwrap())).collect();
        assert!((cell("tokens").unwrap() - new.iter().sum::<f64>() / new.len() as f64).abs() < 0.06, "{text}");
        assert!(cell("s").unwrap() >= 0.0, "{text}");
    }
}
