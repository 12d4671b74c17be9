//! Boxes: `\boxed{..}`, `\fbox{..}` and `\boxed 5`, found in one pass over the bytes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// One complete box. Both ranges are byte ranges of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoxSpan {
    /// The whole construct, from the backslash on.
    pub(crate) whole: Range<usize>,
    /// What is inside, not trimmed.
    pub(crate) inner: Range<usize>,
}

impl BoxSpan {
    pub(crate) fn content<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.inner.clone()).unwrap_or_default().trim()
    }
}

/// All outermost boxes of a text in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Boxes {
    pub(crate) complete: Vec<BoxSpan>,
    /// The last box that was begun is not closed.
    pub(crate) open: bool,
    /// Where that open box starts, and where its content does.
    pub(crate) open_start: usize,
    pub(crate) open_inner: usize,
}

const NAMES: [&str; 2] = ["boxed", "fbox"];

/// Length of a box command at `at` (which holds a backslash), a doubled backslash of escaped text included.
pub(crate) fn command_len(bytes: &[u8], at: usize) -> Option<usize> {
    let mut name_at = at + 1;
    if bytes.get(name_at) == Some(&b'\\') {
        name_at += 1;
    }
    let rest = bytes.get(name_at..)?;
    let name = NAMES.iter().find(|name| rest.starts_with(name.as_bytes()))?;
    // `\boxedtext` is another command, `\boxed5` is a box.
    let end = name_at + name.len();
    (!bytes.get(end).is_some_and(u8::is_ascii_alphabetic)).then_some(end - at)
}

/// Finds all boxes. A box within a box belongs to the outer one; a brace after a backslash is a printed brace.
pub(crate) fn scan(text: &str) -> Boxes {
    let bytes = text.as_bytes();
    let mut found = Boxes::default();
    // Boxes that are begun: brace depth inside, where the command starts, where the content starts.
    let mut begun: Vec<(usize, usize, usize)> = Vec::new();
    let mut last_start = None;
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => {
                let Some(len) = command_len(bytes, at) else {
                    at += 2;
                    continue;
                };
                let after = skip_space(bytes, at + len);
                if bytes.get(after) == Some(&b'{') {
                    depth += 1;
                    begun.push((depth, at, after + 1));
                    last_start = Some(at);
                    at = after + 1;
                } else if let Some(end) = bare_end(bytes, after) {
                    last_start = Some(at);
                    close(&mut found, BoxSpan { whole: at..end, inner: after..end });
                    at = end;
                } else {
                    at += len;
                }
                continue;
            }
            b'{' => depth += 1,
            b'}' => {
                if let Some(&(at_depth, start, inner)) = begun.last()
                    && at_depth == depth
                {
                    begun.pop();
                    close(&mut found, BoxSpan { whole: start..at + 1, inner: inner..at });
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        at += 1;
    }
    // An open box counts only if it is the last one begun: `\boxed{ 3 \boxed{4}` does end with an answer.
    if let (Some(&(_, start, inner)), Some(last)) = (begun.last(), last_start)
        && start == last
    {
        found.open = true;
        found.open_start = start;
        found.open_inner = inner;
    }
    // Empty boxes quote the instruction ("put it in \boxed{}") and are no answers.
    found.complete.retain(|span| !is_blank(span.content(text)));
    found
}

/// Most visible bytes of a content that prints nothing.
pub(super) const LONGEST_BLANK: usize = 200;

/// Whether the content of a box prints nothing: space, `\quad`, `\ `, `~`, `\text{}`, `{}`.
pub(crate) fn is_blank(content: &str) -> bool {
    const COMMANDS: [&str; 18] = [
        "quad",
        "qquad",
        "enspace",
        "thinspace",
        "medspace",
        "thickspace",
        "hfill",
        "null",
        "strut",
        "text",
        "textbf",
        "mathrm",
        "mbox",
        "hbox",
        "displaystyle",
        "phantom",
        "hphantom",
        "vphantom",
    ];
    if content.bytes().filter(|b| !b.is_ascii_whitespace()).count() > LONGEST_BLANK {
        return false;
    }
    let mut rest = content;
    loop {
        rest = rest.trim_start_matches(|c: char| {
            c.is_whitespace() || matches!(c, '{' | '}' | '~' | '$' | '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{2060}')
        });
        let Some(command) = rest.strip_prefix('\\') else { return rest.is_empty() };
        let name = &command[..command.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(command.len())];
        rest = match name {
            // Spaces of one sign: `\,`, `\ `, and the line end `\\`.
            "" => match command.chars().next() {
                Some(c) if matches!(c, ',' | ';' | ':' | '!' | '\\' | '(' | ')' | '[' | ']') || c.is_whitespace() => {
                    &command[c.len_utf8()..]
                }
                None => command,
                _ => return false,
            },
            // Their argument prints nothing either.
            "hspace" | "vspace" | "phantom" | "hphantom" | "vphantom" => {
                let argument = command[name.len()..].trim_start_matches(['*', ' ']);
                match argument.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                    Some((_, after)) => after,
                    None => return false,
                }
            }
            _ if COMMANDS.contains(&name) => &command[name.len()..],
            _ => return false,
        };
    }
}

