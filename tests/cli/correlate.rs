//! Traces and labels to coefficients and a figure.

use std::collections::BTreeMap;

use epikv_schemas::{
    Correlations, CorrelationsByTrace, LabelToken, Manifest, Record, SignalsAge, SignalsAttn, SignalsHs, SignalsKv,
    Trace, read_table,
};

use epikv_signals::{SIGNALS, Smoother};

use crate::support::{Place, bytes, rewrite};

const DATA: &[&str] = &[
    "signals_hs.parquet",
    "signals_kv.parquet",
    "signals_token.parquet",
    "signals_score.parquet",
    "correlations.parquet",
    "correlations_by_trace.parquet",
    "comparisons.parquet",
    "enrichment.parquet",
    "correlations_by_lag.parquet",
    "agreement.parquet",
    "selection.parquet",
    "figure_layers.svg",
    "figure_layers.png",
    "figure_layers.csv",
    "report.md",
    "report_details.md",
];

pub(crate) const CORRELATE: &[&str] =
    &["correlate", "--traces", "traces.parquet", "--labels", "labels", "--quiet", "--bootstrap", "200"];

const REFERENCE: &str = "signal,spearman_rho,p_value,n_pairs,note\n\
    hs_l2_diff_l10_rolling64,0.112,0.0,9,\nhs_l2_diff_l21_rolling64,-0.209,0.0,9,\nkv_key_var,0.3,0.0,9,\n";

/// Five traces with labels; `more` adds fields to problem `i`.
pub(crate) fn labelled(more: &dyn Fn(i32) -> String) -> Place {
    let place = Place::new();
    let problem = |i: i32| format!("{{\"id\": \"p{i}\", \"problem\": \"{i}+{i}?\"{}}}", more(i));
    let problems: Vec<String> = (0..5).map(problem).collect();
    place.write("problems.jsonl", problems.join("\n"));
    place
        .epikv(&["trace", "--problems", "problems.jsonl", "--out", "traces.parquet", "--max-new", "110", "--quiet"])
        .ok();
    let label =
        ["label", "--traces", "traces.parquet", "--out", "labels", "--answer", "text", "--max-new", "24", "--quiet"];
    place.epikv(&label).ok();
    // Whether a random model's text changes is decided by hand here, so that every trace has important tokens and others.
    let path = place.path("labels").join("label_tokens.parquet");
    let (mut tokens, provenance) = read_table::<LabelToken>(&path).unwrap();
    for token in tokens.iter_mut().filter(|token| token.tested) {
        token.important = Some((token.pos / 6 + token.token_id % 2) % 3 == 0);
    }
    rewrite(&path, &tokens, &provenance);
    place
}

#[test]
fn threads_change_no_byte_and_the_rows_are_complete() {
    let place = labelled(&|_| String::new());
    place.write("published.csv", REFERENCE);
    let mut runs = Vec::new();
    for (out, threads) in [("one", "1"), ("two", "2")] {
        let run = ["--out", out, "--threads", threads, "--reference", "published.csv"];
        place.epikv(&[CORRELATE, &run].concat()).ok();
        runs.push(DATA.iter().map(|file| bytes(&place.path(out).join(file))).collect::<Vec<_>>());
    }
    for (file, (one, two)) in DATA.iter().zip(runs[0].iter().zip(&runs[1])) {
        assert!(one == two, "{file} differs");
    }
    let folder = place.path("one");
    Manifest::open(&folder).unwrap().verify().unwrap();

    let (traces, _) = read_table::<Trace>(&place.path("traces.parquet")).unwrap();
    let (hs, _) = read_table::<SignalsHs>(&folder.join("signals_hs.parquet")).unwrap();
    let (kv, _) = read_table::<SignalsKv>(&folder.join("signals_kv.parquet")).unwrap();
    let n_tokens: usize = traces.iter().map(|t| t.token_ids.len()).sum();
    assert_eq!((hs.len(), kv.len()), (n_tokens, n_tokens));
    assert!(hs.iter().all(|row| row.hs_l2.layers() == [0, 1, 2, 3] && row.hs_l2.get(3).is_some() == (row.pos > 0)));
    assert!(kv.iter().all(|row| row.kv_key_var.get(0).is_some() && row.kv_val_var.get(3).is_some()));

    let (rows, provenance) = read_table::<Correlations>(&folder.join("correlations.parquet")).unwrap();
    // Model and random weights; every signal at four layers or of the model, under every smoother; two baselines.
    let shown = SIGNALS.iter().filter(|row| !row.needs_attention(4).unwrap());
    let of_model: usize =
        shown.map(|row| row.all(4).unwrap().len() + usize::from(row.late(4).unwrap().is_some())).sum();
    let columns = 2 * of_model * Smoother::ALL.len() + 2;
    // Tokens and windows, pooled and within, and traces; baselines have no windows.
    assert_eq!(rows.len(), 5 * columns - 2 * 2);
    assert_eq!(provenance.get("smoothing").unwrap()["decay"], 0.9);
    assert_eq!(provenance.get("inputs").unwrap().as_array().unwrap().len(), 5);
    for row in rows.iter().filter(|row| row.scope != "between") {
        assert_eq!(row.n_traces_total, row.n_eff + row.excl_short + row.excl_constant_label + row.excl_constant_signal);
        if let (Some(rho), Some(lo), Some(hi)) = (row.rho, row.boot_lo, row.boot_hi) {
            assert!((-1.0..=1.0).contains(&rho) && lo <= hi, "{row:?}");
        }
    }
    let (by_trace, _) = read_table::<CorrelationsByTrace>(&folder.join("correlations_by_trace.parquet")).unwrap();
    assert_eq!(by_trace.len(), traces.len() * columns);
    assert!(by_trace.iter().all(|row| row.rho.is_some() != row.reason.is_some()));
}

