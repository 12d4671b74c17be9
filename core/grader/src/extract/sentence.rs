//! The value that a sentence begins with, and where the words about it start.

use crate::syntax::Func;

/// Words after a value that begin a clause about it and are no part of a unit.
const CLAUSES: [&str; 46] = [
    "because",
    "since",
    "as",
    "so",
    "which",
    "that",
    "when",
    "while",
    "if",
    "unless",
    "until",
    "after",
    "before",
    "from",
    "by",
    "at",
    "than",
    "see",
    "but",
    "not",
    "however",
    "he",
    "she",
    "it",
    "they",
    "we",
    "you",
    "i",
    "is",
    "are",
    "was",
    "were",
    "will",
    "would",
    "has",
    "have",
    "off",
    "due",
    "given",
    "thus",
    "therefore",
    "hence",
    "whereas",
    "assuming",
    "using",
    "according",
];

/// Words that give a reason, after an answer in words as well.
const REASONS: [&str; 4] = ["because", "since", "due", "whereas"];

/// Whether a sentence starts with a number, a formula, or a name and its value.
pub(super) fn begins_with_value(sentence: &str) -> bool {
    if sentence.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '\\' | '$' | '(' | '[' | '{' | '.' | '+'))
    {
        return true;
    }
    let mut words = sentence.split_whitespace();
    let first = words.next().unwrap_or_default();
    let formula =
        first.split(|c: char| !c.is_alphabetic()).all(|run| run.chars().count() < 2 || Func::by_name(run).is_some());
    let relation = |word: &str| word.starts_with(['=', '<', '>', '≤', '≥', '≈', '∈']);
    formula && (first.contains(['=', '<', '>', '≤', '≥', '^']) || words.next().is_some_and(relation))
}

/// The value that a sentence begins with: all of the sentence up to a clause about it, or to a remark in brackets.
pub(super) fn leading(sentence: &str) -> &str {
    let words: Vec<(usize, &str)> = spans(sentence).collect();
    let mut depth = 0i64;
    for (k, (at, word)) in words.iter().copied().enumerate() {
        let outside = depth == 0;
        depth += brackets(word);
        if k == 0 || !outside {
            continue;
        }
        let next = words.get(k + 1).map(|(_, word)| *word);
        if starts_remark(sentence, at) || starts_clause(word, next) {
            return sentence[..at].trim_end_matches([' ', ',', ';', '-', '–', '—', ':', '*']);
        }
    }
    sentence
}

/// The sentence up to a reason: "yes because 5 is prime".
pub(super) fn without_reason(sentence: &str) -> &str {
    let cut = spans(sentence).skip(1).find(|(_, word)| REASONS.contains(&plain(word).as_str()));
    cut.map_or(sentence, |(at, _)| sentence[..at].trim_end_matches([' ', ',', ';']))
}

/// Whether a sentence has a clause about the value that it begins with.
pub(super) fn has_clause(sentence: &str) -> bool {
    leading(sentence).len() < sentence.trim_end_matches([' ', '.', ',', ';', '*', '!']).len()
}

fn spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_whitespace().map(move |word| {
        let start = at + text[at..].find(word).unwrap_or(0);
        at = start + word.len();
        (start, word)
    })
}

fn brackets(word: &str) -> i64 {
    let count = |set: [char; 3]| i64::try_from(word.matches(set).count()).unwrap_or(0);
    count(['(', '[', '{']) - count([')', ']', '}'])
}

fn plain(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase()
}

fn starts_clause(word: &str, next: Option<&str>) -> bool {
    let numbered = next.is_some_and(|next| next.contains(|c: char| c.is_ascii_digit()));
    let lettered = next.is_some_and(|next| next.starts_with(|c: char| c.is_alphabetic()) && next.len() > 1);
    match word {
        "—" | "–" | "--" => return true,
        "-" => return lettered,
        // A single capital is a number of the Romans, a variable or a choice unless words follow.
        "I" => return lettered && !matches!(next, Some("and" | "or")),
        "i" => return false,
        _ => {}
    }
    let word = plain(word);
    // "40 groups of 5": a count of things that are counted themselves.
    CLAUSES.contains(&word.as_str()) || numbered && matches!(word.as_str(), "of" | "on" | "with" | "for" | "like")
}

/// Whether brackets with words in them start here.
fn starts_remark(sentence: &str, at: usize) -> bool {
    let rest = &sentence[at..];
    if !rest.starts_with(['(', '[']) {
        return false;
    }
    let inner = rest[1..].split([')', ']']).next().unwrap_or_default();
    let word = |run: &str| run.chars().count() > 1 && !matches!(run, "and" | "or") && Func::by_name(run).is_none();
    !inner.contains('\\') && inner.split(|c: char| !c.is_alphabetic()).any(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_a_clause_begins() {
        let cases = [
            ("40 because there are 8 groups of 5", "40"),
            ("25 (see above)", "25"),
            ("7 days after May 3", "7 days"),
            ("50% off", "50%"),
            ("40 groups of 5", "40 groups"),
            ("x = 5 or x = 6, since 5 + 6 = 11", "x = 5 or x = 6"),
            ("(x + 1)(x + 2)", "(x + 1)(x + 2)"),
            ("12 square feet", "12 square feet"),
            ("3 - 4i", "3 - 4i"),
            ("12 — as shown", "12"),
            ("I, II and III", "I, II and III"),
            ("(0, 1) as required", "(0, 1)"),
        ];
        for (sentence, want) in cases {
            assert_eq!(leading(sentence), want, "{sentence}");
        }
        assert!(begins_with_value("x = 3, y = 4"));
        assert!(begins_with_value("f(x) = 3"));
        assert!(!begins_with_value("the largest n"));
        assert!(!begins_with_value("A because"));
    }
}
