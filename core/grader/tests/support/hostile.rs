//! Pairs made to cost time, memory or stack. Shared by the test of bounds and the example that measures them.

/// The pairs.
pub(crate) fn pairs() -> Vec<(String, String)> {
    let one = || "1".to_owned();
    let nested = |open: &str, inner: &str, close: &str, n: usize| open.repeat(n) + inner + &close.repeat(n);
    let matrix = |inner: &str| format!("\\begin{{matrix}}{inner}\\end{{matrix}}");
    let factorials = |from: u32| (from..from + 128).map(|n| format!("{n}!")).collect::<Vec<_>>().join(",");
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
        ("1.5e-10...".to_owned(), one()),
        ("9.3e-23\\ldots".to_owned(), one()),
        (nested("3\\frac{", "1", "}{2}", 45), one()),
        (matrix("1&2&3\\\\4&5&6\\\\7&8&9") + "^{16}", one()),
        (matrix("1&2&3\\\\4&5&6\\\\7&8&9") + "^{16}", matrix("x&2&3\\\\4&5&6\\\\7&8&9") + "^{16}"),
        (matrix("1&2\\\\3&4").repeat(200), matrix("x&2\\\\3&4").repeat(200)),
        (matrix("1/2&2/3\\\\3/5&4/7").repeat(100), matrix("1&2\\\\3&4")),
        (matrix(&"9&".repeat(500)) + &"+\\sin x".repeat(300), matrix("1")),
        ("(".to_owned() + &"x+".repeat(300) + "1)" + &matrix(&"9&".repeat(500)), matrix("1")),
        (factorials(3_870), factorials(3_740)),
        ("y=".to_owned() + &"1/x+".repeat(400) + "1", "x=".to_owned() + &"1/y+".repeat(400) + "y"),
    ]
}