/// Puts the first trace of a file into folder `a` and the others into `b`.
fn split<R: Record>(place: &Place, file: &str, id: fn(&R) -> &str) {
    let (rows, provenance) = read_table::<R>(&place.path("all").join(file)).unwrap();
    let first = id(&rows[0]).to_owned();
    let (a, b): (Vec<R>, Vec<R>) = rows.into_iter().partition(|row| id(row) == first);
    for (part, rows) in [("a", a), ("b", b)] {
        std::fs::create_dir_all(place.path(part)).unwrap();
        rewrite(&place.path(part).join(file), &rows, &provenance);
    }
}

#[test]
fn signals_from_files_give_what_recording_gives() {
    let place = labelled(&|_| String::new());
    place.epikv(&[CORRELATE, &["--out", "all", "--no-random-weights"]].concat()).ok();
    place.epikv(&[CORRELATE, &["--out", "again", "--recorded", "all"]].concat()).ok();
    let rows = |out: &str| read_table::<Correlations>(&place.path(out).join("correlations.parquet")).unwrap().0;
    let by_trace = |out: &str| {
        read_table::<CorrelationsByTrace>(&place.path(out).join("correlations_by_trace.parquet")).unwrap().0
    };
    assert!(rows("all") == rows("again") && by_trace("all") == by_trace("again"));
    assert!(!place.path("again").join("agreement.parquet").exists(), "no score was replayed");

    // The same recorded in two parts.
    split::<SignalsHs>(&place, "signals_hs.parquet", |row| &row.trace_id);
    split::<SignalsKv>(&place, "signals_kv.parquet", |row| &row.trace_id);
    let signals = ["--signals", "hs_l2,kv_key_var,lag_next"];
    place.epikv(&[CORRELATE, &["--out", "whole", "--recorded", "all"], &signals].concat()).ok();
    place.epikv(&[CORRELATE, &["--out", "parts", "--recorded", "a,b"], &signals].concat()).ok();
    assert!(rows("whole") == rows("parts") && by_trace("whole") == by_trace("parts"));

    let compared =
        place.epikv(&[CORRELATE, &["--out", "no", "--recorded", "all", "--compare", "hs_l2,epikv"]].concat());
    compared.refused(&["--compare needs two signals"]);
    assert!(place.path("whole").join("difficulty.parquet").exists(), "groups need no model");

    place
        .epikv(&[CORRELATE, &["--out", "no", "--recorded", "all", "--signals", "hs_l2,h2o_attn"]].concat())
        .refused(&["signal h2o_attn: expected one that the files of --recorded hold (hs_l2, ", "--kernel explicit"]);

    // Labels without a label.
    let path = place.path("labels").join("label_tokens.parquet");
    let (tokens, provenance) = read_table::<LabelToken>(&path).unwrap();
    rewrite::<LabelToken>(&path, &[], &provenance);
    for more in [&["--recorded", "all"][..], &[]] {
        let empty = place.epikv(&[CORRELATE, &["--out", "no"], more].concat());
        empty.refused(&["label_tokens.parquet: expected at least one tested token with a label"]);
    }
    rewrite(&path, &tokens, &provenance);

    // Other tokens, and a trace in two files.
    let twice = place.epikv(&[CORRELATE, &["--out", "no", "--recorded", "a,a"]].concat());
    twice.refused(&["expected it in one file of signals"]);
    let (mut traces, provenance) = read_table::<Trace>(&place.path("traces.parquet")).unwrap();
    traces[0].token_ids[3] += 1;
    rewrite(&place.path("traces.parquet"), &traces, &provenance);
    let other = place.epikv(&[CORRELATE, &["--out", "no", "--recorded", "all"]].concat());
    other.refused(&["position 3: expected token"]);
}

