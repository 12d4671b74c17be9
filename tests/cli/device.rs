//! `--device` and `--dtype`: what a build has, what it refuses, and what the files say of it.

use epikv_schemas::{EvictionRun, EvictionTiming, LabelWindow, Manifest, Trace, read_table};

use crate::support::Place;

const TRACE: &[&str] =
    &["trace", "--problems", "problems.jsonl", "--out", "traces.parquet", "--max-new", "24", "--quiet"];

#[test]
fn every_command_that_opens_a_model_refuses_unknown_devices_and_numbers_by_name() {
    let place = Place::new();
    place.problems();
    let evict = ["evict", "--problems", "problems.jsonl", "--out", "out", "--policies", "full", "--budgets", "8"];
    let plan = ["plan", "--model", "random:0", "--measure", "8", "--value-bytes", "2"];
    for command in [TRACE, &evict, &plan, &["doctor"], &["demo"]] {
        let with = |more: &[&str]| place.epikv(&[command, more].concat());
        with(&["--device", "metal"]).refused(&["--device", "unknown device \"metal\"", "cpu or cuda:N"]);
        with(&["--dtype", "bf16"]).refused(&["--dtype: expected f32 on the device cpu, got bf16", "hint:"]);
        with(&["--dtype", "f64"]).refused(&["--dtype", "f64", "bf16"]);
        if cfg!(not(feature = "cuda")) {
            with(&["--device", "cuda:1"]).refused(&["--device cuda:1", "hint:", "--features cuda"]);
        }
    }
    place.epikv(&[TRACE, &["--device", "tensor", "--weights", "q8_0"]].concat()).refused(&[
        "--weights",
        "tensor",
        "q8_0",
    ]);
    assert!(!place.path("traces.parquet").exists() && !place.path("out").exists() && !place.path("demo").exists());
}

#[test]
fn another_device_makes_the_same_traces_and_says_so() {
    let place = Place::new();
    place.problems();
    let made = |device: &str, out: &str| {
        let words = ["trace", "--problems", "problems.jsonl", "--out", out, "--max-new", "24", "--quiet"];
        place.epikv(&[&words[..], &["--model", "tiny", "--device", device]].concat()).ok();
        let (rows, provenance) = read_table::<Trace>(&place.path(out)).unwrap();
        let tokens: Vec<_> = rows.into_iter().map(|row| (row.trace_id, row.token_ids)).collect();
        (tokens, provenance.get("model").unwrap().clone())
    };
    let ((plain, by_kernels), (same, by_tensors)) =
        (made("cpu", "a/traces.parquet"), made("tensor", "b/traces.parquet"));
    assert_eq!(plain, same);
    assert_eq!((&by_kernels["device"], &by_tensors["device"]), (&"cpu".into(), &"tensor".into()));
    assert_eq!((&by_kernels["dtype"], &by_tensors["dtype"]), (&"f32".into(), &"f32".into()));
    let bytes = |folder: &str| -> u64 {
        let manifest = Manifest::open(&place.path(folder)).unwrap();
        manifest.entries().iter().find_map(|entry| entry.info.get("bytes_to_host")?.as_u64()).unwrap()
    };
    assert!(bytes("a") == 0 && bytes("b") > 0);
}

#[test]
fn labels_signals_and_evictions_are_the_same_on_another_device() {
    let place = Place::new();
    place.epikv(&["problems", "tiny", "--n", "2", "--level", "short", "--out", "problems.jsonl"]).ok();
    let made = |device: &str| {
        let run =
            |words: &[&str]| place.epikv(&[words, &["--model", "tiny", "--device", device, "--quiet"]].concat()).ok();
        let traces = format!("{device}/traces.parquet");
        run(&["trace", "--problems", "problems.jsonl", "--out", &traces, "--max-new", "150"]);
        run(&["label", "--traces", &traces, "--out", device, "--max-new", "32"]);
        let recorded = ["--kernel", "explicit", "--signals", "hs_l2,surprisal,h2o_attn", "--surrogates", "19"];
        let found = ["correlate", "--traces", &traces, "--labels", device, "--out", device];
        run(&[&found[..], &recorded].concat());
        let policies = "full,h2o,key-diff;scope=per-layer";
        let decoded = ["evict", "--problems", "problems.jsonl", "--policies", policies, "--budgets", "prompt+25%"];
        run(&[&decoded[..], &["--out", device, "--max-new", "60"]].concat());
        let file = |name: &str| place.path(&format!("{device}/{name}.parquet"));
        let (labels, _) = read_table::<LabelWindow>(&file("label_windows")).unwrap();
        let (runs, _) = read_table::<EvictionRun>(&file("eviction_runs")).unwrap();
        let (timings, _) = read_table::<EvictionTiming>(&file("eviction_timings")).unwrap();
        let labels: Vec<_> = labels.into_iter().map(|row| (row.trace_id, row.window, row.outcome)).collect();
        let runs: Vec<_> = runs.into_iter().map(|row| (row.policy, row.problem_id, row.token_ids)).collect();
        (labels, runs, timings.iter().map(|row| row.bytes_to_host.unwrap()).min().unwrap())
    };
    let ((labels, runs, none), (same_labels, same_runs, some)) = (made("cpu"), made("tensor"));
    assert_eq!(labels, same_labels);
    assert_eq!(runs, same_runs);
    assert!(labels.len() > 4 && runs.len() == 6 && none == 0 && some > 0);
}