/// Adds a closed box and drops the boxes that lie in it.
fn close(found: &mut Boxes, span: BoxSpan) {
    while found.complete.last().is_some_and(|inside| inside.whole.start > span.whole.start) {
        found.complete.pop();
    }
    found.complete.push(span);
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n')) {
        at += 1;
    }
    at
}

/// End of the argument of a box without braces: up to a space or a delimiter, but never out of a `{..}`.
///
/// A word after the command is prose about boxes ("use \boxed notation"), so only a number, a sign, a command or a
/// single letter is taken.
fn bare_end(bytes: &[u8], start: usize) -> Option<usize> {
    let first = *bytes.get(start)?;
    let second = bytes.get(start + 1).copied().unwrap_or(b' ');
    let begins = match first {
        b'0'..=b'9' | b'-' | b'+' | b'.' => second.is_ascii_digit() || first.is_ascii_digit(),
        b'\\' => second.is_ascii_alphabetic() || second == b'$',
        b if b.is_ascii_alphabetic() => !second.is_ascii_alphabetic() && second != b'\'',
        _ => false,
    };
    if !begins {
        return None;
    }
    let mut depth = 0usize;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if matches!(bytes.get(at + 1), Some(b')' | b']' | b'\\')) && depth == 0 => break,
            b'\\' => at += 1,
            b'{' => depth += 1,
            b'}' | b'$' | b' ' | b'\n' | b'\t' if depth == 0 => break,
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    let mut end = at.min(bytes.len());
    while end > start && matches!(bytes.get(end - 1), Some(b'.' | b',' | b';' | b':' | b'!')) {
        end -= 1;
    }
    (end > start).then_some(end)
}

/// The content of the last complete box, trimmed; `None` if there is none or the last box is not closed.
///
/// ```
/// assert_eq!(epikv_grader::last_box(r"so \boxed{\left\{1,2\right\}}."), Some(r"\left\{1,2\right\}"));
/// assert_eq!(epikv_grader::last_box(r"\boxed{7}, no: \boxed{"), None);
/// ```
pub fn last_box(text: &str) -> Option<&str> {
    let boxes = scan(text);
    if boxes.open { None } else { boxes.complete.last().map(|span| span.content(text)) }
}

/// The last box together with the boxes that only a comma, an "and" or space separates from it.
///
/// `\boxed{1} \text{ and } \boxed{2}` is one answer in two boxes; `\boxed{3}. Wait, \boxed{4}` is not.
pub(crate) fn joined<'t>(text: &'t str, boxes: &[BoxSpan]) -> Cow<'t, str> {
    let Some(last) = boxes.last() else {
        return Cow::Borrowed("");
    };
    let first = first_joined(text, boxes);
    let mut seen = HashSet::new();
    let contents = boxes[first..].iter().map(|span| span.content(text));
    let parts: Vec<&str> = contents.filter(|part| seen.insert(*part)).collect();
    if parts.len() < 2 { Cow::Borrowed(last.content(text)) } else { Cow::Owned(parts.join(", ")) }
}

/// The first of the boxes that are one answer with the last one.
fn first_joined(text: &str, boxes: &[BoxSpan]) -> usize {
    let mut first = boxes.len().saturating_sub(1);
    while first > 0 && separates(text, boxes[first - 1].whole.end..boxes[first].whole.start) {
        first -= 1;
    }
    first
}

