//! `epikv correlate` across signals, kinds of tokens, problem sets, models and difficulty.

use epikv_schemas::{
    ComparisonRow, Correlations, CorrelationsByLag, CorrelationsByTrace, DifficultyRow, EnrichmentRow, GroupPair,
    HeterogeneityRow, Record, read_table,
};

use crate::correlate::{CORRELATE, labelled};
use crate::support::Place;

fn rows<R: Record>(place: &Place, folder: &str) -> Vec<R> {
    let file = format!("{}.parquet", R::table().name);
    read_table::<R>(&place.path(folder).join(file)).unwrap().0
}

/// Traces of two problem sets, `sums` of the first three problems.
fn two_sets() -> Place {
    labelled(&|i| format!(", \"dataset\": \"{}\", \"level\": \"Level {i}\"", if i < 3 { "sums" } else { "products" }))
}

#[test]
fn two_signals_are_compared_on_the_same_labels() {
    let place = labelled(&|_| String::new());
    let few = ["--signals", "hs_l2,kv_key,epikv", "--smooth", "raw,mean", "--no-random-weights", "--max-lag", "3"];
    let pairs = ["--compare", "-hs_l2@layer=1@smooth=mean64,epikv", "--compare", "kv_key,epikv"];
    let run = |out: &str, threads: &str, more: &[&str]| {
        place.epikv(&[CORRELATE, &few, &["--out", out, "--threads", threads], more].concat())
    };
    run("out", "1", &pairs).ok();
    let found: Vec<ComparisonRow> = rows(&place, "out");
    let names: Vec<(&str, &str)> = found.iter().map(|r| (r.column_a.as_str(), r.column_b.as_str())).collect();
    assert_eq!(names, [("-hs_l2@layer=1@smooth=mean64", "epikv"), ("kv_key", "epikv")]);
    let within: Vec<Correlations> = rows(&place, "out");
    let rho = |signal: &str, layer: Option<i16>, smoothing: &str| {
        let is = |r: &&Correlations| {
            (r.signal.as_str(), r.layer, r.smoothing.as_str(), r.scope.as_str()) == (signal, layer, smoothing, "within")
        };
        within.iter().find(is).and_then(|r| r.rho).unwrap()
    };
    assert_eq!(found[0].n_traces, 5);
    assert!((found[0].rho_a.unwrap() + rho("hs_l2", Some(1), "mean64")).abs() < 1e-12, "turned around");
    assert!((found[1].rho_a.unwrap() - rho("kv_key", None, "raw")).abs() < 1e-12);
    assert!((found[1].rho_b.unwrap() - rho("epikv", None, "raw")).abs() < 1e-12);
    for row in &found {
        assert!(row.boot_lo <= row.difference && row.difference <= row.boot_hi, "{row:?}");
        for p in [row.p_signed_rank, row.p_sign_flip, row.williams_p, row.meng_p, row.steiger_p] {
            assert!(p > Some(0.0) && p <= Some(1.0), "{row:?}");
        }
    }
    let by_lag: Vec<CorrelationsByLag> = rows(&place, "out");
    // hs_l2 at four layers and three scores, raw and smoothed, at lags -2, -1, 0, 1, 2.
    assert_eq!(by_lag.len(), (4 + 3) * 2 * 5);
    for row in by_lag.iter().filter(|row| row.lag == 0) {
        assert!((row.rho.unwrap() - rho(&row.signal, row.layer, &row.smoothing)).abs() < 1e-12);
    }
    let report = std::fs::read_to_string(place.path("out").join("report_details.md")).unwrap();
    for words in ["## Signals against each other", "(Williams)", "## Lags", "peak of within", "## Kinds of tokens"] {
        assert!(report.contains(words), "{words}: {report}");
    }
    // Without being asked every score is compared with epikv.
    run("usual", "2", &[]).ok();
    let usual: Vec<ComparisonRow> = rows(&place, "usual");
    assert_eq!(usual.iter().map(|r| r.column_a.as_str()).collect::<Vec<_>>(), ["embed_l2", "kv_key"]);
    assert_eq!(usual[1], found[1]);
    run("bad", "1", &["--compare", "hs_l2,epikv"])
        .refused(&["column hs_l2: expected a recorded signal", "hint: --compare"]);
    run("bad", "1", &["--compare", "hs_l2@layer=9,epikv"]).refused(&["column hs_l2@layer=9"]);
    run("bad", "1", &["--compare", "epikv"]).refused(&["expected two different signals"]);
    run("bad", "1", &["--compare", "epikv,entropy"]).refused(&["column entropy: expected a recorded signal"]);
}

