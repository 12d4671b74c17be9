//! The last number of a text, together with all that it is a part of: `2^5`, `3:45`, `(2, 5)`, `2 1/2`, `1.5 x 10^3`.
//!
//! A number that is cut out of something larger is another answer, so what stands close to the digits is kept.

use std::ops::Range;

use crate::syntax::{Func, Unit, UnitKind};

/// Bytes between the brackets of one answer at most.
const LONGEST_GROUP: usize = 200;
/// Terms that are taken in leftwards at most.
const MOST_TERMS: usize = 16;

/// The last number that stands by itself: digits within a word such as `A2B` are none, and those in a remark in brackets
/// only count where there are no others.
pub(super) fn last_number_span(text: &str) -> Option<Range<usize>> {
    let mut remark = None;
    let mut end = text.len();
    while let Some(digit) = text[..end].rfind(is_digit) {
        let token = token_around(text, digit);
        end = token.start;
        let Some(span) = in_token(text, token, digit) else { continue };
        match group_around(text, &span) {
            Group::Remark => remark = remark.or(Some(span)),
            Group::Value(whole) => return Some(grown(text, whole)),
            Group::None => return Some(grown(text, unbracketed(text, span))),
        }
    }
    remark.map(|span| grown(text, unbracketed(text, span)))
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || is_vulgar(c)
}

/// A fraction that is one character.
fn is_vulgar(c: char) -> bool {
    matches!(c, '½' | '⅓' | '⅔' | '¼' | '¾' | '\u{2155}'..='\u{215e}')
}

/// What belongs to a formula without a space.
fn sticky(c: char) -> bool {
    c.is_alphanumeric()
        || is_vulgar(c)
        || matches!(
            c,
            '.' | ',' | '\'' | '′' | '^' | '_' | ':' | '/' | '*' | '+' | '-' | '=' | '(' | ')' | '[' | ']' | '{' | '}'
        )
        || matches!(c, '\\' | '|' | '%' | '!' | '°' | '√' | '−' | '×' | '·' | '÷' | '<' | '>' | '≤' | '≥' | '∞' | '∛')
        || matches!(c, '⁰'..='⁹' | '⁻' | '₀'..='₉' | '²' | '³' | '¹')
}

/// The run of such characters around a place, without the marks of a sentence and of emphasis at its ends.
fn token_around(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].char_indices().rev().find(|(_, c)| !sticky(*c)).map_or(0, |(k, c)| k + c.len_utf8());
    let len = text[at..].find(|c| !sticky(c)).unwrap_or(text.len() - at);
    trimmed(text, start..at + len)
}

fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let token = &text[span.clone()];
    let quoted = token.starts_with('\'');
    let mut body = token.trim_start_matches(['*', '\'', ',', ':', '.', '=', '_', '>', '/', ')', ']', '}']);
    // `.5` is a number.
    if body.len() < token.len() && token[..token.len() - body.len()].ends_with('.') {
        body = &token[token.len() - body.len() - 1..];
    }
    let start = span.end - body.len();
    let ended = body.trim_end_matches(['.', ',', ';', ':', '*', '_', '\\', '=', '(', '[', '{']);
    // "5!." ends with a factorial, "5!" with an exclamation.
    let marked = ended.len() < body.len() && ended.ends_with('!') && !ended.ends_with("!!!");
    let mut ended = if marked { ended } else { ended.trim_end_matches('!') };
    if quoted {
        ended = ended.trim_end_matches('\'');
    }
    start..start + ended.len()
}

/// The part of a token that is a number or a formula; `None` where its digits belong to a word.
fn in_token(text: &str, token: Range<usize>, digit: usize) -> Option<Range<usize>> {
    if !token.contains(&digit) {
        return None;
    }
    let token = after_equals(text, token, digit);
    let body = &text[token.clone()];
    if let Some(number) = without_unit(body) {
        return Some(token.start..token.start + number);
    }
    if is_formula(body) {
        return Some(token);
    }
    // "10-foot", "Total:45": the digits between the words.
    let joins = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '/');
    let start = text[..digit].char_indices().rev().find(|(_, c)| !joins(*c)).map_or(0, |(k, c)| k + c.len_utf8());
    let len = text[digit..].find(|c| !joins(c)).unwrap_or(text.len() - digit);
    let alone = |c: Option<char>| !c.is_some_and(|c| c.is_alphabetic() || matches!(c, '^' | '_'));
    let end = start + text[start..digit + len].trim_end_matches(['.', ',', '/']).len();
    (alone(text[..start].chars().next_back()) && alone(text[digit + len..].chars().next())).then_some(start..end)
}

