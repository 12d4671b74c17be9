//! Takes off what is not part of an answer: boxes, delimiters, emphasis, invisible characters, the final full stop;
//! and writes Unicode mathematics as LaTeX.

use std::borrow::Cow;

use crate::extract::{joined, scan};

/// The content of the boxes of an answer; an answer without a box is returned as it is.
pub(crate) fn unwrap_box(text: &str) -> Cow<'_, str> {
    let mut answer = Cow::Borrowed(text);
    // A box in a box in a box is as deep as anyone has written.
    for _ in 0..3 {
        let boxes = scan(&answer);
        let inner = if boxes.open {
            // An answer that was handed over with its box unclosed: what stands in it.
            answer.get(boxes.open_inner..).unwrap_or_default().to_owned()
        } else if boxes.complete.is_empty() {
            return answer;
        } else {
            joined(&answer, &boxes.complete).into_owned()
        };
        answer = Cow::Owned(inner);
    }
    answer
}

/// LaTeX for a Unicode character, or `None` to leave it.
fn latex(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2212}' | '\u{2010}'..='\u{2015}' | '\u{fe63}' | '\u{ff0d}' => "-",
        '×' | '∗' | '·' | '⋅' | '∙' | '•' => "*",
        '÷' | '∕' | '⁄' => "/",
        '√' => "\\sqrt ",
        '∛' => "\\cbrt ",
        'π' => "\\pi ",
        '∞' => "\\infty ",
        '≤' | '⩽' => "\\le ",
        '≥' | '⩾' => "\\ge ",
        '≠' => "\\ne ",
        '≈' => "\\approx ",
        '±' => "\\pm ",
        '∓' => "\\mp ",
        '∪' => "\\cup ",
        '∩' => "\\cap ",
        '∈' => "\\in ",
        '∅' => "\\emptyset ",
        'ℝ' => "\\mathbb{R}",
        'ℤ' => "\\mathbb{Z}",
        '°' | 'º' | '˚' => "^\\circ ",
        '½' => "\\frac{1}{2}",
        '⅓' => "\\frac{1}{3}",
        '⅔' => "\\frac{2}{3}",
        '¼' => "\\frac{1}{4}",
        '¾' => "\\frac{3}{4}",
        '⅕' => "\\frac{1}{5}",
        '⅖' => "\\frac{2}{5}",
        '⅗' => "\\frac{3}{5}",
        '⅘' => "\\frac{4}{5}",
        '⅙' => "\\frac{1}{6}",
        '⅚' => "\\frac{5}{6}",
        '⅛' => "\\frac{1}{8}",
        '⅜' => "\\frac{3}{8}",
        '⅝' => "\\frac{5}{8}",
        '⅞' => "\\frac{7}{8}",
        'α' => "\\alpha ",
        'β' => "\\beta ",
        'γ' => "\\gamma ",
        'δ' => "\\delta ",
        'θ' => "\\theta ",
        'λ' => "\\lambda ",
        'μ' => "\\mu ",
        'σ' => "\\sigma ",
        'φ' => "\\phi ",
        'ω' => "\\omega ",
        '…' => "\\ldots ",
        '′' | '’' => "'",
        '，' | '、' => ",",
        '；' => ";",
        '：' => ":",
        '。' => ".",
        '（' => "(",
        '）' => ")",
        '［' => "[",
        '］' => "]",
        '＝' => "=",
        '＋' => "+",
        '％' => "%",
        '€' => "\\text{ euro }",
        '£' => "\\text{ sterling }",
        '¥' => "\\text{ yen }",
        '₹' => "\\text{ rupee }",
        '¢' => "\\text{ cent }",
        // Spaces that group digits.
        '\u{2009}' | '\u{202f}' | '\u{2006}' | '\u{2005}' => "\\,",
        _ => return None,
    })
}

fn script_digit(c: char) -> Option<(char, char)> {
    let sup = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    if let Some(digit) = sup.iter().position(|s| *s == c) {
        return char::from_digit(u32::try_from(digit).ok()?, 10).map(|d| ('^', d));
    }
    match c {
        '⁻' => Some(('^', '-')),
        '₀'..='₉' => char::from_digit(u32::from(c) - u32::from('₀'), 10).map(|d| ('_', d)),
        _ => None,
    }
}

fn invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}')
}

