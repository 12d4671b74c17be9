//! Where a text has no box: `####`, phrases, the last formula, the last number.

use std::ops::Range;

use super::ExtractionRule;

/// The answer of a text without boxes, and the rule that found it.
pub(crate) fn find(text: &str) -> Option<(&str, ExtractionRule)> {
    if let Some(at) = text.rfind("####") {
        let line = text[at + 4..].trim_start().lines().next().unwrap_or_default().trim();
        if !line.is_empty() {
            return Some((line, ExtractionRule::HashMarks));
        }
    }
    if let Some(answer) = after_phrase(text) {
        return Some((answer, ExtractionRule::FinalAnswerPhrase));
    }
    last_value(text)
}

/// The last formula, or the last number where it comes later.
fn last_value(text: &str) -> Option<(&str, ExtractionRule)> {
    let formula = last_formula(text);
    let number = last_number_span(text);
    match (formula, number) {
        (Some(formula), Some(number)) if number.start >= formula.end => {
            Some((&text[number], ExtractionRule::LastNumber))
        }
        (Some(formula), _) => Some((&text[formula], ExtractionRule::LastFormula)),
        (None, Some(number)) => Some((&text[number], ExtractionRule::LastNumber)),
        (None, None) => None,
    }
}

/// Phrases that announce an answer, in lower case; the last one in the text counts.
const PHRASES: [&str; 11] = [
    "option is",
    "choice is",
    "final answer is",
    "answer is",
    "answer:",
    "answer :",
    "answer**:",
    "answer:**",
    "answer $",
    "answer \\[",
    "answer \\(",
];

fn after_phrase(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let (at, phrase) = PHRASES
        .iter()
        .filter_map(|phrase| lower.rfind(phrase).map(|at| (at, *phrase)))
        .max_by_key(|(at, p)| at + p.trim_end_matches(['$', '[', '(', '\\', '*']).len())?;
    let skip = phrase.trim_end_matches(['$', '[', '(', '\\']).len();
    let rest = text.get(at + skip..)?.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '*' | '}'));
    if let Some(span) = formulas(rest).next()
        && rest[..span.start].trim_matches(['$', '\\', '(', '[', ' ']).is_empty()
    {
        return Some(rest[span].trim());
    }
    let sentence = rest[..sentence_end(rest)].trim().trim_end_matches(['*', '.', ' ']);
    if sentence.is_empty() {
        return None;
    }
    // "The largest n is 34": a sentence of its own, whose value is what it ends with.
    if sentence.split_whitespace().count() > 3 && !begins_with_value(sentence) {
        return last_value(sentence).map_or(Some(sentence), |(answer, _)| Some(answer));
    }
    Some(sentence)
}

fn begins_with_value(sentence: &str) -> bool {
    sentence.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '\\' | '$' | '(' | '[' | '{' | '.' | '+'))
}

/// End of the first sentence: a full stop before a space, a line break, or a comma before a word.
fn sentence_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1).copied();
        let next_is_space = next.is_none_or(|b| b.is_ascii_whitespace());
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b'\n' => return at,
            b'.' | b'!' | b'?' if next_is_space && depth == 0 => return at,
            b',' if next_is_space && depth == 0 => {
                let word = text[at + 1..].trim_start();
                let letters = word.bytes().take_while(u8::is_ascii_alphabetic).count();
                if letters > 1 && !word.starts_with("and ") && !word.starts_with("or ") {
                    return at;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// The contents of `$..$`, `$$..$$`, `\(..\)` and `\[..\]` in order.
fn formulas(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    // What closes no formula from here on: a model that repeats itself opens thousands.
    let mut missing: Vec<&str> = Vec::new();
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let (open, close): (usize, &str) = match (bytes[at], bytes.get(at + 1)) {
                (b'\\', Some(b'(')) => (2, r"\)"),
                (b'\\', Some(b'[')) => (2, r"\]"),
                (b'\\', _) => {
                    at += 2;
                    continue;
                }
                (b'$', Some(b'$')) => (2, "$$"),
                (b'$', _) => (1, "$"),
                _ => {
                    at += 1;
                    continue;
                }
            };
            let start = at + open;
            let rest = text.get(start..).filter(|_| !missing.contains(&close));
            let Some(len) = rest.and_then(|rest| find_unescaped(rest, close)) else {
                if rest.is_some() {
                    missing.push(close);
                }
                // An opening without an end: `$5` is money.
                at = if close == "$" || close == "$$" { bytes.len() } else { start };
                continue;
            };
            at = start + len + close.len();
            return Some(start..start + len);
        }
        None
    })
}