#[test]
fn kinds_of_tokens_are_counted() {
    let place = labelled(&|_| String::new());
    let few = ["--signals", "hs_l2,epikv", "--smooth", "raw", "--no-random-weights", "--out", "out"];
    place.epikv(&[CORRELATE, &few].concat()).ok();
    let found: Vec<EnrichmentRow> = rows(&place, "out");
    let position: Vec<Correlations> = rows(&place, "out");
    let all = position.iter().find(|r| r.signal == "position" && r.scope == "pooled").unwrap();
    let label: Vec<&EnrichmentRow> = found.iter().filter(|row| row.set == "label").collect();
    // Every token is of one class.
    assert_eq!(label.iter().map(|row| row.n_class).sum::<i64>(), all.n_tokens);
    assert_eq!(label.iter().map(|row| row.n_both).sum::<i64>(), label[0].n_set);
    assert!((label[0].n_set as f64 / all.n_tokens as f64 - all.base_rate.unwrap()).abs() < 1e-12);
    let sets: Vec<(&str, &str)> = found.iter().map(|row| (row.set.as_str(), row.column.as_str())).collect();
    for set in
        [("top", "epikv"), ("kept", "epikv"), ("top", "embed_l2"), ("top", "hs_l2@layer=1"), ("kept", "hs_l2@layer=2")]
    {
        assert!(sets.contains(&set), "{set:?}: {sets:?}");
    }
    for row in &found {
        assert!(row.n_both <= row.n_class.min(row.n_set) && row.expected >= 0.0, "{row:?}");
        assert_eq!(row.ratio.is_some(), row.expected > 0.0);
    }
}