#[test]
fn attention_from_files_has_the_names_and_ages_that_recording_has() {
    let place = labelled(&|_| String::new());
    let signals = "h2o_attn,attn_last,h2o_attn@age=16,h2o_attn@age=64,h2o_attn@age=96";
    let asked = ["--kernel", "explicit", "--signals", signals, "--smooth", "raw,mean"];
    place.epikv(&[CORRELATE, &["--out", "all", "--no-random-weights"], &asked].concat()).ok();
    let rows = |out: &str, smooth: &[&str]| {
        place.epikv(&[CORRELATE, &["--out", out, "--recorded", "all"], smooth].concat()).ok();
        key_of_rows(&place, out)
    };
    let recorded: BTreeMap<_, _> =
        key_of_rows(&place, "all").into_iter().filter(|(key, _)| key.1 != "embed_l2").collect();
    let names: std::collections::BTreeSet<&str> = recorded.keys().map(|key| key.1.as_str()).collect();
    assert!(names.is_superset(&signals.split(',').collect()), "{names:?}");
    assert_eq!(rows("named", &["--signals", signals, "--smooth", "raw,mean"]), recorded);
    // Without names every column of the files is there, `attn_entropy` and the like only where they were recorded.
    let all = rows("unnamed", &["--smooth", "raw,mean"]);
    assert!(recorded.iter().all(|(key, row)| all.get(key) == Some(row)));
    assert!(all.keys().all(|key| key.1 != "h2o_attn_age64"), "a column, not a signal");
    place
        .epikv(&[CORRELATE, &["--out", "no", "--recorded", "all", "--signals", "h2o_attn@age=17"]].concat())
        .refused(&["signal h2o_attn@age=17: expected one"]);
}

/// The rows of a run by problem set, signal, layer, smoothing and scope.
fn key_of_rows(place: &Place, out: &str) -> BTreeMap<(String, String, Option<i16>, String, String), Correlations> {
    let (rows, _) = read_table::<Correlations>(&place.path(out).join("correlations.parquet")).unwrap();
    let key = |row: &Correlations| {
        let (dataset, signal) = (row.dataset.clone(), row.signal.clone());
        (dataset, signal, row.layer, row.smoothing.clone(), row.scope.clone())
    };
    rows.into_iter().map(|row| (key(&row), row)).collect()
}