/// Cleans an answer for the lexer.
pub(crate) fn clean(text: &str) -> String {
    let money = money_sign(text);
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.char_indices().peekable();
    // The kind of script that is open: `²³` is one exponent.
    let mut script: Option<char> = None;
    while let Some((at, c)) = chars.next() {
        if invisible(c) {
            continue;
        }
        if let Some((kind, digit)) = script_digit(c) {
            if script == Some(kind) {
                out.pop();
            } else {
                out.push(kind);
                out.push('{');
            }
            out.push(digit);
            out.push('}');
            script = Some(kind);
            continue;
        }
        script = None;
        match c {
            '\\' => match chars.peek().map(|(_, next)| *next) {
                // Delimiters of formulas.
                Some('(' | ')' | '[' | ']') => {
                    chars.next();
                    out.push(' ');
                }
                Some(next) => {
                    chars.next();
                    out.push('\\');
                    out.push(next);
                }
                None => {}
            },
            '$' if Some(at) == money => out.push_str("\\$"),
            '$' => out.push(' '),
            '０'..='９' => {
                out.push(char::from_digit(u32::from(c) - u32::from('０'), 10).unwrap_or('0'));
            }
            _ => match latex(c) {
                Some(text) => out.push_str(text),
                None if c.is_whitespace() => out.push(' '),
                None => out.push(c),
            },
        }
    }
    let out = out.replace("a.m.", "am").replace("p.m.", "pm").replace("A.M.", "am").replace("P.M.", "pm");
    let out = out.replace("Rs.", "Rs ");
    trim(&out).to_owned()
}

/// The dollar sign that is money and no delimiter: an unpaired one before a number.
fn money_sign(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut signs = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'$' => signs.push(at),
            _ => {}
        }
        at += 1;
    }
    if signs.len().is_multiple_of(2) {
        return None;
    }
    signs.into_iter().find(|at| text[at + 1..].trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Marks around a whole answer.
const QUOTES: [(char, char); 4] = [('`', '`'), ('"', '"'), ('\'', '\''), ('\u{201c}', '\u{201d}')];

/// What may announce an answer, in small letters.
const LEAD_INS: [&str; 7] = ["final answer:", "answer:", "the answer is", "therefore,", "thus,", "hence,", "so,"];

/// Takes "Answer:" and the like off the front.
fn without_lead_in(text: &str) -> &str {
    let starts = |lead: &&str| text.get(..lead.len()).is_some_and(|head| head.eq_ignore_ascii_case(lead));
    let Some(lead) = LEAD_INS.iter().copied().find(|lead| starts(lead)) else { return text };
    let rest = text[lead.len()..].trim_start_matches(['*', ':', ' ']);
    if rest.is_empty() { text } else { rest }
}

/// Takes emphasis, lead-ins and sentence ends off both ends.
fn trim(text: &str) -> &str {
    let mut rest = text.trim();
    loop {
        let before = rest.len();
        if let Some(inner) = rest.strip_prefix("**") {
            rest = inner.trim_start();
        }
        rest = rest.strip_suffix("**").unwrap_or(rest).trim_end();
        for (open, close) in QUOTES {
            if let Some(inner) = rest.strip_prefix(open).and_then(|inner| inner.strip_suffix(close)) {
                rest = inner.trim();
            }
        }
        rest = without_lead_in(rest);
        let ends = rest.ends_with(['.', ',', ';', ':']) && !rest.ends_with("..") && !rest.ends_with(['\\']);
        // `\,` and `\;` are spaces, not sentence ends.
        if ends && !rest[..rest.len() - 1].ends_with('\\') {
            rest = &rest[..rest.len() - 1];
        }
        if rest.len() == before {
            return rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_is_taken_off() {
        assert_eq!(clean("**42**."), "42");
        assert_eq!(clean("$42$"), "42");
        assert_eq!(clean("**Answer:** \u{201c}42\u{201d}"), "42");
        assert_eq!(clean("$70,000"), "\\$70,000");
        assert_eq!(clean("−5²³"), "-5^{23}");
        assert_eq!(clean("\u{200f}7\u{200e}"), "7");
        assert_eq!(clean(r"\[ 9 \]"), "9");
        assert_eq!(unwrap_box(r"is $\boxed{\fbox{3}}$."), "3");
        assert_eq!(unwrap_box(r"\boxed{W = 1"), "W = 1");
    }
}
