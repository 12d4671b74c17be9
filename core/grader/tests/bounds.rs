//! Bounded work: hostile answers return, the same from both sides, and nothing overflows the stack. How quickly they
//! return is measured by `cargo run --release --example hostile`.

#[path = "support/hostile.rs"]
mod hostile;

use epikv_grader::{BoxStream, Mode, Verdict, compare, extract, last_box};

#[test]
fn hostile_answers_return() {
    for (a, b) in hostile::pairs() {
        let head: String = a.chars().take(24).collect();
        for mode in [Mode::Strict, Mode::Lenient] {
            assert_eq!(compare(&a, &b, mode), compare(&b, &a, mode), "{head}");
            assert!(compare(&a, &a, mode).verdict.is_same(), "{head}");
            drop(extract(&a, mode));
        }
        assert!(last_box(&a).is_none(), "{head}");
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
