//! Sentences of each kind, with what their answer is and what it is not.

use std::path::Path;

use epikv_grader::{Mode, compare, extract};

#[test]
fn answers_are_found_whole() -> Result<(), Box<dyn std::error::Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prose.txt");
    let mut wrong = Vec::new();
    for line in std::fs::read_to_string(path)?.lines().skip(1) {
        let parts: Vec<&str> = line.rsplitn(3, " ## ").collect();
        let [want, gold, text] = parts.as_slice() else {
            return Err(format!("not three parts: {line}").into());
        };
        let text = text.replace("\\n", "\n");
        let found = extract(&text, Mode::Lenient);
        let answer = found.as_ref().map_or("", |found| found.answer.as_ref());
        let comparison = compare(answer, gold, Mode::Lenient);
        if comparison.verdict.is_same() != (*want == "same") {
            wrong.push(format!("{line}\n   {answer:?}: {}: {}", comparison.verdict, comparison.explanation));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn an_explanation_says_what_a_decimal_shows() {
    let said = |a: &str, b: &str, mode| compare(a, b, mode).explanation;
    assert!(said("0.3333", "1/3", Mode::Lenient).contains("rounded, to 4 figures, and lenient mode asks for 4"));
    let strict = said("0.3333", "1/3", Mode::Strict);
    assert!(strict.contains("rounded, to 4 figures, and strict mode asks for 6"), "{strict}");
    let far = said("0.3334", "1/3", Mode::Lenient);
    assert!(far.starts_with("the values differ ("), "{far}");
    let plain = said("1/2", "0.5", Mode::Strict);
    assert!(plain.starts_with("the values are equal"), "{plain}");
}
