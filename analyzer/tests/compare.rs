//! Two signals against the same labels, against `NumPy` and `SciPy`: `golden/compare.json` is made by `golden/compare.py`.

mod support;

use epikv_analyzer::compare::{Side, compare};
use epikv_analyzer::{Column, Mask, Recording, Sample, Settings, WindowFrom};
use epikv_schemas::LabelToken;
use epikv_signals::Smoother;
use epikv_stats::{Confidence, FisherMethod};
use epikv_words::Hint;
use serde_json::Value;

use support::{golden, list};

const TOLERANCE: f64 = 1e-11;

fn samples(golden: &Value) -> Vec<Sample> {
    let sample = |(i, trace): (usize, &Value)| {
        let trace_id = format!("t{i}");
        let column = |signal, key: &str| Column {
            signal,
            layer: None,
            values: list(&trace[key]).iter().map(|v| v.as_f64().map(|v| v as f32)).collect(),
        };
        let columns = vec![column("epikv", "a"), column("kv_key", "b")];
        let important = list(&trace["labels"]).iter().map(Value::as_bool);
        let labels: Vec<LabelToken> = important
            .enumerate()
            .map(|(pos, important)| LabelToken {
                trace_id: trace_id.clone(),
                pos: pos as i32,
                token_id: 7,
                region: "reason".to_owned(),
                tested: true,
                important,
                n_cover: 1,
                n_flip: 0,
            })
            .collect();
        let recording =
            Recording { trace_id: trace_id.clone(), token_ids: vec![7; labels.len()], n_prompt: 0, columns };
        let mask = Mask::new(&recording, &labels).expect("its labels");
        Sample {
            dataset: "made".to_owned(),
            problem_id: trace_id.clone(),
            recording,
            random: None,
            mask,
            windows: None,
        }
    };
    list(&golden["traces"]).iter().enumerate().map(sample).collect()
}

fn settings() -> Settings {
    Settings {
        smoothers: vec![Smoother::Raw],
        window: 64,
        window_from: WindowFrom::Decode,
        confidence: Confidence::P95,
        fisher: FisherMethod::Plain,
        replicates: 500,
        surrogates: 0,
        seed: 4,
        max_lag: 0,
        pools: Vec::new(),
    }
}

fn near(what: &str, got: Option<f64>, want: &Value) {
    let (got, want) = (got.expect(what), want.as_f64().expect(what));
    assert!((got - want).abs() < TOLERANCE, "{what}: got {got}, expected {want}");
}

#[test]
fn every_figure_is_that_of_the_peers() {
    let golden = golden("compare.json");
    let side = |text| Side::parse(text, 64).expect("known");
    let pairs = [[side("epikv"), side("kv_key")], [side("-epikv"), side("-kv_key")]];
    let found = compare(&samples(&golden), &pairs, &settings()).expect("recorded");
    let first = &found[0];
    assert_eq!(Some(first.n_traces as u64), golden["n_traces"].as_u64());
    assert_eq!(Some(first.n_tokens), golden["n_tokens"].as_u64());
    assert_eq!(Some(first.n_larger as u64), golden["n_larger"].as_u64());
    near("rho of the first", first.rho[0], &golden["rho"][0]);
    near("rho of the second", first.rho[1], &golden["rho"][1]);
    near("rho between", first.rho_between, &golden["rho"][2]);
    near("difference", first.difference, &golden["difference"]);
    near("signed rank", first.p_signed_rank, &golden["p_signed_rank"]);
    near("sign flip", first.p_sign_flip, &golden["p_sign_flip"]);
    for (name, test) in [("williams", first.williams), ("meng", first.meng), ("steiger", first.steiger)] {
        near(name, test.map(|t| t.statistic), &golden["tests"][name][0]);
        near(name, test.map(|t| t.p), &golden["tests"][name][1]);
    }
    let (lo, hi) = first.interval.expect("nine traces");
    assert!(lo < first.difference.expect("defined") && first.difference.expect("defined") < hi);
    let turned = &found[1];
    near("turned around", turned.difference.map(|d| -d), &golden["difference"]);
    near("between, both turned around", turned.rho_between, &golden["rho"][2]);
}

#[test]
fn what_was_not_recorded_is_refused() {
    let side = |text| Side::parse(text, 64).expect("known");
    let error = compare(&samples(&golden("compare.json")), &[[side("epikv"), side("hs_l2@layer=2")]], &settings());
    let error = error.expect_err("no such column");
    assert!(error.to_string().starts_with("column hs_l2@layer=2: expected a recorded signal"), "{error}");
    assert!(error.hint().is_some());
}