/// Where the boxes begin that the answer of a text stands in, as a byte offset: the last one that is not blank, with those
/// joined to it, or one that was begun last and is not closed.
///
/// ```
/// let text = r"So \boxed{1}, \boxed{2}. I put it in \boxed{}.";
/// assert_eq!(epikv_grader::boxes_start(text), Some(3));
/// ```
pub fn boxes_start(text: &str) -> Option<usize> {
    let boxes = scan(text);
    if boxes.open {
        return Some(boxes.open_start);
    }
    boxes.complete.get(first_joined(text, &boxes.complete)).map(|span| span.whole.start)
}

/// Longest gap between two boxes of one answer; more is a sentence.
const LONGEST_GAP: usize = 64;

fn separates(text: &str, gap: Range<usize>) -> bool {
    if gap.len() > LONGEST_GAP {
        return false;
    }
    let mut rest = text.get(gap).unwrap_or_default();
    let mut any = false;
    // `x = \boxed{1}, y = \boxed{2}`: the name of the next value.
    let named = rest.trim_end().strip_suffix('=').map(str::trim_end);
    if let Some(name) = named.and_then(|rest| rest.strip_suffix(|c: char| c.is_ascii_alphabetic()))
        && !name.ends_with(|c: char| c.is_alphanumeric() || c == '\\')
    {
        rest = name;
    }
    while !rest.is_empty() {
        let words = [r"\text", r"\quad", r"\qquad", "and", "or", r"\,", r"\;", r"\ ", r"\(", r"\)"];
        if let Some(word) = words.iter().find(|word| rest.starts_with(**word)) {
            any |= word.contains(['a', 'o']);
            rest = &rest[word.len()..];
            continue;
        }
        let mut chars = rest.chars();
        match chars.next() {
            Some(',' | ';') => any = true,
            Some('$' | '{' | '}') => {}
            Some(c) if c.is_whitespace() => {}
            _ => return false,
        }
        rest = chars.as_str();
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_complete_box_is_found() {
        let cases = [
            (r"a \boxed{3} b \boxed{4}", Some("4")),
            (r"\boxed{\frac{1}{2}}", Some(r"\frac{1}{2}")),
            (r"\boxed{\left\{ x \right.}", Some(r"\left\{ x \right.")),
            (r"\fbox{9}", Some("9")),
            (r"$\boxed5$", Some("5")),
            (r"$\boxed 5$.", Some("5")),
            (r"\boxed \frac{1}{2}, so", Some(r"\frac{1}{2}")),
            (r"\boxed{\boxed{5}}", Some(r"\boxed{5}")),
            (r"\\boxed{840}", Some("840")),
            (r"put it in \boxed{}: \boxed{1}", Some("1")),
            (r"\boxed{1}, put in \boxed{\ }", Some("1")),
            (r"\boxed{1}, put in \boxed{\quad ~ \,}", Some("1")),
            (r"\boxed{1}, put in \boxed{\text{ }}", Some("1")),
            (r"\boxed{1}, put in \boxed{\hspace{2cm}{}}", Some("1")),
            (r"\boxed{1}, put in \boxed{\text{a}}", Some(r"\text{a}")),
            (r"\boxed{1}, put in \boxed{\{\}}", Some(r"\{\}")),
            (r"\boxed{1}, put in \boxed{\emptyset}", Some(r"\emptyset")),
            (r"\boxed{1}, put in \boxed{0}", Some("0")),
            (r"\boxed{7} then \boxed{", None),
            (r"\boxed{7} then \boxed{8", None),
            (r"\boxed{3 \boxed{4}", Some("4")),
            (r"use \boxed notation", None),
            ("no box", None),
        ];
        for (text, want) in cases {
            assert_eq!(last_box(text), want, "{text}");
        }
    }

    #[test]
    fn neighbours_are_joined() {
        let text = r"$\boxed{1} \quad \text{and} \quad \boxed{2}$";
        assert_eq!(joined(text, &scan(text).complete), "1, 2");
        let text = r"\boxed{3}. Wait, \boxed{4}";
        assert_eq!(joined(text, &scan(text).complete), "4");
        let text = r"So $x = \boxed{3}$, $y = \boxed{4}$.";
        assert_eq!(joined(text, &scan(text).complete), "3, 4");
        let text = r"$x = \boxed{3}$, and so $y = \boxed{4}$.";
        assert_eq!(joined(text, &scan(text).complete), "4");
        let text = r"\boxed{3}\boxed{4}";
        assert_eq!(joined(text, &scan(text).complete), "4");
    }
}
