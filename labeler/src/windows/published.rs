//! The answer match of the published labels, string for string: what is not equal after its clean-up is a flip.
//!
//! ```text
//! answer    the last \boxed{..} of the new text, with one level of braces inside; none is a flip
//! clean(s)  trim; \dfrac -> \frac; \left and \right go before a bracket; \text{X} -> X; a leading `x=` goes; lower case;
//!           spaces and commas go
//! match     clean(a) = clean(b), or the sorted clean parts between commas are the same
//! ```
//!
//! It is known to be wrong both ways: `90` is not `90^\circ`, and `1,2` is `12`.
//!
//! # References
//! The code of `EpiKV`'s authors (arXiv 2606.26472).

/// The content of the last box that has at most one level of braces inside.
pub(crate) fn last_box(text: &str) -> Option<&str> {
    const BOX: &str = r"\boxed{";
    let (mut found, mut from) = (None, 0);
    while let Some(at) = text[from..].find(BOX) {
        let start = from + at + BOX.len();
        if let Some(length) = closed(&text[start..]) {
            found = Some(&text[start..start + length]);
            from = start + length + 1;
        } else {
            from = start;
        }
    }
    found
}

/// The place of the brace that closes a box, where nothing inside is nested twice.
fn closed(text: &str) -> Option<usize> {
    let mut inside = false;
    for (at, letter) in text.char_indices() {
        match (letter, inside) {
            ('{', false) => inside = true,
            ('{', true) => return None,
            ('}', true) => inside = false,
            ('}', false) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether two answers match.
pub(crate) fn matches(answer: &str, reference: &str) -> bool {
    let parts = |text: &str| {
        let mut parts: Vec<String> = text.split(',').map(clean).collect();
        parts.sort_unstable();
        parts
    };
    clean(answer) == clean(reference) || parts(answer) == parts(reference)
}

fn clean(text: &str) -> String {
    let mut text = text.trim().replace(r"\dfrac", r"\frac");
    for word in [r"\left", r"\right"] {
        for bracket in ["(", ")", "[", "]", r"\{", r"\}", "{", "}"] {
            text = text.replace(&format!("{word}{bracket}"), bracket);
        }
    }
    while let Some(start) = text.find(r"\text{") {
        let Some(length) = text[start..].find('}') else { break };
        let inside = text[start + r"\text{".len()..start + length].to_owned();
        text.replace_range(start..=start + length, &inside);
    }
    let mut letters = text.chars();
    if let (Some(letter), rest) = (letters.next(), letters.as_str().trim_start())
        && letter.is_ascii_alphabetic()
        && let Some(rest) = rest.strip_prefix('=')
    {
        text = rest.to_owned();
    }
    text.to_lowercase().chars().filter(|letter| !letter.is_whitespace() && *letter != ',').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_box_has_one_level_of_braces() {
        for (text, answer) in [
            (r"so \boxed{4} wait \boxed{5}", Some("5")),
            (r"\boxed{\frac{1}{2}}", Some(r"\frac{1}{2}")),
            (r"\boxed{4} and \boxed{\frac{\sqrt{2}}{2}}", Some("4")),
            (r"\boxed{4} and \boxed{5", Some("4")),
            (r"\boxed{\boxed{7}}", Some(r"\boxed{7}")),
            ("the answer is 4", None),
        ] {
            assert_eq!(last_box(text), answer, "{text}");
        }
    }

    #[test]
    fn answers_match_as_they_did() {
        for (a, b) in [
            (r"\dfrac{1}{2}", r"\frac{1}{2}"),
            (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})"),
            (r"\text{Evelyn}", "evelyn"),
            ("x = 5", "5"),
            ("1,2", "12"),
            ("2, 1", "1,2"),
        ] {
            assert!(matches(a, b), "{a} {b}");
        }
        for (a, b) in [("90", r"90^\circ"), (r"11\sqrt{2}", r"11\sqrt2"), ("0.5", r"\frac{1}{2}"), ("xy=5", "5")] {
            assert!(!matches(a, b), "{a} {b}");
        }
    }
}
