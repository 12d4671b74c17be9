//! Classes of tokens, by their text.

epikv_words::words! {
    /// A class of tokens. The first that fits, in this order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TokenClass {
        /// A line break, alone or with what stands around it.
        Newline = "newline",
        /// Digits and nothing else.
        Digit = "digit",
        /// Signs of calculation and comparison, such as `+`, `=` or `<=`.
        Operator = "operator",
        /// A single letter; the English words a and I are among them.
        Variable = "variable",
        /// A word that steers the reasoning, such as wait, so or check. A word that the tokenizer cuts is not found.
        Discourse = "discourse",
        /// All else.
        Other = "other",
    }
}

const OPERATORS: &str =
    "+-*/=<>^%\u{d7}\u{f7}\u{b1}\u{b7}\u{2212}\u{2260}\u{2264}\u{2265}\u{2248}\u{21d2}\u{2192}\u{221a}";

const MARKERS: &[&str] = &[
    "actually",
    "again",
    "also",
    "alternatively",
    "because",
    "but",
    "check",
    "finally",
    "first",
    "hence",
    "hmm",
    "however",
    "let",
    "maybe",
    "next",
    "no",
    "now",
    "oh",
    "ok",
    "okay",
    "perhaps",
    "since",
    "so",
    "then",
    "therefore",
    "thus",
    "wait",
    "yes",
];

impl TokenClass {
    /// The class of a token's text. Spaces around it and capitals do not matter.
    pub fn of(text: &str) -> Self {
        if text.contains('\n') {
            return Self::Newline;
        }
        let text = text.trim();
        let all = |is: fn(char) -> bool| !text.is_empty() && text.chars().all(is);
        if all(|c| c.is_ascii_digit()) {
            Self::Digit
        } else if all(|c| OPERATORS.contains(c)) {
            Self::Operator
        } else if all(char::is_alphabetic) && text.chars().count() == 1 {
            Self::Variable
        } else if MARKERS.contains(&text.to_lowercase().as_str()) {
            Self::Discourse
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_texts() {
        let cases = [
            (TokenClass::Newline, &["\n", ".\n\n", " \n"][..]),
            (TokenClass::Digit, &["7", " 12", "\u{20}0"]),
            (TokenClass::Operator, &["+", " =", "<=", "\u{d7}", " \u{2212}"]),
            (TokenClass::Variable, &["x", " Y", "\u{3b1}"]),
            (TokenClass::Discourse, &["Wait", " so", "HMM"]),
            (TokenClass::Other, &["", " ", "the", "7a", ".", "wait,", "\\", "</think>"]),
        ];
        for (class, texts) in cases {
            for text in texts {
                assert_eq!(TokenClass::of(text), class, "{text:?}");
            }
        }
        assert!(MARKERS.is_sorted() && TokenClass::ALL.is_sorted());
    }
}