/// What comes after the last equals sign outside of brackets.
fn after_equals(text: &str, token: Range<usize>, digit: usize) -> Range<usize> {
    let mut depth = 0usize;
    let mut start = token.start;
    for (at, c) in text[token.start..digit].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => start = token.start + at + 1,
            _ => {}
        }
    }
    start..token.end
}

/// Length of the number before a unit that is grown together with it: `5cm`, `1,000.99m²`.
fn without_unit(body: &str) -> Option<usize> {
    let letters = body.trim_end_matches(['²', '³', '.']);
    let number = letters.trim_end_matches(char::is_alphabetic);
    let word = &letters[number.len()..];
    let plain = number.ends_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '/'));
    let known = !matches!(Unit::named(word).kind, UnitKind::Other | UnitKind::Clock);
    (plain && !word.is_empty() && known).then_some(number.len())
}

/// Whether the letters of a token are variables, functions or the end of an ordinal, and none of them stands right before
/// a digit.
fn is_formula(body: &str) -> bool {
    let mut chars = body.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        if !c.is_alphabetic() {
            before = c;
            continue;
        }
        let len = body[at..].find(|c: char| !c.is_alphabetic()).unwrap_or(body.len() - at);
        let run = &body[at..at + len];
        while chars.peek().is_some_and(|(k, _)| *k < at + len) {
            chars.next();
        }
        let next = body[at + len..].chars().next();
        let exponent = matches!(run, "e" | "E") && before.is_ascii_digit();
        let ordinal = matches!(run, "st" | "nd" | "rd" | "th") && before.is_ascii_digit() && next.is_none();
        let times = matches!(run, "x" | "X") && before.is_ascii_digit();
        let known = run.chars().count() == 1 || before == '\\' || run == "pi" || Func::by_name(run).is_some();
        let digit = next.is_some_and(|c| c.is_ascii_digit());
        if !(known || ordinal) || digit && !exponent && !times {
            return false;
        }
        before = run.chars().next_back().unwrap_or(' ');
    }
    true
}

/// The brackets around a number.
enum Group {
    None,
    /// A point, an interval, a set, or a factor of the number.
    Value(Range<usize>),
    /// Words: "(see step 3)".
    Remark,
}

fn group_around(text: &str, span: &Range<usize>) -> Group {
    let Some(open) = opening(text, span.start, span.end) else { return Group::None };
    let Some(close) = closing(text, open) else { return Group::None };
    let inner = &text[open + 1..close];
    let worded = |word: &str| word.chars().filter(|c| c.is_alphabetic()).count() > 1 && !matches!(word, "and" | "or");
    let words = inner.split(|c: char| !c.is_alphabetic()).any(|word| worded(word) && Func::by_name(word).is_none());
    if words && !inner.contains('\\') {
        return Group::Remark;
    }
    // What stands close to the brackets belongs to the group: `f(2, 5)`, `(1, 2]`.
    let token = token_around(text, open);
    let whole = token.start.min(open)..token_around(text, close).end.max(close + 1);
    if is_formula(&text[whole.start..open]) { Group::Value(whole) } else { Group::Value(open..close + 1) }
}

/// The last bracket on the line that is open at `at`, also when it belongs to the token itself.
fn opening(text: &str, at: usize, end: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut open = None;
    // Inside of the token first: `(2` opens, `f(2)` does not.
    for (k, c) in text[at..end].char_indices() {
        match c {
            '(' | '[' | '{' => {
                depth += 1;
                if depth == 1 {
                    open = Some(at + k);
                }
            }
            ')' | ']' | '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    open = None;
                }
            }
            _ => {}
        }
    }
    if open.is_some() {
        return open;
    }
    depth = 0;
    for (k, c) in text[..at].char_indices().rev().take(LONGEST_GROUP) {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth == 0 => return Some(k),
            '(' | '[' | '{' => depth -= 1,
            '\n' => return None,
            _ => {}
        }
    }
    None
}