fn find_unescaped(text: &str, close: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(close.as_bytes()) {
            return Some(at);
        }
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    None
}

fn last_formula(text: &str) -> Option<Range<usize>> {
    formulas(text).filter(|span| !text[span.clone()].trim().is_empty()).last()
}

/// The last number of a text that stands by itself: digits within a word such as `A2B` are none.
fn last_number_span(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut end = bytes.len();
    loop {
        let last_digit = bytes[..end].iter().rposition(u8::is_ascii_digit)?;
        let mut start = last_digit;
        while start > 0 {
            let before = bytes[start - 1];
            let joins = matches!(before, b'.' | b',') && start > 1 && bytes[start - 2].is_ascii_digit();
            if before.is_ascii_digit() || joins || (before == b'.' && !word_before(text, start - 1)) {
                start -= 1;
            } else {
                break;
            }
        }
        let stop = last_digit + 1;
        if word_before(text, start) || word_after(text, stop) {
            end = start;
            continue;
        }
        // So does what a fraction has above the line.
        if start > 1 && bytes[start - 1] == b'/' && bytes[start - 2].is_ascii_digit() {
            let above = bytes[..start - 1].iter().rposition(|b| !b.is_ascii_digit());
            start = above.map_or(0, |at| at + 1);
        }
        // A minus belongs to the number unless it stands close behind a term: `20-12`.
        let after_term = |text: &str| text.ends_with(|c: char| c.is_alphanumeric() || c == ')');
        if start > 0 && bytes[start - 1] == b'-' && !after_term(&text[..start - 1]) {
            start -= 1;
        }
        return Some(start..stop);
    }
}

fn word_before(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(char::is_alphabetic)
}

/// A letter after the digits makes a word, except where it can be a unit (`5m`, `3km²`): at most two small letters.
fn word_after(text: &str, at: usize) -> bool {
    let letters = text[at..].chars().take_while(|c| c.is_alphanumeric()).take(4);
    let run: Vec<char> = letters.collect();
    let unit = run.len() < 4 && run.iter().all(|c| c.is_lowercase() || !c.is_alphabetic());
    run.first().is_some_and(|c| c.is_alphabetic()) && !unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_in_order() {
        let cases = [
            ("x\n#### 42", "42", ExtractionRule::HashMarks),
            ("The answer is 42.", "42", ExtractionRule::FinalAnswerPhrase),
            ("the answer is 42, not 24", "42", ExtractionRule::FinalAnswerPhrase),
            ("**Answer:** 4.", "4", ExtractionRule::FinalAnswerPhrase),
            ("Final Answer: The final answer is $5$. I hope it is correct.", "5", ExtractionRule::FinalAnswerPhrase),
            ("Final Answer: The largest $n$ is 34.", "34", ExtractionRule::FinalAnswerPhrase),
            (r"Answer \( 9 \)", "9", ExtractionRule::FinalAnswerPhrase),
            ("Therefore $x < 5$ is the solution.", "x < 5", ExtractionRule::LastFormula),
            ("so she has 20-12 = 8 left.", "8", ExtractionRule::LastNumber),
            ("which is 1,000.99€", "1,000.99", ExtractionRule::LastNumber),
            ("it's 1,000.99m²", "1,000.99", ExtractionRule::LastNumber),
            ("it is -7", "-7", ExtractionRule::LastNumber),
            ("we get -3/4 of it", "-3/4", ExtractionRule::LastNumber),
        ];
        for (text, answer, rule) in cases {
            assert_eq!(find(text), Some((answer, rule)), "{text}");
        }
        assert_eq!(last_number_span("AZYUK2A"), None);
        assert_eq!(find("nothing"), None);
    }
}
