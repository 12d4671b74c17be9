//! Differences between minijinja and the Jinja that Transformers runs.

use std::borrow::Cow;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Output, State, Value};

/// Prints a value as Python would: `True`, `False`, `None`; the rest as minijinja does.
pub(super) fn write(out: &mut Output, state: &State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" }).map_err(Error::from),
        ValueKind::None => out.write_str("None").map_err(Error::from),
        _ => minijinja::escape_formatter(out, state, value),
    }
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

/// The error of an operation that makes no sense.
pub(super) fn invalid(detail: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
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
