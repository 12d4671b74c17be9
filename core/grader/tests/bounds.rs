//! Bounded work: hostile answers return quickly, and nothing overflows the stack.

use std::time::{Duration, Instant};

use epikv_grader::{BoxStream, Mode, Verdict, compare, extract, last_box};

/// Ten times what is promised, since other programs may be running.
const LIMIT: Duration = Duration::from_millis(100);

fn hostile() -> Vec<(String, String)> {
    let one = || "1".to_owned();
    let nested = |open: &str, inner: &str, close: &str, n: usize| open.repeat(n) + inner + &close.repeat(n);
    vec![
        ("{".repeat(1_000_000), one()),
        ("{".repeat(1_000_000), "}".repeat(1_000_000)),
        ("\\boxed{".repeat(140_000), one()),
        ("$".repeat(1_000_000), one()),
        ("\\".repeat(8_000), one()),
        ("(".repeat(8_000), one()),
        ("|".repeat(8_000), one()),
        ("-".repeat(2_000) + "1", one()),
        ("9^{9^{9^9}}".to_owned(), "9^{9^{9^8}}".to_owned()),
        ("10^{10^{10}}!".to_owned(), "10^{10^{10}}".to_owned()),
        (nested("\\frac{1}{", "1", "}", 600), one()),
        (nested("\\frac{1}{1+", "1", "}", 30), one()),
        (nested("\\sqrt{2+", "2", "}", 30), "2".to_owned()),
        (nested("\\{", "1", "\\}", 1_000), one()),
        ("1".repeat(6_000), "2".repeat(6_000)),
        ("1".repeat(3_000) + "/" + &"7".repeat(3_000), "1/7".to_owned()),
        ("1".to_owned() + &"!".repeat(1_000), one()),
        ("8000!/7999!".to_owned(), "8000".to_owned()),
        ("2000!".repeat(300), one()),
        ("99^{9999}".repeat(200), one()),
        ("\\sin(x)+".repeat(200) + "1", "1+".to_owned() + &"\\sin(x)+".repeat(199) + "\\sin x"),
        ("1,".repeat(1_000) + "1", "2,".repeat(1_000) + "1"),
        ("\\begin{pmatrix}".repeat(400), one()),
        ("\\text{".repeat(1_000), one()),
        ("x_".repeat(1_000), one()),
        ("1/0".to_owned(), "2/0".to_owned()),
        ("x^{x^{x^x}}".to_owned(), "x^{x^{x^{x+1}}}".to_owned()),
        ("\u{202e}\u{200f}7".to_owned(), "7".to_owned()),
    ]
}

/// The least of three runs.
fn fastest(mut run: impl FnMut()) -> Duration {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..3).map(|_| time(&mut run)).min().unwrap_or_default()
}

#[test]
fn hostile_answers_return_quickly() {
    for (a, b) in hostile() {
        let head: String = a.chars().take(24).collect();
        for mode in [Mode::Strict, Mode::Lenient] {
            let spent = fastest(|| {
                let there = compare(&a, &b, mode);
                assert_eq!(there, compare(&b, &a, mode), "{head}");
            });
            assert!(spent < 2 * LIMIT, "{head}: {spent:?}");
            assert!(compare(&a, &a, mode).verdict.is_same(), "{head}");
            let spent = fastest(|| drop((extract(&a, mode), last_box(&a).map(str::len))));
            assert!(spent < LIMIT, "extracting from {head}: {spent:?}");
        }
        assert!(!BoxStream::new().push(&a), "{head}");
    }
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
