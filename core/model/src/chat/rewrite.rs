//! Operators of a template as calls, because minijinja lets nobody say what an operator does.
//!
//! `a ~ b`, `a + b`, `a - b`, `a * b`, `a / b`, `a // b`, `a % b` and `a ** b` become [`OPERATOR`]`('~', a, b)` and so on; a tuple
//! `(a, b)` becomes [`TUPLE`]`(a, b)`. Everything else of the source stays as it is, its lines included.

/// The function that an operator becomes.
pub(super) const OPERATOR: &str = "__operator";
/// The function that a tuple becomes.
pub(super) const TUPLE: &str = "__tuple";

/// Brackets inside brackets that a template may have.
const DEEPEST: usize = 400;

/// Words that end an operand.
const WORDS: [&str; 9] = ["and", "or", "not", "in", "is", "if", "else", "recursive", "as"];

/// The source with calls for operators. What is no Jinja is left as it is, for minijinja to refuse.
pub(super) fn operators_as_calls(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) =
        rest.match_indices('{').map(|(at, _)| at).find(|at| rest[at + 1..].starts_with(['{', '%', '#']))
    {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let close = match &rest[..2] {
            "{{" => "}}",
            "{%" => "%}",
            _ => {
                let end = rest.find("#}").map_or(rest.len(), |end| end + 2);
                out.push_str(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
        };
        let Some((tokens, length)) = tokens(&rest[2..], close) else { break };
        let inner = &rest[2..2 + length];
        let sign = usize::from(inner.starts_with(['-', '+']));
        out.push_str(&rest[..2 + sign]);
        let tokens = if sign == 1 { &tokens[1..] } else { &tokens[..] };
        let first = tokens.iter().position(|token| token.kind != Kind::Space);
        let (head, tokens) = tokens.split_at(first.filter(|_| close == "%}").map_or(0, |first| first + 1));
        out.extend(head.iter().map(|token| token.text));
        let first = head.last().map(|token| token.text);
        let targets = matches!(first, Some("for" | "set" | "macro" | "call"));
        let rewriter = Rewriter { tokens, at: 0, depth: 0, targets, failed: false };
        match rewriter.tag() {
            Some(text) if first != Some("raw") => out.push_str(&text),
            _ => out.extend(tokens.iter().map(|token| token.text)),
        }
        out.push_str(close);
        rest = &rest[2 + length + 2..];
        if first == Some("raw") {
            let end = rest.find("endraw").unwrap_or(rest.len());
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            let end = rest.find("%}").map_or(rest.len(), |end| end + 2);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Name,
    Number,
    Text,
    Sign,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

/// The tokens up to the closing mark, and the length in front of it; `None` where it is missing.
fn tokens<'a>(source: &'a str, close: &str) -> Option<(Vec<Token<'a>>, usize)> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut depth = 0_usize;
    while at < source.len() {
        let rest = &source[at..];
        if depth == 0 && rest.starts_with(close) {
            return Some((tokens, at));
        }
        let first = rest.chars().next()?;
        let until = |end: &dyn Fn(char) -> bool| rest.find(|c| !end(c)).unwrap_or(rest.len());
        let (kind, length) = if first.is_whitespace() {
            (Kind::Space, until(&char::is_whitespace))
        } else if first.is_alphabetic() || first == '_' {
            (Kind::Name, until(&|c| c.is_alphanumeric() || c == '_'))
        } else if first.is_ascii_digit() {
            (Kind::Number, number(rest))
        } else if matches!(first, '\'' | '"') {
            (Kind::Text, quoted(rest, first)?)
        } else {
            let two = ["**", "//", "==", "!=", "<=", ">="].iter().any(|sign| rest.starts_with(sign));
            match first {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            (Kind::Sign, if two { 2 } else { first.len_utf8() })
        };
        tokens.push(Token { kind, text: &rest[..length] });
        at += length;
    }
    None
}

/// The length of a number: `1_000`, `0x1f`, `1.5`, `1e-5`.
fn number(text: &str) -> usize {
    let digits = |from: usize| {
        text[from..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(text.len(), |n| from + n)
    };
    let mut end = digits(0);
    let bytes = text.as_bytes();
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if !hexadecimal && matches!(bytes[end - 1], b'e' | b'E') && matches!(bytes.get(end), Some(b'+' | b'-')) {
        end = digits(end + 1);
    }
    end
}

/// The length of a string with its quotes.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

struct Rewriter<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
    /// Brackets are those of names that `for` or `set` gives values to.
    targets: bool,
    /// The brackets do not close, or are too many.
    failed: bool,
}

impl<'a> Rewriter<'a> {
    /// A whole tag.
    fn tag(mut self) -> Option<String> {
        let mut out = String::new();
        while self.at < self.tokens.len() {
            self.part(&mut out)?;
        }
        Some(out)
    }

    /// An expression, or a token that belongs to none.
    fn part(&mut self, out: &mut String) -> Option<()> {
        let start = self.at;
        match self.sum() {
            Some(text) => out.push_str(&text),
            None if self.failed => return None,
            None => {
                self.at = start;
                let token = self.tokens.get(start)?;
                if matches!(token.text, "in" | "=") {
                    self.targets = false;
                }
                out.push_str(token.text);
                self.at += 1;
            }
        }
        Some(())
    }

    fn space(&mut self) -> &'a str {
        match self.tokens.get(self.at) {
            Some(Token { kind: Kind::Space, text }) => {
                self.at += 1;
                text
            }
            _ => "",
        }
    }

    /// The next token that is no space, which stays.
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens[self.at..].iter().copied().find(|token| token.kind != Kind::Space)
    }

    /// `operand (operator operand)*`, grouped from the left.
    fn chain(&mut self, operators: &[&str], operand: fn(&mut Self) -> Option<String>) -> Option<String> {
        let before = self.at;
        let lead = self.space();
        let Some(mut left) = operand(self) else {
            self.at = before;
            return None;
        };
        loop {
            let start = self.at;
            let space = self.space();
            let Some(token) = self.tokens.get(self.at).filter(|token| operators.contains(&token.text)) else {
                self.at = start;
                return Some(format!("{lead}{left}"));
            };
            self.at += 1;
            let Some(right) = operand(self) else {
                self.at = start;
                return Some(format!("{lead}{left}"));
            };
            left = format!("{OPERATOR}('{}', {left}{space}, {right})", token.text);
        }
    }

    fn sum(&mut self) -> Option<String> {
        self.chain(&["+", "-"], Self::concat)
    }

    fn concat(&mut self) -> Option<String> {
        self.chain(&["~"], Self::product)
    }

    fn product(&mut self) -> Option<String> {
        self.chain(&["*", "/", "//", "%"], Self::power)
    }

    /// `a ** b`; Jinja groups it from the left, and a sign binds tighter.
    fn power(&mut self) -> Option<String> {
        self.chain(&["**"], |this| this.unary(true))
    }

    /// An operand with its sign; filters and tests hold for both.
    fn unary(&mut self, with_filters: bool) -> Option<String> {
        self.depth += 1;
        self.failed |= self.depth > DEEPEST;
        let start = self.at;
        let text = if self.failed { None } else { self.signed(with_filters) };
        if text.is_none() {
            self.at = start;
        }
        self.depth -= 1;
        text
    }

    fn signed(&mut self, with_filters: bool) -> Option<String> {
        let space = self.space();
        let sign = self.tokens.get(self.at)?.text;
        let mut text = if matches!(sign, "-" | "+") {
            self.at += 1;
            format!("{OPERATOR}('{sign}', {})", self.unary(false)?)
        } else {
            self.primary()?
        };
        self.postfix(&mut text)?;
        if with_filters {
            self.filters(&mut text)?;
        }
        Some(format!("{space}{text}"))
    }

    /// A name, literal or bracket.
    fn primary(&mut self) -> Option<String> {
        let token = *self.tokens.get(self.at)?;
        match token.kind {
            Kind::Name if !WORDS.contains(&token.text) => {
                self.at += 1;
                Some(token.text.to_owned())
            }
            Kind::Number => {
                self.at += 1;
                Some(token.text.to_owned())
            }
            Kind::Text => {
                self.at += 1;
                let mut text = token.text.to_owned();
                // Strings side by side are one.
                while self.peek().is_some_and(|next| next.kind == Kind::Text) {
                    text.push_str(self.space());
                    let next = self.tokens.get(self.at)?;
                    text = format!("{OPERATOR}('+', {text}, {})", next.text);
                    self.at += 1;
                }
                Some(text)
            }
            Kind::Sign if token.text == "(" => {
                let (inner, commas) = self.bracket()?;
                let tuple = !self.targets && (commas > 0 || inner.trim().is_empty());
                Some(if tuple { format!("{TUPLE}({inner})") } else { format!("({inner})") })
            }
            Kind::Sign if matches!(token.text, "[" | "{") => {
                let close = if token.text == "[" { "]" } else { "}" };
                let (inner, _) = self.bracket()?;
                Some(format!("{}{inner}{close}", token.text))
            }
            _ => None,
        }
    }

    /// What is inside a bracket, and the commas of its own level.
    fn bracket(&mut self) -> Option<(String, usize)> {
        let targets = std::mem::take(&mut self.targets);
        self.at += 1;
        let inside = self.inside();
        self.failed |= inside.is_none();
        self.at += 1;
        self.targets = targets;
        inside
    }

    fn inside(&mut self) -> Option<(String, usize)> {
        let (mut inner, mut commas) = (String::new(), 0);
        loop {
            let token = self.tokens.get(self.at)?;
            match token.text {
                ")" | "]" | "}" if token.kind == Kind::Sign => return Some((inner, commas)),
                "," => commas += 1,
                // `*names` and `**names` of a call are no products.
                "*" | "**" => {
                    inner.push_str(token.text);
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            self.part(&mut inner)?;
        }
    }

    /// A name, copied.
    fn name(&mut self, out: &mut String) -> Option<()> {
        out.push_str(self.space());
        let token = self.tokens.get(self.at).filter(|token| matches!(token.kind, Kind::Name | Kind::Number))?;
        out.push_str(token.text);
        self.at += 1;
        Some(())
    }

    /// `.name`, `[..]` and `(..)` after an operand.
    fn postfix(&mut self, out: &mut String) -> Option<()> {
        while let Some(next) = self.peek() {
            match (next.kind, next.text) {
                (Kind::Sign, ".") => {
                    out.push_str(self.space());
                    out.push('.');
                    self.at += 1;
                    self.name(out)?;
                }
                (Kind::Sign, open @ ("[" | "(")) => {
                    out.push_str(self.space());
                    let (inner, _) = self.bracket()?;
                    let close = if open == "[" { "]" } else { ")" };
                    out.extend([open, &inner, close]);
                }
                _ => return Some(()),
            }
        }
        Some(())
    }

    /// `| name(..)` and `is [not] name argument` after an operand.
    fn filters(&mut self, out: &mut String) -> Option<()> {
        while let Some(next) = self.peek() {
            match next.text {
                "|" => {
                    out.push_str(self.space());
                    out.push('|');
                    self.at += 1;
                    self.name(out)?;
                    self.postfix(out)?;
                }
                "is" if next.kind == Kind::Name => {
                    out.push_str(self.space());
                    out.push_str("is");
                    self.at += 1;
                    if self.peek()?.text == "not" {
                        self.name(out)?;
                    }
                    self.name(out)?;
                    let starts = self.peek().is_some_and(|next| match next.kind {
                        Kind::Name => !WORDS.contains(&next.text),
                        Kind::Number | Kind::Text => true,
                        Kind::Sign => matches!(next.text, "[" | "{" | "("),
                        Kind::Space => false,
                    });
                    if starts {
                        out.push_str(self.space());
                        if self.tokens.get(self.at)?.text == "(" {
                            let (inner, _) = self.bracket()?;
                            out.extend(["(", &inner, ")"]);
                        } else {
                            out.push_str(&self.primary()?);
                            self.postfix(out)?;
                        }
                    }
                }
                _ => return Some(()),
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_bind_as_in_jinja() {
        for (source, expected) in [
            ("{{ a ~ b }}", "{{ __operator('~', a , b) }}"),
            ("{{- a + b ~ c -}}", "{{- __operator('+', a , __operator('~', b , c)) -}}"),
            ("{{ '%s %%}' % x | upper }}", "{{ __operator('%', '%s %%}' , x | upper) }}"),
            ("{% if a %2 == 0 %}", "{% if __operator('%', a , 2) == 0 %}"),
            ("{{ f(*a, **b) }}{# a ~ b #}", "{{ f(*a, **b) }}{# a ~ b #}"),
            ("{% for (a, b) in (c, d) %}", "{% for (a, b) in __tuple(c, d) %}"),
            ("{% raw %}{{ a ~ b }}{% endraw %}", "{% raw %}{{ a ~ b }}{% endraw %}"),
        ] {
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ,", ",");
            assert_eq!(squeezed(&operators_as_calls(source)), squeezed(expected), "{source}");
        }
    }
}
