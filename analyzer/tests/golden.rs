//! A whole study against `NumPy`, `SciPy` and pandas: `golden/correlate.json` is made by `golden/correlate.py`.
//!
//! The prompt's values are not smoothed there, as smoothers start at the first decoded token.

mod support;

use epikv_analyzer::{
    Column, DatasetFindings, Finding, Mask, Recording, Sample, Settings, Source, WindowFrom, rows, study,
};
use epikv_schemas::LabelToken;
use epikv_signals::Smoother;
use epikv_stats::{Confidence, FisherMethod};
use serde_json::Value;

use support::{golden, list};

/// Both sides work in f64; the longest sum has a few hundred terms.
const TOLERANCE: f64 = 1e-11;

fn samples(golden: &Value) -> Vec<Sample> {
    let sample = |(i, trace): (usize, &Value)| {
        let trace_id = format!("t{i}");
        let layers = list(&trace["layers"]).iter().enumerate();
        let values = |x: &Value| list(x).iter().map(|v| Some(v.as_f64().expect("a number") as f32)).collect();
        let columns = layers.map(|(l, x)| Column { signal: "hs_l2", layer: Some(l), values: values(x) }).collect();
        let labels = list(&trace["labels"]).iter().map(Value::as_bool);
        let token_ids = labels.clone().map(|_| 7).collect();
        let n_prompt = golden["n_prompt"].as_u64().expect("a count") as usize;
        let recording = Recording { trace_id: trace_id.clone(), token_ids, n_prompt, columns };
        let labels: Vec<LabelToken> = labels
            .enumerate()
            .map(|(pos, important)| LabelToken {
                trace_id: trace_id.clone(),
                pos: pos as i32,
                token_id: 7,
                region: "reason".to_owned(),
                tested: pos >= n_prompt,
                important,
                n_cover: 1,
                n_flip: 0,
            })
            .collect();
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

fn settings(golden: &Value) -> Settings {
    Settings {
        smoothers: Smoother::ALL.to_vec(),
        window: golden["window"].as_u64().expect("a count") as usize,
        window_from: WindowFrom::Decode,
        confidence: Confidence::P95,
        fisher: FisherMethod::Plain,
        replicates: 300,
        surrogates: 0,
        seed: 4,
        max_lag: 0,
        pools: Vec::new(),
    }
}

fn near(what: &str, got: Option<f64>, want: &Value) {
    match (got, want.as_f64()) {
        (Some(got), Some(want)) => assert!((got - want).abs() < TOLERANCE, "{what}: got {got}, expected {want}"),
        (got, want) => assert_eq!(got, want, "{what}"),
    }
}

fn found(golden: &Value) -> DatasetFindings {
    study(&samples(golden), &settings(golden), &|| ()).expect("a window").remove(0)
}

#[test]
fn every_figure_is_that_of_the_peers() {
    let golden = golden("correlate.json");
    let found = found(&golden);
    for case in list(&golden["cases"]) {
        let (layer, name) =
            (case["layer"].as_u64().expect("a layer") as usize, case["smoothing"].as_str().expect("a name"));
        let smoother = Smoother::parse(name, settings(&golden).window).expect("a smoother");
        let finding = found.find(Source::Model, "hs_l2", Some(layer), smoother).expect("a column");
        compare(finding, case, &format!("layer {layer}, {name}"));
    }
}

fn compare(finding: &Finding, case: &Value, what: &str) {
    let all = &finding.correlation;
    assert_eq!(Some(all.n_tokens), case["n_tokens"].as_u64(), "{what}");
    assert_eq!((Some(all.n_eff as u64), all.n_constant_label, all.n_traces), (case["n_eff"].as_u64(), 1, 6), "{what}");
    near(what, all.base_rate, &case["base_rate"]);
    for (scope, figure) in [("pooled", &all.pooled), ("within", &all.within)] {
        let (what, want) = (format!("{what}, {scope}"), &case[scope]);
        near(&what, figure.rho, &want["rho"]);
        near(&what, figure.auc, &want["auc"]);
        near(&what, figure.ci_lo, &want["ci"][0]);
        near(&what, figure.ci_hi, &want["ci"][1]);
        let jackknife = list(&want["jackknife"]);
        assert_eq!(figure.draws.jackknife.len(), jackknife.len(), "{what}");
        figure.draws.jackknife.iter().zip(jackknife).for_each(|(got, want)| near(&what, *got, want));
        assert!(figure.boot_lo < figure.rho && figure.rho < figure.boot_hi, "{what}: {figure:?}");
    }
    near(what, all.rho_median_trace, &case["rho_median_trace"]);
    near(what, all.share_positive, &case["share_positive"]);
    for (i, (rho, shape)) in all.by_trace.iter().zip(&finding.shapes).enumerate() {
        near(what, rho.ok().map(|t| t.rho), &case["rho_by_trace"][i]);
        near(what, shape.rho_position, &case["rho_pos"][i]);
        near(what, shape.lag1, &case["lag1"][i]);
    }
}

#[test]
fn a_resample_is_ranked_as_if_its_traces_were_repeated() {
    let golden = golden("correlate.json");
    let samples = samples(&golden);
    for case in list(&golden["cases"]).iter().filter(|case| case["smoothing"] == "raw") {
        let layer = case["layer"].as_u64().expect("a layer") as usize;
        let usable = samples.iter().enumerate().filter(|(i, _)| *i != 3).map(|(_, sample)| sample);
        let labelled: Vec<_> = usable.map(|sample| sample.mask.pair(&sample.recording.columns[layer].values)).collect();
        let columns: Vec<(&[f32], &[bool])> = labelled.iter().map(|l| (l.signal(), l.important())).collect();
        let pairs = epikv_stats::PooledPairs::new(&columns).expect("no NaN");
        for row in list(&case["multiplicities"]) {
            let counts: Vec<u32> = list(&row[0]).iter().map(|c| c.as_u64().expect("a count") as u32).collect();
            near(&format!("layer {layer}, {counts:?}"), pairs.with_multiplicity(&counts).rho(), &row[1]);
        }
    }
}

#[test]
fn rows_carry_the_figures() {
    let golden = golden("correlate.json");
    let (found, settings) = (found(&golden), settings(&golden));
    let rows = rows::correlations(std::slice::from_ref(&found), &settings);
    // Pooled, within, between; two layers under five smoothers, and two baselines.
    assert_eq!(rows.len(), 3 * (2 * 5 + 2));
    let row = |scope: &str| rows.iter().find(|r| r.layer == Some(1) && r.smoothing == "z16" && r.scope == scope);
    let case = &golden["cases"][7];
    let (pooled, within) = (row("pooled").expect("a row"), row("within").expect("a row"));
    near("pooled", pooled.rho, &case["pooled"]["rho"]);
    near("within", within.rho, &case["within"]["rho"]);
    assert_eq!((pooled.ci_method.as_str(), within.ci_method.as_str(), pooled.boot_n), ("fisher", "student-t", 300));
    assert_eq!((pooled.rho_median_trace, within.excl_constant_label), (None, 1));
    let by_trace = rows::correlations_by_trace(&[found], settings.window);
    assert_eq!(by_trace.len(), 6 * (2 * 5 + 2));
    let left_out = by_trace.iter().find(|r| r.trace_id == "t3").expect("a row");
    assert_eq!((left_out.rho, left_out.reason.as_deref()), (None, Some("constant_label")));
}