/// The bracket that closes the one at `open`; the two need not look alike.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (k, c) in text[open..].char_indices().take(LONGEST_GROUP) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(open + k);
                }
            }
            '\n' => return None,
            _ => {}
        }
    }
    None
}

/// The span without brackets at its ends that have no partner in it.
fn unbracketed(text: &str, mut span: Range<usize>) -> Range<usize> {
    let count = |span: &Range<usize>, set: [char; 3]| text[span.clone()].matches(set).count();
    while count(&span, [')', ']', '}']) > count(&span, ['(', '[', '{']) && text[span.clone()].ends_with([')', ']', '}'])
    {
        span.end -= 1;
    }
    while count(&span, ['(', '[', '{']) > count(&span, [')', ']', '}'])
        && text[span.clone()].starts_with(['(', '[', '{'])
    {
        span.start += 1;
    }
    span.start..span.start + text[span.clone()].trim_end_matches(['.', ',', ';', ':']).len()
}

/// The span with what belongs to it across spaces: the whole of a mixed number, the other terms of a sum, the larger unit
/// of a quantity in parts, am and pm.
fn grown(text: &str, mut span: Range<usize>) -> Range<usize> {
    if let Some(parts) = in_parts(text, &span) {
        return parts;
    }
    let body = &text[span.clone()];
    if let Some(colon) = body.find(':')
        && body[colon + 1..].starts_with(|c: char| c.is_ascii_digit())
    {
        let rest = &text[span.end..];
        let word = rest.trim_start_matches([' ', '\u{a0}']);
        let half = ["a.m.", "p.m.", "am", "pm"].iter().find(|half| {
            word.get(..half.len()).is_some_and(|head| head.eq_ignore_ascii_case(half))
                && !word[half.len()..].starts_with(char::is_alphabetic)
        });
        if let Some(half) = half {
            return span.start..span.end + (rest.len() - word.len()) + half.len();
        }
    }
    if is_proper(body)
        && let Some((at, word)) = word_before(text, span.start)
    {
        if is_integer(word) {
            span.start = at;
        } else if word == "and"
            && let Some((whole, number)) = word_before(text, at)
            && is_integer(number)
        {
            span.start = whole;
        }
    }
    if let Some(start) = ratio_start(text, &span) {
        span.start = start;
    }
    for _ in 0..MOST_TERMS {
        let Some((sign_at, sign)) = word_before(text, span.start) else { break };
        let Some((at, term)) = word_before(text, sign_at) else { break };
        let operator = matches!(sign, "+" | "-" | "−" | "*" | "/" | "×" | "·" | "÷" | "^" | ":" | "±")
            || matches!(sign, "x" | "X") && is_number(term);
        let formula = is_formula(term)
            && term.chars().any(char::is_alphanumeric)
            && !term.ends_with(['.', ',', ';', ':'])
            && term.chars().all(sticky);
        if !operator || !formula {
            break;
        }
        let term = after_equals(text, at..at + term.len(), at + term.len());
        let cut = term.start > at;
        span.start = term.start;
        if cut {
            break;
        }
    }
    unbracketed(text, span)
}

/// The word before a place on the same line, and where it starts.
fn word_before(text: &str, at: usize) -> Option<(usize, &str)> {
    let head = text[..at].trim_end_matches([' ', '\u{a0}']);
    if head.len() == at {
        return None;
    }
    let start = head.rfind(char::is_whitespace).map_or(0, |k| k + head[k..].chars().next().map_or(1, char::len_utf8));
    let word = &head[start..];
    let plain = word.trim_start_matches(['$', '*', '(', '"']);
    (!word.is_empty()).then(|| (start + word.len() - plain.len(), plain))
}

fn is_integer(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '−']).unwrap_or(word);
    !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_number(word: &str) -> bool {
    word.ends_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '−'))
}

