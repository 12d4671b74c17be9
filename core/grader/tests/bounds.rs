//! Bounded work: hostile answers return, the same from both sides, and nothing overflows the stack. How quickly they
//! return is measured by `cargo run --release -p epikv-grader --example hostile`.

#[path = "support/hostile.rs"]
mod hostile;

use std::time::{Duration, Instant};

use epikv_grader::{BoxStream, Mode, Reason, Verdict, compare, extract, last_box};

/// Far more than the goal of 10 ms, for slow and busy machines; work that doubles or is squared takes longer still.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn hostile_answers_return() {
    for (a, b) in hostile::pairs() {
        let head: String = a.chars().take(24).collect();
        let start = Instant::now();
        for mode in [Mode::Strict, Mode::Lenient] {
            assert_eq!(compare(&a, &b, mode), compare(&b, &a, mode), "{head}");
            assert!(compare(&a, &a, mode).verdict.is_same(), "{head}");
            drop(extract(&a, mode));
        }
        assert!(last_box(&a).is_none(), "{head}");
        assert!(!BoxStream::new().push(&a), "{head}");
        assert!(start.elapsed() < PATIENCE, "{head}: {:?}", start.elapsed());
    }
}

#[test]
fn long_texts_are_searched_once() {
    let boxes: Vec<String> = (0..200_000).map(|n| format!("\\boxed{{{n}}}")).collect();
    let texts = ["\\(".repeat(500_000), "\\[ x".repeat(300_000), "\\".repeat(1_000_000), boxes.join(", ")];
    for text in texts {
        let head: String = text.chars().take(24).collect();
        let start = Instant::now();
        drop(extract(&text, Mode::Lenient));
        BoxStream::new().push(&text);
        assert!(start.elapsed() < PATIENCE, "{head}: {:?}", start.elapsed());
    }
}

#[test]
fn powers_of_matrices_are_worked_out() {
    let matrix = |inner: &str| format!("\\begin{{pmatrix}}{inner}\\end{{pmatrix}}");
    let power = matrix("1&1\\\\1&0") + "^{16}";
    for (other, want) in [("1597&987\\\\987&610", true), ("1597&987\\\\987&611", false)] {
        assert_eq!(compare(&power, &matrix(other), Mode::Strict).verdict.is_same(), want, "{other}");
    }
    let unknown = compare(&(matrix("x&1\\\\1&0") + "^{16}"), &matrix("x&y\\\\y&z"), Mode::Strict);
    assert_eq!(unknown.verdict, Verdict::Unsure(Reason::TooLarge));
}

#[test]
fn values_too_large_to_write_are_not_called_equal() {
    for (a, b) in [
        ("9^{9^{9^9}}", "9^{9^{9^8}}"),
        ("7^{7^{7}}", "7^{7^{7}}+1"),
        ("10^{10^{10}}!", "3"),
        (r"\frac{1}{2006!}", r"\frac{1}{2004!}"),
        ("1/2^{99}", "1/2^{98}"),
        ("1 - 10^{-90}", "1"),
    ] {
        assert!(!compare(a, b, Mode::Lenient).verdict.is_same(), "{a} and {b}");
    }
    assert_eq!(compare("2^{100000} * 3", "6 * 2^{99999}", Mode::Strict).verdict, Verdict::SameOtherForm);
}