#[test]
fn problem_sets_models_and_difficulty() {
    let place = two_sets();
    let few = ["--signals", "hs_l2,epikv", "--smooth", "raw,mean", "--no-random-weights"];
    let run = |out: &str, more: &[&str]| place.epikv(&[CORRELATE, &few, &["--out", out], more].concat());
    run("first", &[]).ok();
    let more = ["--pool", "sums+products", "--against", "first", "--difficulty", "problems.jsonl"];
    run("second", &more).ok();

    let pooled: Vec<Correlations> = rows(&place, "second");
    // The claim about band A, layers 0 and 1 of four, has a part for each set of three problems or more and each layer.
    let claims = place.epikv(&["claims", "--run", "second", "--json"]).ok().stdout();
    let claims: serde_json::Value = serde_json::from_str(&claims).unwrap();
    let band = claims["claims"].as_array().unwrap().iter().find(|row| row["claim"]["id"] == "positive-band").unwrap();
    let by_trace: Vec<CorrelationsByTrace> = rows(&place, "second");
    for (part, layer) in band["parts"].as_array().unwrap().iter().zip(0..2) {
        let is = |r: &&CorrelationsByTrace| {
            (r.dataset.as_str(), r.source.as_str(), r.signal.as_str(), r.smoothing.as_str(), r.layer)
                == ("sums", "model", "hs_l2", "mean64", Some(layer))
        };
        let z: Vec<f64> = by_trace.iter().filter(is).filter_map(|r| r.rho).map(f64::atanh).collect();
        let mean = z.iter().sum::<f64>() / z.len() as f64;
        assert_eq!((part["dataset"].as_str(), part["n"].as_u64(), z.len()), (Some("sums"), Some(3), 3), "{part}");
        assert!((part["estimate"].as_f64().unwrap() - mean.tanh()).abs() < 1e-9, "{part}");
    }
    assert_eq!((band["parts"].as_array().unwrap().len(), band["verdict"].as_str()), (2, Some("not distinguishable")));
    let page = place.epikv(&["claims", "--run", "second", "--markdown"]).ok().stdout();
    assert!(page.starts_with("# The claims of the papers") && page.contains("\n## positive-band\n"), "{page}");
    // Without a run arithmetic decides alone.
    let alone = place.epikv(&["claims"]).ok().stdout();
    assert!(alone.contains("0 of them by measurement") && alone.contains("verdict: contradicted"), "{alone}");
    let mut sets: Vec<&str> = pooled.iter().map(|row| row.dataset.as_str()).collect();
    sets.dedup();
    assert_eq!(sets, ["products", "sums", "sums+products"]);
    let n_eff = |set: &str| pooled.iter().find(|r| r.dataset == set && r.signal == "position").unwrap().n_eff;
    assert_eq!((n_eff("products"), n_eff("sums"), n_eff("sums+products")), (2, 3, 5));

    let pairs: Vec<GroupPair> = rows(&place, "first");
    // Four layers and two scores, raw and smoothed, and four contrasts of either.
    assert_eq!(pairs.len(), (4 + 2) * 2 + 4 * 2);
    let band = pairs.iter().find(|row| row.contrast == "band_a" && row.smoothing == "mean64").unwrap();
    assert_eq!((band.group_a.as_str(), band.n_a, band.n_b), ("random:0, products", 2, 3));
    assert!((band.difference - (band.mean_a - band.mean_b)).abs() < 1e-12);

    let spread: Vec<HeterogeneityRow> = rows(&place, "second");
    let of = |groups: &str| spread.iter().filter(|row| row.groups == groups).map(|row| row.n_groups).max();
    assert_eq!(of("all"), Some(4), "both sets, here and in the other run");
    assert_eq!(of("sums+products"), Some(4), "both runs of both sets");
    assert!(spread.iter().all(|row| (0.0..1.0).contains(&row.i_squared) && row.z_lo <= row.z_hi));

    let difficulty: Vec<DifficultyRow> = rows(&place, "second");
    let joined: Vec<&DifficultyRow> =
        difficulty.iter().filter(|row| row.dataset == "sums+products" && row.smoothing == "mean64").collect();
    assert_eq!(joined.len(), 1 + 4 + 4);
    assert!(joined.iter().all(|row| row.n_traces == 5 && row.statistic.is_some() && row.p > Some(0.0)), "{joined:?}");
    let report = std::fs::read_to_string(place.path("second").join("report_details.md")).unwrap();
    assert!(report.contains("## Layers and difficulty\n\nDifficulty is the level of the problem."), "{report}");
    assert!(report.contains("## Between problem sets and models") && report.contains("first, sums"), "{report}");
    let report = std::fs::read_to_string(place.path("first").join("report_details.md")).unwrap();
    assert!(!report.contains("## Layers and difficulty"), "fewer than four traces in each set: {report}");

    run("bad", &["--pool", "sums"]).refused(&["expected two or more different problem sets"]);
    run("bad", &["--pool", "sums+aime"]).refused(&["expected problem sets of the traces, products, sums, got aime"]);
    run("bad", &["--against", "nowhere"]).refused(&["nowhere/correlations_by_trace.parquet"]);
    place.write("words.jsonl", "{\"id\": \"p0\", \"problem\": \"x\", \"level\": \"hard\"}");
    run("bad", &["--difficulty", "words.jsonl"]).refused(&["problem p0: expected a number as level, got \"hard\""]);
}
