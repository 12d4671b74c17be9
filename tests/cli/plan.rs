//! `epikv plan`.

use serde_json::Value;

use crate::support::{Place, bytes};

#[test]
fn the_paper_s_figure_and_its_formula_are_printed() {
    let place = Place::new();
    let text = place.epikv(&["plan"]).ok().stdout();
    assert!(
        text.contains("requests = floor((0.9 x 80 GiB - 16.00 GiB) / (tokens x 131072 B))   basis=projected"),
        "{text}"
    );
    assert!(text.contains("| 2048 | 0.250 | 224 |") && text.contains("| 32768 | 4.000 | 14 |"), "{text}");
    let json: Value = serde_json::from_str(&place.epikv(&["plan", "--json"]).ok().stdout()).unwrap();
    let requests: Vec<_> = json["rows"].as_array().unwrap().iter().map(|row| row["requests"].as_u64()).collect();
    assert_eq!(requests, [Some(224), Some(14)]);
}

#[test]
fn figures_say_what_was_measured() {
    let place = Place::new();
    place.epikv(&["plan", "--out", "p"]).ok();
    let svg = |name: &str| String::from_utf8(bytes(&place.path("p").join(name))).unwrap();
    assert!(
        svg("figure_concurrency.svg").contains("basis=projected") && svg("figure_prefill.svg").contains(">device<")
    );
    assert!(svg("figure_concurrency.csv").contains(",2048,224,,"), "{}", svg("figure_concurrency.csv"));
    assert!(epikv_schemas::Manifest::open(&place.path("p")).unwrap().verify().is_ok());
    assert!(place.epikv(&["plan", "--out", "p"]).ok().stderr().contains("nothing to do"));
    place.epikv(&["plan", "--out", "p", "--tokens", "64"]).refused(&["exists already", "hint: --fresh"]);

    let model = ["plan", "--model", "random:0,layers=2,context=512", "--tokens", "64,256", "--value-bytes", "4"];
    let measured = [&model[..], &["--measure", "64,256", "--json", "--out", "q"]].concat();
    let json: Value = serde_json::from_str(&place.epikv(&measured).ok().stdout()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let attention = |basis: &str| {
        let rows = rows.iter().filter(|row| row["basis"] == basis);
        rows.map(|row| row["explicit_attention_bytes"].as_f64()).collect::<Vec<_>>()
    };
    assert_eq!(attention("measured"), attention("projected"), "and so are the matrices");
    let of = |basis: &str| {
        rows.iter().filter(|row| row["basis"] == basis).map(|row| row["kv_bytes"].as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(of("measured"), of("projected"), "keys and values are counted on the cache");
    let csv = String::from_utf8(bytes(&place.path("q").join("figure_prefill.csv"))).unwrap();
    assert!(csv.contains("\"KV, measured\",256,"), "{csv}");
    place.epikv(&[&model[..], &["--measure", "1000"]].concat()).refused(&["--measure 1000: expected at most 512"]);
    for size in ["1e300", "inf", "NaN", "0", "1048577"] {
        place
            .epikv(&["plan", "--device-gib", size])
            .refused(&["--device-gib: expected a size above 0 and up to 1048576"]);
    }
    let halves = ["plan", "--model", "random:0", "--measure", "8"];
    place.epikv(&halves).refused(&["expected --value-bytes 4"]);
}
