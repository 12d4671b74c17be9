//! Escapes text for HTML. All text goes through this module.

use std::fmt;

/// A text that is escaped when it is shown: safe between tags and inside a double-quoted attribute.
///
/// The five characters with a meaning become entities. Control characters, which have no place in a page, become the
/// replacement character; line breaks and tabs stay.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => write!(f, "{c}")?,
                '\r' => f.write_str("&#13;")?,
                c if c.is_control() => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// What a page shows where a record holds null.
pub(crate) const NULL: &str = "-";

/// A text that may be null.
pub(crate) fn or_null(text: Option<&str>) -> String {
    text.map_or_else(|| NULL.to_owned(), |text| Escaped(text).to_string())
}

/// A text that may be written from right to left and must not turn what stands beside it, as HTML.
pub(crate) fn isolated(text: &str) -> String {
    format!("<bdi>{}</bdi>", Escaped(text))
}

/// A row of table cells whose contents are HTML already.
pub(crate) fn table_row(cell: &str, cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|content| format!("<{cell}>{content}</{cell}>")).collect();
    format!("<tr>{}</tr>\n", cells.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_turns_nothing_beside_it() {
        assert_eq!(isolated("مسألة<1>"), "<bdi>مسألة&lt;1&gt;</bdi>");
    }

    #[test]
    fn nothing_with_a_meaning_is_left() {
        assert_eq!(Escaped(r#"<a b="c" d='e'>&amp;"#).to_string(), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;");
        assert_eq!(
            Escaped("a\u{0}\u{1b}[1m\u{85}\tb\r\nc é 数").to_string(),
            "a\u{fffd}\u{fffd}[1m\u{fffd}\tb&#13;\nc é 数"
        );
        assert_eq!((or_null(None), or_null(Some("<"))), ("-".to_owned(), "&lt;".to_owned()));
    }
}
