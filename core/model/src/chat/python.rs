//! Differences between minijinja and the Jinja that Transformers runs.

use std::borrow::Cow;

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::values::{Tuple, invalid, is_list, within};

/// Values inside values that are printed.
const DEEPEST: usize = 100;

/// Python's `str(value)`; undefined is empty.
pub(super) fn text(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(String::new()),
        ValueKind::String => Ok(value.as_str().unwrap_or_default().to_owned()),
        _ => repr(value),
    }
}

/// Python's `repr(value)`.
pub(super) fn repr(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_repr(&mut out, value, 0)?;
    Ok(out)
}

fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    within(out.len())?;
    if depth > DEEPEST {
        return Err(invalid(format!("expected values at most {DEEPEST} deep")));
    }
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
        ValueKind::Number => out.push_str(&float(f64::try_from(value.clone())?)),
        ValueKind::String => quote(out, value.as_str().unwrap_or_default()),
        ValueKind::Map => {
            out.push('{');
            for (n, key) in value.try_iter()?.enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                write_repr(out, &key, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        _ if is_list(value) => {
            let tuple = value.downcast_object_ref::<Tuple>().is_some();
            let count = value.len().unwrap_or(0);
            out.push(if tuple { '(' } else { '[' });
            for (n, item) in value.try_iter()?.enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                write_repr(out, &item, depth + 1)?;
            }
            out.push_str(if tuple && count == 1 { "," } else { "" });
            out.push(if tuple { ')' } else { ']' });
        }
        // Functions and generators print an address in Python, which no prompt can hold.
        _ => return Err(invalid(format!("a value of type {} has no text", value.kind()))),
    }
    Ok(())
}

/// Python's `repr(float)`: the shortest digits that give the number back, with an exponent below 1e-4 and from 1e16.
pub(super) fn float(x: f64) -> String {
    if !x.is_finite() {
        return if x.is_nan() {
            "nan"
        } else if x > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let scientific = format!("{x:e}");
    let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    if (-4..16).contains(&power) || x == 0.0 {
        return format!("{x:?}");
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}

fn quote(out: &mut String, text: &str) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => escape(out, c),
        }
    }
    out.push(mark);
}

/// Python prints these as they are: no controls, no separators but the space, nothing without a glyph.
pub(super) fn is_printable(c: char) -> bool {
    let hidden = matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}'
        | '\u{e0001}'..='\u{e007f}' | '\u{f0000}'..='\u{10ffff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || hidden)
}

fn escape(out: &mut String, c: char) {
    let code = u32::from(c);
    let text = match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    };
    out.push_str(&text);
}

/// Python's `ascii`, of what `repr` gives.
pub(super) fn ascii(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii() { out.push(c) } else { escape(&mut out, c) }
    }
    out
}

/// `{% generation %}` marks what the assistant wrote, for training; Transformers ignores it when it renders a prompt.
/// It becomes a condition that always holds, which keeps the tag's own trimming of spaces.
pub(super) fn without_generation_tags(source: &str) -> Cow<'_, str> {
    if !source.contains("generation") {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(length) = rest[start..].find("%}") else { break };
        let (inner_start, inner_end) = (start + 2, start + length);
        let inner = &rest[inner_start..inner_end];
        out.push_str(&rest[..inner_start]);
        match inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+') {
            "generation" => out.push_str(&inner.replace("generation", " if true ")),
            "endgeneration" => out.push_str(&inner.replace("endgeneration", " endif ")),
            _ => out.push_str(inner),
        }
        out.push_str("%}");
        rest = &rest[inner_end + 2..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tag_itself_is_replaced() {
        let source = "{% if add_generation_prompt %}{%- generation %}x{% endgeneration -%}{% endif %}";
        assert_eq!(
            without_generation_tags(source),
            "{% if add_generation_prompt %}{%-  if true  %}x{%  endif  -%}{% endif %}"
        );
    }
}
