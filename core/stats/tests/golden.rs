//! Every golden case passes within its tolerance. The `source` of a case names the tool and version behind its numbers.

#[path = "support/cases.rs"]
mod cases;

#[test]
fn all_golden_cases_pass() {
    let text = include_str!("../../../tests/golden/stats.jsonl");
    let outcome = cases::run(text);
    assert!(outcome.failures.is_empty(), "{}", outcome.failures.join("\n"));
    assert_eq!(outcome.passed, 45);
}

#[test]
fn a_wrong_number_is_noticed() {
    let line = r#"{"id": "w", "function": "midrank", "inputs": {"x": [1, 2]}, "expected": {"ranks": [1.0, 2.1]}, "tolerance": {"abs": 1e-12, "rel": 0}}"#;
    let outcome = cases::run(line);
    assert_eq!((outcome.passed, outcome.failures.len()), (0, 1));
}
