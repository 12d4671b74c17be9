//! The figures of `epikv correlate`, and the layers that it chooses for `epikv evict`.

use std::collections::BTreeMap;

use epikv_schemas::{Correlations, CorrelationsByTrace, EvictionRun, Selection, read_table};
use serde_json::Value;

use crate::correlate::{CORRELATE, labelled};
use crate::support::{Place, bytes};

/// Every figure with its files.
const FIGURES: &[&str] = &[
    "figure_layers",
    "figure_bands",
    "figure_smoothing",
    "figure_scopes",
    "figure_trend",
    "figure_datasets",
    "figure_agreement",
    "figure_pairs",
];

fn chosen() -> Place {
    let place = labelled(&|_| String::new());
    let run = ["--signals", "hs_l2,hs_norm,epikv,epikv_a,kv_key", "--no-random-weights", "--pick", "--out", "out"];
    place.epikv(&[CORRELATE, &run].concat()).ok();
    place
}

/// Rows of a CSV without quotes inside its fields, by the names of its columns.
fn csv(place: &Place, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = String::from_utf8(bytes(&place.path("out").join(name))).unwrap();
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let fields = |line: &str| -> Vec<String> {
        let mut inside = false;
        let is_end = |c: char| {
            inside ^= c == '"';
            c == ',' && !inside
        };
        line.split(is_end).map(|field| field.trim_matches('"').to_owned()).collect()
    };
    let row = |line| heads.iter().map(|head| (*head).to_owned()).zip(fields(line)).collect();
    lines.map(row).collect()
}

#[test]
fn every_figure_has_its_files_and_shows_the_numbers_of_the_tables() {
    let place = chosen();
    let folder = place.path("out");
    let report = String::from_utf8(bytes(&folder.join("report_details.md"))).unwrap();
    for name in FIGURES {
        let file = |ending: &str| bytes(&folder.join(format!("{name}.{ending}")));
        let svg = String::from_utf8(file("svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        assert!(file("png").starts_with(b"\x89PNG") && file("png").len() > 5_000, "{name}");
        let spec: Value = serde_json::from_slice(&file("vl.json")).unwrap();
        assert_eq!(spec["data"]["url"], format!("{name}.csv"), "{name}");
        assert!(csv(&place, &format!("{name}.csv")).len() > 3, "{name}");
        assert!(report.contains(&format!("({name}.svg)")), "{name}");
    }

    let (rows, _) = read_table::<Correlations>(&folder.join("correlations.parquet")).unwrap();
    let (by_trace, _) = read_table::<CorrelationsByTrace>(&folder.join("correlations_by_trace.parquet")).unwrap();
    let near = |text: &str, want: f64| assert!((text.parse::<f64>().unwrap() - want).abs() < 1e-12, "{text} {want}");
    let mut n_points = 0;
    for point in csv(&place, "figure_bands.csv") {
        let smoothing = point["panel"].strip_prefix("hs_l2, ").unwrap();
        let is = |r: &&Correlations| {
            (r.signal.as_str(), r.smoothing.as_str(), r.scope.as_str()) == ("hs_l2", smoothing, "pooled")
                && r.layer == point["layer"].parse().ok()
        };
        let row = rows.iter().find(is).unwrap();
        near(&point["y"], row.rho.unwrap());
        near(&point["ribbon_lo"], row.ci_lo.unwrap());
        near(&point["whisker_hi"], row.boot_hi.unwrap());
        n_points += 1;
    }
    assert_eq!(n_points, 2 * 4, "two smoothers at four layers");
    for point in csv(&place, "figure_trend.csv") {
        let layer = point["layer"].parse().ok();
        let own = by_trace
            .iter()
            .filter(|r| (r.signal.as_str(), r.smoothing.as_str(), r.layer) == (point["line"].as_str(), "raw", layer));
        let trends: Vec<f64> = own.filter_map(|r| r.rho_pos).collect();
        assert_eq!(trends.len(), 5);
        near(&point["y"], trends.iter().sum::<f64>() / 5.0);
    }
    let (selection, _) = read_table::<Selection>(&folder.join("selection.parquet")).unwrap();
    for cell in csv(&place, "figure_pairs.csv") {
        let layer = |key: &str| cell[key].parse::<i16>().ok();
        let is = |r: &&Selection| {
            (r.layer_plus, r.layer_minus) == (layer("row"), layer("column"))
                && matches!(r.kind.as_str(), "layer" | "pair")
        };
        match selection.iter().find(is) {
            Some(row) => {
                near(&cell["value"], row.auc.unwrap());
                assert_eq!(cell["marked"].contains("picked"), row.picked, "{cell:?}");
            }
            None => assert_eq!(cell["value"], "", "{cell:?}"),
        }
    }
}

#[test]
fn layers_are_taken_from_a_choice_on_other_problems() {
    let place = chosen();
    let (rows, _) = read_table::<Selection>(&place.path("out").join("selection.parquet")).unwrap();
    let picked = rows.iter().find(|row| row.picked).unwrap();
    let score = match (picked.layer_plus, picked.layer_minus) {
        (Some(a), Some(b)) => format!("epikv({a}+{b})"),
        (Some(a), None) => format!("layer({a})"),
        (_, b) => format!("layer(-{})", b.unwrap()),
    };
    place.write("other.jsonl", "{\"id\": \"q\", \"problem\": \"2+2?\", \"answer\": \"4\"}\n");
    let run = |out: &str, problems: &str, policies: &str, from: &str| {
        let usual = ["evict", "--prompt-style", "plain", "--max-new", "40", "--quiet", "--budgets", "16"];
        let own = ["--problems", problems, "--policies", policies, "--layers-from", from, "--out", out];
        place.epikv(&[&usual[..], &own].concat())
    };
    let from = "out/selection.parquet";
    run("evicted", "other.jsonl", "window,epikv", from).ok();
    let (runs, _) = read_table::<EvictionRun>(&place.path("evicted").join("eviction_runs.parquet")).unwrap();
    let policies: Vec<&str> = runs.iter().map(|row| row.policy.as_str()).collect();
    assert!(policies.iter().any(|policy| policy.contains(&score)), "{score}: {policies:?}");
    assert!(runs.iter().all(|row| row.n_evictions.is_none_or(|n| row.budget.is_none() || n > 0)));
    // One of the problems that the layers were chosen on is among these.
    let both = format!("{}\n{}", "{\"id\": \"p3\", \"problem\": \"3+3?\"}", "{\"id\": \"q\", \"problem\": \"2+2?\"}");
    place.write("both.jsonl", both);
    let words = ["expected layers chosen on other problems, got 1 problems", "(p3)", "hint: layers look better"];
    run("refused", "both.jsonl", "epikv", from).refused(&words);
    run("refused", "other.jsonl", "window", from).refused(&["expected a policy that takes layers"]);
    let plain = ["--signals", "hs_l2", "--smooth", "raw", "--no-random-weights", "--out", "plain"];
    place.epikv(&[CORRELATE, &plain].concat()).ok();
    run("refused", "other.jsonl", "epikv", "plain/selection.parquet").refused(&["correlate with --pick"]);
    assert!(!place.path("refused").join("eviction_runs.parquet").exists());
}
