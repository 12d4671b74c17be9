//! Properties that hold for any input, and the mutations that a grader must see or see through.

use epikv_grader::{BoxStream, Mode, Verdict, compare, extract, last_box};
use proptest::prelude::*;

const MODES: [Mode; 2] = [Mode::Strict, Mode::Lenient];

/// Answers of the kinds that occur, by a small grammar.
fn answer() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (-2000i64..2000).prop_map(|n| n.to_string()),
        (0u32..100, 0u32..100).prop_map(|(a, b)| format!("{a}.{b}")),
        (1u32..20, 1u32..20).prop_map(|(a, b)| format!("\\frac{{{a}}}{{{b}}}")),
        (1u32..20).prop_map(|a| format!("\\sqrt{{{a}}}")),
        Just("\\pi".to_owned()),
        Just("x".to_owned()),
        Just("\\infty".to_owned()),
    ];
    let expression = (number.clone(), prop_oneof![Just("+"), Just("-"), Just("\\cdot "), Just("^")], number)
        .prop_map(|(a, op, b)| format!("{a}{op}{{{b}}}"));
    let item = expression.boxed();
    prop_oneof![
        item.clone(),
        (item.clone(), item.clone()).prop_map(|(a, b)| format!("({a}, {b})")),
        (item.clone(), item.clone()).prop_map(|(a, b)| format!("[{a}, {b})")),
        (item.clone(), item.clone()).prop_map(|(a, b)| format!("\\{{{a}, {b}\\}}")),
        (item.clone(), item.clone()).prop_map(|(a, b)| format!("{a}, {b}")),
        item.clone().prop_map(|a| format!("x = {a}")),
        item.clone().prop_map(|a| format!("x \\le {a}")),
        item.clone().prop_map(|a| format!("{a} \\text{{ cm}}")),
        item.prop_map(|a| format!("\\pm {a}")),
    ]
}

/// Text made of the pieces that the lexer looks for.
fn noise() -> impl Strategy<Value = String> {
    let pieces = [
        "\\frac",
        "\\sqrt",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "\\{",
        "\\}",
        "1",
        "2.5",
        "x",
        "\\boxed",
        "\\fbox",
        "$",
        "\\text{a}",
        ",",
        ";",
        "\\begin{pmatrix}",
        "\\end{pmatrix}",
        "\\\\",
        "&",
        "^",
        "_",
        "!",
        "|",
        "\\left",
        "\\right.",
        "%",
        "\\pm",
        "=",
        "<",
        "\\cup",
        "\\in",
        ":",
        "°",
        "½",
        "²",
        "-",
        "+",
        "/",
        "*",
        " ",
        "and",
        "####",
        "answer is",
        "\\log",
        "\\sin",
        "e",
        "i",
        "\\mathbb{R}",
        "'",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn never_panics_on_text(a in ".{0,60}", b in ".{0,60}") {
        for mode in MODES {
            prop_assert_eq!(compare(&a, &b, mode), compare(&b, &a, mode));
            prop_assert!(compare(&a, &a, mode).verdict.is_same());
            let _ = extract(&a, mode);
        }
    }

    #[test]
    fn never_panics_on_noise(a in noise(), b in noise()) {
        for mode in MODES {
            prop_assert_eq!(compare(&a, &b, mode), compare(&b, &a, mode));
            prop_assert_eq!(compare(&a, &a, mode).verdict, Verdict::Same);
            let _ = extract(&a, mode);
        }
        prop_assert!(last_box(&a).is_none_or(|content| a.contains(content)));
    }

    #[test]
    fn spacing_and_bracket_size_do_not_matter(a in answer()) {
        let sized = a.replace('(', "\\left(").replace(')', "\\right) ").replace("\\frac", "\\dfrac");
        let spaced = a.replace('+', " + ").replace(',', ", ").replace('=', "  =\\, ");
        for mode in MODES {
            prop_assert!(compare(&a, &spaced, mode).verdict.is_same(), "{} / {}", a, spaced);
            // `[a, b)` sized on one side only is not balanced LaTeX.
            if !a.contains('[') {
                prop_assert!(compare(&a, &sized, mode).verdict.is_same(), "{} / {}", a, sized);
            }
        }
    }

    #[test]
    fn boxes_are_found_again(a in answer(), before in "[a-z ]{0,20}", size in 1usize..9) {
        let text = format!("{before}\\boxed{{{a}}}. Done");
        prop_assert_eq!(last_box(&text), Some(a.trim()));
        let mut watch = BoxStream::new();
        let chars: Vec<char> = text.chars().collect();
        let closed = chars.chunks(size).any(|piece| watch.push(&piece.iter().collect::<String>()));
        prop_assert!(closed);
        let cut = &text[..text.len() - "}. Done".len()];
        prop_assert_eq!(last_box(cut), None);
        prop_assert!(!BoxStream::new().push(cut));
    }

    #[test]
    fn different_integers_differ(a in -1_000_000i64..1_000_000, step in 1i64..1000) {
        for mode in MODES {
            prop_assert_eq!(compare(&a.to_string(), &(a + step).to_string(), mode).verdict, Verdict::Different);
        }
    }
}

/// Each mutation of an answer, and whether it leaves the answer the same in strict and in lenient mode.
#[test]
fn mutations_have_fixed_verdicts() {
    let cases = [
        ("025", "25", true, true),
        (r"\dfrac{14}{3}", r"\frac{14}{3}", true, true),
        ("70,000", "70000", true, true),
        (r"70{,}000", "70000", true, true),
        (r"90^\circ", "90", false, true),
        (r"15\mbox{ cm}^2", "15", false, true),
        (r"\$18.90", "18.90", false, true),
        ("[-2,7)", "[-2,7]", false, false),
        ("(-2,7)", "[-2,7)", false, false),
        ("4, 6, 14, 15", "15, 14, 6, 4", false, true),
        (r"\{4, 6\}", r"\{6, 4\}", true, true),
        ("(4, 6)", "(6, 4)", false, false),
        ("2516_9", "2516_8", false, false),
        ("2516_9", "2516", false, false),
        (r"\frac{1{2}", r"\frac{1}{2}", false, false),
        ("10001", "10000", false, false),
        ("50", "0.5", false, false),
        (r"10\%", "10", false, true),
        (r"50\%", "0.5", true, true),
        ("x = 5", "5", true, true),
        ("0.5", "1/2", true, true),
        ("evelyn", r"\text{Evelyn}", true, true),
        ("4.667", r"\frac{14}{3}", false, true),
        ("0.3333333333", r"\frac13", true, true),
    ];
    for (a, b, strict, lenient) in cases {
        assert_eq!(compare(a, b, Mode::Strict).verdict.is_same(), strict, "strict: {a} and {b}");
        assert_eq!(compare(a, b, Mode::Lenient).verdict.is_same(), lenient, "lenient: {a} and {b}");
    }
}
