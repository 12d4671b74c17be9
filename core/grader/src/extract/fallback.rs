//! Where a text has no box: `####`, phrases, the last formula, the last number.

use std::ops::Range;

use super::ExtractionRule;
use super::number::last_number_span;
use super::sentence::{begins_with_value, has_clause, leading, without_reason};
use crate::syntax::{Unit, UnitKind};

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
    // "40 because there are 8 groups of 5": a sentence of its own counts by the value that it begins with.
    before_clause(text).map(|answer| (answer, ExtractionRule::LastNumber)).or_else(|| last_value(text))
}

/// The number that a text of one sentence begins with, where a clause about it follows.
pub(super) fn before_clause(text: &str) -> Option<&str> {
    let text = text.trim();
    let number = text.trim_start_matches(['-', '$', '*']).starts_with(|c: char| c.is_ascii_digit());
    (number && sentence_end(text) + 1 >= text.len() && has_clause(text)).then(|| leading(text))
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
const PHRASES: [&str; 15] = [
    "option is",
    "choice is",
    "answer is",
    "answers are",
    "solutions are",
    "roots are",
    "answer:",
    "answers:",
    "solutions:",
    "answer :",
    "answer**:",
    "answer:**",
    "answer $",
    "answer \\[",
    "answer \\(",
];

fn after_phrase(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let phrase = PHRASES
        .iter()
        .filter_map(|phrase| lower.rfind(phrase).map(|at| (at, *phrase)))
        .max_by_key(|(at, p)| at + p.trim_end_matches(['$', '[', '(', '\\', '*']).len())
        .map(|(at, phrase)| at + phrase.trim_end_matches(['$', '[', '(', '\\']).len());
    let rest = text.get(phrase.max(heading_end(&lower))?..)?;
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '*' | '}'));
    if let Some(answer) = leading_formulas(rest) {
        return Some(answer);
    }
    let sentence = rest[..sentence_end(rest)].trim().trim_end_matches(['*', '.', ' ']);
    if sentence.is_empty() {
        return None;
    }
    if begins_with_value(sentence) {
        return Some(leading(sentence));
    }
    let sentence = without_reason(sentence);
    // "The largest n is 34": a sentence of its own, whose value is what it ends with.
    if sentence.split_whitespace().count() > 3 {
        return last_value(sentence).map_or(Some(sentence), |(answer, _)| Some(answer));
    }
    Some(sentence)
}

/// Lines that announce an answer without a colon, in lower case and without emphasis.
const HEADINGS: [&str; 6] =
    ["final answer", "the final answer", "answer", "the answer", "final result", "the final result"];

/// End of the last line that is nothing but such a heading and has something below it.
fn heading_end(lower: &str) -> Option<usize> {
    let mut end = 0;
    let mut found = None;
    for line in lower.split_inclusive('\n') {
        end += line.len();
        let plain = line.trim().trim_matches(['#', '*', '_', '=', '-', ' ', ':']);
        // A line under the heading.
        if plain.is_empty() && found == Some(end - line.len()) && !line.trim().is_empty() {
            found = Some(end);
        }
        if HEADINGS.contains(&plain) && !lower[end..].trim().is_empty() {
            found = Some(end);
        }
    }
    found
}

/// The formula that a text begins with; `$3$ and $5$` is one answer, and so is `$5$ m`.
fn leading_formulas(rest: &str) -> Option<&str> {
    let mut spans = formulas(rest);
    let first = spans.next()?;
    if !rest[..first.start].trim_matches(['$', '\\', '(', '[', ' ']).is_empty() {
        return None;
    }
    let closed = |end: usize| end + closing_len(&rest[end..]);
    let mut last = first.end;
    for span in spans {
        let gap = rest[closed(last)..span.start].trim_matches(['$', '\\', '(', '[', ' ', '\n']);
        if !matches!(gap, "," | "and" | "or" | ", and" | ", or" | ";" | "; and") {
            break;
        }
        last = span.end;
    }
    let after = rest[closed(last)..].trim_start_matches(' ');
    // A formula that is continued in plain text: `$x$ = 5`, `$n$: 7`.
    if last == first.end && after.starts_with(['=', '<', '>', '≈', '≤', '≥']) {
        return Some(leading(&rest[..sentence_end(rest)]));
    }
    let word = &after[..after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len())];
    let unit = !matches!(Unit::named(word).kind, UnitKind::Other) && word != "in";
    if last == first.end && !unit && !after.starts_with('%') {
        return Some(rest[first].trim());
    }
    let tail = if unit { word.len() } else { usize::from(after.starts_with('%')) };
    let end = if tail > 0 { rest.len() - after.len() + tail } else { closed(last) };
    Some(rest[..end].trim())
}

/// Length of the delimiter that closes a formula here.
fn closing_len(rest: &str) -> usize {
    ["$$", "$", r"\)", r"\]"].iter().find(|close| rest.starts_with(**close)).map_or(0, |close| close.len())
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
                // "12, I hope this helps": the one word of one letter that begins a sentence.
                let hope = word.starts_with("I ")
                    && word[2..].starts_with(|c: char| c.is_ascii_lowercase())
                    && !word[2..].starts_with("and ")
                    && !word[2..].starts_with("or ");
                if (letters > 1 || hope) && !word.starts_with("and ") && !word.starts_with("or ") {
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
        assert_eq!(find("nothing"), None);
    }
}
