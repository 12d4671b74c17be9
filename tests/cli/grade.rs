//! `epikv grade` and `epikv doctor`.

use crate::support::Place;

#[test]
fn two_answers_are_compared() {
    let place = Place::new();
    let said = |args: &[&str]| place.epikv(&[&["grade"], args].concat()).ok().stdout();
    assert_eq!(said(&["1/2", "0.5"]), "same_other_form\n");
    assert_eq!(said(&["[-2,7)", "[-2,7]"]), "different\n");
    assert_eq!(said(&["-x+1", "1-x", "--strict"]), "same_other_form\n", "a minus sign is no flag");
    assert!(said(&["5", r"5\text{ cm}", "--strict", "--explain"]).contains("unit"));
    let object: serde_json::Value = serde_json::from_str(&said(&["9^{9^{9^9}}", "9^{9^{9^8}}", "--json"])).unwrap();
    assert_eq!((&object["verdict"], &object["reason"]), (&"unsure".into(), &"too_large".into()));
    assert_eq!((&object["mode"], &object["grader"]), (&"lenient".into(), &env!("CARGO_PKG_VERSION").into()));
    let text = r"First \boxed{3}. Wait, \boxed{4}";
    assert_eq!(said(&[text, "4", "--text", "--strict"]), "same\n");
    assert_eq!(said(&[r"so \boxed{4} wait \boxed{5", "4", "--text"]), "no_answer\n");
}

#[test]
fn a_file_of_pairs_is_tabled_by_category() {
    let place = Place::new();
    place.write(
        "pairs.jsonl",
        concat!(
            r#"{"pred": "1/2", "gold": "0.5", "equal": true, "category": "number"}"#,
            "\n\n",
            r#"{"pred": "3", "gold": "4", "equal": true, "category": "number"}"#,
            "\n",
            r#"{"pred": "so \\boxed{7}", "gold": "7", "equal": false, "category": "text", "kind": "extract"}"#,
            "\n",
            r#"{"pred": "C(5,2)", "gold": "10"}"#,
            "\n",
        ),
    );
    let told = place.epikv(&["grade", "--file", "pairs.jsonl", "--json"]).ok().stdout();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let figures = |row: &serde_json::Value| {
        ["n_pairs", "n_expected", "right", "false_same", "missed_same", "unsure"].map(|key| row[key].as_u64().unwrap())
    };
    assert_eq!(figures(&told["categories"]["number"]), [2, 2, 1, 0, 1, 0]);
    assert_eq!(figures(&told["categories"]["text"]), [1, 1, 0, 1, 0, 0]);
    assert_eq!(figures(&told["all"]), [4, 3, 1, 1, 1, 1]);
    assert!(told["pairs_per_s"].as_f64().unwrap() > 0.0);
    let table = place.epikv(&["grade", "--file", "pairs.jsonl", "--explain"]).ok().stdout();
    assert!(table.contains("missed same") && table.contains("line 3: different"), "{table}");
}

#[test]
fn what_is_no_pair_is_refused() {
    let place = Place::new();
    place.write("pairs.jsonl", "{\"pred\": \"1\", \"gold\": \"1\"}\n{\"pred\": \"1\"}\n");
    place.epikv(&["grade", "--file", "pairs.jsonl"]).refused(&["pairs.jsonl, line 2", "`gold`", "hint: each line"]);
    place.epikv(&["grade", "--file", "none.jsonl"]).refused(&["none.jsonl", "hint:"]);
    place.write("pairs.jsonl", "\n");
    place
        .epikv(&["grade", "--file", "pairs.jsonl"])
        .refused(&["pairs.jsonl: expected pairs of answers, got none", "hint:"]);
    place.write("pairs.jsonl", b"{\"pred\": \"\xff\", \"gold\": \"1\"}");
    place.epikv(&["grade", "--file", "pairs.jsonl"]).refused(&["UTF-8"]);
    assert_eq!(place.epikv(&["grade", "1"]).code(), 2);
}

#[test]
fn the_doctor_checks_golds() {
    let place = Place::new();
    place.problems();
    let told = place.epikv(&["doctor", "--problems", "problems.jsonl", "--json"]).ok().stdout();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["checks_ok"], true, "{told}");
    assert!(told["checks"].as_array().unwrap().iter().any(|check| check["figure"] == "2 of 2"), "{told}");
    assert!(place.epikv(&["doctor"]).ok().stdout().contains("built-in model"));
}