#[test]
fn the_figure_shows_what_the_rows_say() {
    let place = labelled(&|_| String::new());
    place.write("published.csv", REFERENCE);
    place.epikv(&[CORRELATE, &["--out", "out", "--reference", "published.csv"]].concat()).ok();
    let (rows, _) = read_table::<Correlations>(&place.path("out").join("correlations.parquet")).unwrap();
    let svg = String::from_utf8(bytes(&place.path("out").join("figure_layers.svg"))).unwrap();
    let to_y = y_of_rho(&svg);
    let mut compared = 0;
    let lines = [
        ("pooled", "model", "pooled, with bootstrap"),
        ("within", "model", "within traces"),
        ("random_weights", "random_weights", "random weights, pooled"),
    ];
    for (scope, source, line) in lines {
        // Panels follow each other: the layers of mean64 first, then those of z64.
        let drawn: Vec<(i16, f64)> = circles(&svg, line);
        let own = |smoothing: &str| -> BTreeMap<i16, f64> {
            let is = |r: &&Correlations| {
                r.source == source
                    && r.signal == "hs_l2"
                    && r.smoothing == smoothing
                    && r.scope == if scope == "within" { "within" } else { "pooled" }
            };
            rows.iter().filter(is).filter_map(|r| Some((r.layer?, r.rho?))).collect()
        };
        let want: Vec<(i16, f64)> = ["mean64", "z64"].into_iter().flat_map(own).collect();
        assert_eq!(drawn.len(), want.len(), "{scope}");
        for ((layer, y), (want_layer, rho)) in drawn.iter().zip(&want) {
            assert_eq!(layer, want_layer);
            assert!((y - to_y(*rho)).abs() < 0.02, "{scope}, layer {layer}: {y} is not where {rho} stands");
            compared += 1;
        }
    }
    assert_eq!(compared, 3 * 2 * 4);
    let published = circles(&svg, "published (published.csv)");
    assert_eq!(published.iter().map(|c| c.0).collect::<Vec<_>>(), [10, 21]);
    assert!((published[1].1 - to_y(-0.209)).abs() < 0.02);
    let csv = String::from_utf8(bytes(&place.path("out").join("figure_layers.csv"))).unwrap();
    assert_eq!(csv.lines().count(), 1 + compared + 2);
    let row =
        rows.iter().find(|r| r.signal == "hs_l2" && r.smoothing == "z64" && r.layer == Some(2) && r.scope == "pooled");
    assert!(csv.contains(&format!(", z64\",\"pooled, with bootstrap\",2,2,{},", row.unwrap().rho.unwrap())));
    let png = bytes(&place.path("out").join("figure_layers.png"));
    assert!(png.starts_with(b"\x89PNG") && png.len() > 20_000);
}

