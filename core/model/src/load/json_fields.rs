//! Typed access to a JSON object whose errors name the file, the field, what was expected and what stands there.

use std::path::Path;

use serde_json::{Map, Value};

use super::files::ModelFiles;
use crate::error::{Error, Result};

/// Reads and parses a JSON file whose top level is an object.
pub(crate) fn read_object(files: &ModelFiles, file: &str) -> Result<Map<String, Value>> {
    let path = files.path(file);
    match serde_json::from_slice(&files.read(file)?) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(Error::Config {
            path,
            field: "top level".to_owned(),
            expected: "an object".to_owned(),
            got: shown(Some(&other)),
        }),
        Err(source) => Err(Error::Json { path, source }),
    }
}

/// One object of a configuration file. A field that is `null` counts as absent, as it does in Transformers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    path: &'a Path,
    /// Dotted place of the object inside the file, empty for the top level.
    prefix: &'a str,
    object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(path: &'a Path, prefix: &'a str, object: &'a Map<String, Value>) -> Self {
        Self { path, prefix, object }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Whether the field stands in the file at all, `null` included.
    pub(super) fn has(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    /// The error that `name` deserves, with what stands there.
    pub(super) fn error(&self, name: &str, expected: impl Into<String>) -> Error {
        let dot = if self.prefix.is_empty() { "" } else { "." };
        Error::Config {
            path: self.path.to_owned(),
            field: format!("{}{dot}{name}", self.prefix),
            expected: expected.into(),
            got: shown(self.get(name)),
        }
    }

    fn typed<T>(&self, name: &str, expected: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.error(name, expected)),
        }
    }

    pub(super) fn size(&self, name: &str) -> Result<Option<usize>> {
        self.typed(name, "a whole number", |value| value.as_u64().and_then(|n| usize::try_from(n).ok()))
    }

    pub(super) fn needed_size(&self, name: &str) -> Result<usize> {
        self.size(name)?.ok_or_else(|| self.error(name, "a whole number"))
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>> {
        self.typed(name, "a number", Value::as_f64)
    }

    pub(super) fn needed_number(&self, name: &str) -> Result<f64> {
        self.number(name)?.ok_or_else(|| self.error(name, "a number"))
    }

    /// `false` where absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.typed(name, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.typed(name, "a text", Value::as_str)
    }

    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>> {
        self.typed(name, "a list of texts", |value| value.as_array()?.iter().map(Value::as_str).collect())
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>> {
        self.typed(name, "an object", Value::as_object)
    }

    /// Token ids written as one number or as a list; empty where absent.
    pub(super) fn ids(&self, name: &str) -> Result<Vec<u32>> {
        let one = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        let many = |value: &Value| match value {
            Value::Array(ids) => ids.iter().map(one).collect(),
            id => one(id).map(|id| vec![id]),
        };
        Ok(self.typed(name, "a token id or a list of token ids", many)?.unwrap_or_default())
    }

    /// A token id; `-1` is how some configurations write "none".
    pub(super) fn id(&self, name: &str) -> Result<Option<u32>> {
        if self.get(name).and_then(Value::as_i64) == Some(-1) {
            return Ok(None);
        }
        self.typed(name, "a token id", |value| value.as_u64().and_then(|id| u32::try_from(id).ok()))
    }
}

/// A value as it is shown in an error: compact, and cut where it gets long.
fn shown(value: Option<&Value>) -> String {
    const MAX_CHARS: usize = 80;
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_wrong_type_names_field_expected_and_got() {
        let map = object(r#"{"n": "four"}"#);
        let fields = Fields::new(Path::new("config.json"), "rope", &map);
        let text = fields.size("n").unwrap_err().to_string();
        assert_eq!(text, "config.json: rope.n: expected a whole number, got \"four\"");
    }

    #[test]
    fn null_counts_as_absent() {
        let map = object(r#"{"n": null, "ids": null}"#);
        let fields = Fields::new(Path::new("config.json"), "", &map);
        assert_eq!(fields.size("n").unwrap(), None);
        assert!(fields.ids("ids").unwrap().is_empty());
        assert!(fields.needed_size("n").unwrap_err().to_string().ends_with("got nothing"));
    }

    #[test]
    fn ids_are_one_or_many_and_minus_one_is_none() {
        let map = object(r#"{"one": 2, "many": [3, 4], "none": -1, "bad": [1, "x"]}"#);
        let fields = Fields::new(Path::new("config.json"), "", &map);
        assert_eq!(fields.ids("one").unwrap(), [2]);
        assert_eq!(fields.ids("many").unwrap(), [3, 4]);
        assert_eq!(fields.id("none").unwrap(), None);
        assert!(fields.ids("bad").is_err());
    }

    #[test]
    fn long_values_are_cut_at_a_character() {
        let text = shown(Some(&Value::String("é".repeat(200))));
        assert!(text.ends_with("...") && text.chars().count() == 83);
    }
}
