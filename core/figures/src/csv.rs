//! Fields of a CSV.

/// A field that may hold anything.
pub fn quoted(text: &str) -> String {
    let plain = !text.contains(['"', ',', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// A number in full; nothing where it is undefined.
pub fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Adds a row.
pub fn push_row(text: &mut String, fields: &[String]) {
    *text += &fields.join(",");
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!((quoted("a b"), quoted("a,\"b\"")), ("a b".to_owned(), "\"a,\"\"b\"\"\"".to_owned()));
        assert_eq!((number::<f64>(None), number(Some(0.5))), (String::new(), "0.5".to_owned()));
    }
}