/// Layer and height of the markers of a line, in the order of the drawing.
fn circles(svg: &str, line: &str) -> Vec<(i16, f64)> {
    let marker = format!(" data-line=\"{line}\" data-layer=\"");
    let read = |text: &str| {
        let layer = text.split('"').next().unwrap().parse().unwrap();
        (layer, text.split("cy=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
    };
    svg.split(marker.as_str()).skip(1).map(read).collect()
}

/// The axis of rho, from its outermost ticks.
fn y_of_rho(svg: &str) -> impl Fn(f64) -> f64 {
    let ticks = svg.lines().filter(|line| line.starts_with("<text") && line.contains("text-anchor=\"end\""));
    let read = |line: &str| {
        let y: f64 = line.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        let text = line.split('>').nth(1).unwrap().split('<').next().unwrap();
        Some((text.replace('\u{2212}', "-").parse::<f64>().ok()?, y - 2.5))
    };
    let ticks: Vec<(f64, f64)> = ticks.filter_map(read).collect();
    let (first, last) = (ticks[0], *ticks.last().unwrap());
    move |rho| first.1 + (rho - first.0) * (last.1 - first.1) / (last.0 - first.0)
}

#[test]
fn flags_choose_what_is_computed() {
    let place = labelled(&|_| String::new());
    let few = ["--out", "few", "--signals", "kv_key_var, epikv", "--smooth", "raw,z32", "--smooth-window", "32"];
    let more = ["--ci", "bonett-wright", "--window-from", "prompt", "--no-random-weights", "--json"];
    let ran = place.epikv(&[CORRELATE, &few, &more].concat()).ok();
    let figures: serde_json::Value = serde_json::from_str(&ran.stdout()).unwrap();
    assert_eq!(figures["n_recorded"], 5);
    assert_eq!(figures["summary"]["datasets"][0]["n_traces"], 5);
    assert_eq!(figures["summary"]["mapping"][0], "band A = layers 7-13 of 32 -> 0-1");
    assert!(ran.stderr().contains("token_identity") && ran.stderr().contains("is a convention"), "{}", ran.stderr());
    assert!(!place.path("few").join("signals_hs.parquet").exists());
    let (rows, provenance) = read_table::<Correlations>(&place.path("few").join("correlations.parquet")).unwrap();
    // Four layers and their mean, the score, and the step of the embedding, which is in every table.
    assert_eq!(rows.len(), 5 * (5 + 1 + 1) * 2 + 3 * 2);
    assert!(rows.iter().any(|row| row.signal == "embed_l2" && row.rho.is_some()));
    assert!(rows.iter().all(|row| row.source != "random_weights"));
    assert!(rows.iter().any(|row| row.smoothing == "z32" && row.signal == "epikv" && row.layer.is_none()));
    assert!(
        rows.iter()
            .all(|row| { row.ci_method == if row.scope.ends_with("within") { "student-t" } else { "bonett-wright" } })
    );
    assert_eq!(provenance.get("smoothing").unwrap()["from"], "prompt");
    let ages = "h2o_attn,attn_entropy,h2o_attn@age=64,h2o_attn@age=9";
    let explicit = ["--out", "explicit", "--signals", ages, "--kernel", "explicit"];
    place.epikv(&[CORRELATE, &explicit].concat()).ok();
    let (attention, _) = read_table::<SignalsAttn>(&place.path("explicit").join("signals_attn.parquet")).unwrap();
    assert!(attention.iter().all(|row| row.h2o_attn > Some(0.0) && row.attn_entropy.get(3) >= Some(0.0)));
    let (young, _) = read_table::<SignalsAge>(&place.path("explicit").join("signals_age.parquet")).unwrap();
    assert_eq!(young.len(), attention.len());
    for (young, all) in young.iter().zip(&attention) {
        assert_eq!((&young.trace_id, young.pos, young.age), (&all.trace_id, all.pos, 9));
        assert!(
            young.h2o_attn > Some(0.0) && young.h2o_attn <= all.h2o_attn_age64 && all.h2o_attn_age64 <= all.h2o_attn
        );
    }
    let (rows, _) = read_table::<Correlations>(&place.path("explicit").join("correlations.parquet")).unwrap();
    assert!(rows.iter().any(|row| row.signal == "h2o_attn@age=9" && row.rho.is_some()));
    assert!(attention.iter().all(|row| row.attn_last.is_none() && row.attn_distance.layers().is_empty()));
    let other = [CORRELATE, &["--out", "few", "--bootstrap", "0"]].concat();
    let again = place.epikv(&other).refused(&["exists already"]);
    assert!(again.stderr().contains("hint: --fresh"));
    place.epikv(&[CORRELATE, &["--out", "few", "--fresh", "--signals", "epikv", "--bootstrap", "0"]].concat()).ok();
}

#[test]
fn what_does_not_fit_is_refused() {
    let place = labelled(&|_| String::new());
    let run = |more: &[&str]| place.epikv(&[CORRELATE, &["--out", "out"], more].concat());
    run(&["--signals", "hs_l3"]).refused(&["unknown signal \"hs_l3\"", "hint: `epikv signals`"]);
    run(&["--signals", "h2o_attn"]).refused(&["signal h2o_attn: expected --kernel explicit", "hint: a fused kernel"]);
    run(&["--smooth", "mean32"]).refused(&["unknown smoothing \"mean32\"", "mean64"]);
    run(&["--labels", "nowhere"]).refused(&["nowhere/label_tokens.parquet"]);
    place.write("bad.csv", REFERENCE.replace("0.112", "1.5"));
    run(&["--reference", "bad.csv"]).refused(&["bad.csv: line 2, column spearman_rho", "got 1.5"]);
    let short = run(&["--model", "random:0,context=64"]); // the warning about other weights comes first
    assert_eq!(short.code(), 2);
    assert!(short.stderr().contains("error: no trace could be recorded: trace p0: "), "{}", short.stderr());
    // Traces of the same names with other tokens.
    let other = ["trace", "--problems", "problems.jsonl", "--out", "other.parquet", "--max-new", "110", "--quiet"];
    place.epikv(&[&other[..], &["--model", "random:9"]].concat()).ok();
    let mixed = run(&["--traces", "other.parquet"]);
    assert_eq!(mixed.code(), 2);
    for words in ["error: trace p0: label at position", "hint: labels and traces must come from the same"] {
        assert!(mixed.stderr().contains(words), "{}", mixed.stderr());
    }
    assert!(!place.path("out").join("correlations.parquet").exists());
}

#[test]
fn signals_are_listed() {
    let place = Place::new();
    let text = place.epikv(&["signals"]).ok().stdout();
    let json: serde_json::Value = serde_json::from_str(&place.epikv(&["signals", "--json"]).ok().stdout()).unwrap();
    let names: Vec<&str> = json.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, SIGNALS.iter().map(|row| row.spec.name).collect::<Vec<_>>());
    assert!(names.iter().all(|name| text.contains(&format!("{name} (one a "))));
}
