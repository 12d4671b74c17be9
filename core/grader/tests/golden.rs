//! The case lines: pairs of answers and texts to extract from, with the verdict that mathematics gives.

use std::collections::BTreeMap;
use std::path::Path;

use epikv_grader::{Mode, compare, extract};
use serde_json::Value;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// One line of the case file.
struct Case {
    number: usize,
    pred: String,
    gold: String,
    equal: bool,
    extract: bool,
    tier: String,
}

fn cases() -> Result<Vec<Case>, Box<dyn std::error::Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/grading.jsonl");
    let mut cases = Vec::new();
    for (number, line) in std::fs::read_to_string(path)?.lines().enumerate() {
        let row: Value = serde_json::from_str(line)?;
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        cases.push(Case {
            number,
            pred: text("pred"),
            gold: text("gold"),
            equal: row["equal"].as_bool().unwrap_or_default(),
            extract: text("kind") == "extract",
            tier: text("tier"),
        });
    }
    Ok(cases)
}

/// What the grader says, and in which words.
fn graded(case: &Case, mode: Mode) -> (bool, String) {
    if !case.extract {
        let comparison = compare(&case.pred, &case.gold, mode);
        return (comparison.verdict.is_same(), format!("{}: {}", comparison.verdict, comparison.explanation));
    }
    let Some(found) = extract(&case.pred, mode) else {
        return (false, "nothing found".to_owned());
    };
    let comparison = compare(&found.answer, &case.gold, mode);
    (
        comparison.verdict.is_same(),
        format!("{:?} by {}: {}: {}", found.answer, found.rule.name(), comparison.verdict, comparison.explanation),
    )
}

/// Convention lines that neither mode follows, by line number, with the reason.
const NOT_FOLLOWED: [(usize, &str); 1] = [(192, "0.33 for 1/3: four figures are asked for")];

#[test]
fn case_lines_are_right() -> Outcome {
    let mut table: BTreeMap<(String, bool), (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in cases()? {
        let (lenient, how) = graded(&case, Mode::Lenient);
        let (strict, strict_how) = graded(&case, Mode::Strict);
        // Conventions are followed in one of the two modes; the README says which.
        let convention = case.tier == "convention";
        let right = lenient == case.equal || (convention && strict == case.equal);
        let count = table.entry((case.tier.clone(), case.extract)).or_default();
        count.0 += usize::from(right);
        count.1 += 1;
        if !right && !NOT_FOLLOWED.iter().any(|(number, _)| *number == case.number) {
            wrong.push(format!(
                "{} {} want {}: {:?} | {:?}\n   lenient {how}\n   strict {strict_how}",
                case.number, case.tier, case.equal, case.pred, case.gold
            ));
        }
        // Strict is never laxer than lenient.
        if strict && !lenient && !convention {
            wrong.push(format!("{}: strict same, lenient not: {how} / {strict_how}", case.number));
        }
    }
    let table: Vec<String> = table
        .iter()
        .map(|((tier, extract), (right, all))| {
            format!("{tier} {}: {right}/{all}", if *extract { "extract" } else { "pair" })
        })
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", table.join("\n"), wrong.join("\n"));
    Ok(())
}

#[test]
fn case_lines_are_symmetric_and_reflexive() -> Outcome {
    for case in cases()? {
        for mode in [Mode::Strict, Mode::Lenient] {
            let there = compare(&case.pred, &case.gold, mode);
            assert_eq!(there, compare(&case.gold, &case.pred, mode), "line {}", case.number);
            for text in [&case.pred, &case.gold] {
                assert!(compare(text, text, mode).verdict.is_same(), "line {}", case.number);
            }
        }
    }
    Ok(())
}