/// `1/2`, `½`.
fn is_proper(body: &str) -> bool {
    let mut chars = body.chars();
    if chars.next().is_some_and(is_vulgar) && chars.next().is_none() {
        return true;
    }
    let Some((above, below)) = body.split_once('/') else { return false };
    match (above.parse::<u64>(), below.parse::<u64>()) {
        (Ok(above), Ok(below)) => 0 < above && above < below,
        _ => false,
    }
}

/// "the ratio is 3 to 4".
fn ratio_start(text: &str, span: &Range<usize>) -> Option<usize> {
    let (to_at, _) = word_before(text, span.start).filter(|(_, word)| *word == "to")?;
    let (at, _) = word_before(text, to_at).filter(|(_, word)| is_number(word))?;
    let sentence = text[..at].rfind(['.', '\n']).map_or(0, |k| k + 1);
    text[sentence..at].to_ascii_lowercase().contains("ratio").then_some(at)
}

/// `5 dollars and 50 cents`, `2 hours 30 minutes`, `5 ft 3 in`: both parts and their units.
fn in_parts(text: &str, span: &Range<usize>) -> Option<Range<usize>> {
    if !is_number(&text[span.clone()]) {
        return None;
    }
    let after = text[span.end..].trim_start_matches(' ');
    let len = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
    let small = Unit::named(&after[..len]);
    let end = text.len() - after.len() + len;
    let (mut at, mut word) = word_before(text, span.start)?;
    if word == "and" {
        (at, word) = word_before(text, at)?;
    }
    let large = Unit::named(word.trim_end_matches([',', '.']));
    let (number_at, number) = word_before(text, at)?;
    let fits = len > 0 && large.kind == small.kind && large.kind != UnitKind::Other && large.factor > small.factor;
    if !fits || !is_number(number) {
        return None;
    }
    let first = number_at..number_at + number.len();
    Some(in_parts(text, &first).map_or(number_at, |more| more.start)..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_with_what_they_belong_to() {
        let cases = [
            ("So he needs 2 1/2 cups.", "2 1/2"),
            ("It takes 3 and 1/4 hours.", "3 and 1/4"),
            ("about 2½ cups", "2½"),
            ("There are 2 11/2 cups", "11/2"),
            ("It equals 2π.", "2π"),
            ("The number is 2^5.", "2^5"),
            ("so 2⁵ of them", "2⁵"),
            ("The train leaves at 3:45.", "3:45"),
            ("It leaves at 3:45 p.m. today", "3:45 p.m."),
            ("The ratio is 3 : 4.", "3 : 4"),
            ("The ratio is 3 to 4.", "3 to 4"),
            ("it went from 3 to 4.", "4"),
            ("The point is (2, 5).", "(2, 5)"),
            ("on the interval (2, 5].", "(2, 5]"),
            ("we have f(2) = 7.", "7"),
            ("n=-7.", "-7"),
            ("In base 2 it is 1011_2.", "1011_2"),
            ("She has 5 dollars and 50 cents.", "5 dollars and 50 cents"),
            ("It took 1 hour, 2 minutes and 3 seconds.", "1 hour, 2 minutes and 3 seconds"),
            ("The result is 1.5e3.", "1.5e3"),
            ("The count is 12'000.", "12'000"),
            ("It is 1.5 x 10^3 of them.", "1.5 x 10^3"),
            ("so z = 3 + 4i.", "3 + 4i"),
            ("so she has 20-12 = 8 left.", "8"),
            ("it's 1,000.99m²", "1,000.99"),
            ("she has 25 (see step 3).", "25"),
            ("(there are 25 of them)", "25"),
            ("the length is √2.", "√2"),
            ("the 3rd.", "3rd"),
            ("a 10-foot pole", "10"),
            ("the value is 50%.", "50%"),
            ("that is 5!.", "5!"),
            ("that is 5!", "5"),
            ("**7**", "7"),
            ("2) 7)", "7"),
            ("it is .5", ".5"),
        ];
        for (text, want) in cases {
            assert_eq!(last_number_span(text).map(|span| &text[span]), Some(want), "{text}");
        }
        assert_eq!(last_number_span("AZYUK2A"), None);
        assert_eq!(last_number_span("nothing"), None);
    }
}
