//! One line for each kind of answer and each rule, with the verdict in strict and in lenient mode.

use std::path::Path;

use epikv_grader::{Mode, compare};

#[test]
fn kinds_have_fixed_verdicts() -> Result<(), Box<dyn std::error::Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kinds.txt");
    let mut wrong = Vec::new();
    for line in std::fs::read_to_string(path)?.lines().filter(|line| !line.starts_with("# ")) {
        let parts: Vec<&str> = line.split(" ## ").collect();
        let [a, b, strict, lenient] = parts.as_slice() else {
            return Err(format!("not four parts: {line}").into());
        };
        for (mode, want) in [(Mode::Strict, strict), (Mode::Lenient, lenient)] {
            let comparison = compare(a, b, mode);
            if comparison.verdict.name() != *want {
                wrong.push(format!("{mode}: {line}\n   {}: {}", comparison.verdict, comparison.explanation));
            }
            if compare(b, a, mode) != comparison {
                wrong.push(format!("{mode}: not symmetric: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
