//! Rows of JSON lines, Parquet or CSV, of one file or of a folder of parts, with lookups whose errors name file, line, expected and got.

mod csv;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use epikv_schemas::fs;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Characters of an unexpected value that an error shows.
const EXCERPT: usize = 60;

/// One object and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    path: PathBuf,
    unit: &'static str,
    pub(crate) line: usize,
    /// The data set's name where the file does not say: that of the file or of the folder of parts.
    set: String,
    values: Map<String, Value>,
}

/// The files that an input is made of: itself, or the parts of a folder by name.
///
/// # Errors
/// If a folder cannot be read or has no part.
pub fn parts(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let part = entry.map_err(failed)?.path();
        let known = part.extension().is_some_and(|end| ["parquet", "jsonl", "csv"].iter().any(|known| end == *known));
        if known && part.is_file() {
            parts.push(part);
        }
    }
    parts.sort();
    if parts.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), expected: "part that ends in .parquet, .jsonl or .csv" });
    }
    Ok(parts)
}

/// Reads all rows of an input: Parquet and CSV by the ends of their names, else JSON lines.
pub(crate) fn read(path: &Path, expected: &'static str) -> Result<Vec<Row>> {
    let set = stem(path);
    let mut rows = Vec::new();
    for part in parts(path)? {
        rows.extend(read_part(&part, expected)?.into_iter().map(|row| Row { set: set.clone(), ..row }));
    }
    Ok(rows)
}

fn read_part(path: &Path, expected: &'static str) -> Result<Vec<Row>> {
    let objects = match path.extension().and_then(|end| end.to_str()) {
        Some("parquet") => epikv_schemas::foreign::read_rows(path)?,
        Some("csv") => csv::read(path)?,
        _ => return read_json_lines(path, expected),
    };
    if objects.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), expected });
    }
    let row = |(index, values)| Row { path: path.to_owned(), unit: "row", line: index + 1, set: String::new(), values };
    Ok(objects.into_iter().enumerate().map(row).collect())
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read_json_lines(path: &Path, expected: &'static str) -> Result<Vec<Row>> {
    let row = |(line, values)| Row { path: path.to_owned(), unit: "line", line, set: stem(path), values };
    let rows = fs::json_lines(path, "a JSON object")?.map(|object| Ok(row(object?))).collect::<Result<Vec<_>>>()?;
    if rows.is_empty() { Err(Error::Empty { path: path.to_owned(), expected }) } else { Ok(rows) }
}

/// Fails at the second row with the same id.
pub(crate) fn check_unique<'a>(rows: &[Row], ids: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashMap::new();
    for (row, id) in rows.iter().zip(ids) {
        if let Some(first) = seen.insert(id, row.line) {
            return Err(Error::DuplicateId {
                path: row.path.clone(),
                unit: row.unit,
                line: row.line,
                first,
                id: id.to_owned(),
            });
        }
    }
    Ok(())
}

impl Row {
    /// The data set's name where the file does not say.
    pub(crate) fn stem(&self) -> String {
        self.set.clone()
    }

    /// A name from file and line, for rows that bring none.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", stem(&self.path), self.line)
    }

    /// The first of several fields that is there and not null.
    pub(crate) fn get(&self, names: &[&str]) -> Option<(&Value, String)> {
        let set = |name: &&&str| self.values.get(**name).filter(|value| !value.is_null());
        names.iter().find(|name| set(name).is_some()).and_then(|name| Some((set(&name)?, (*name).to_owned())))
    }

    /// A string field, or a number as its text.
    pub(crate) fn text(&self, names: &[&str]) -> Result<Option<String>> {
        let Some((value, name)) = self.get(names) else { return Ok(None) };
        self.scalar(value, &name, "a string or a number").map(Some)
    }

    /// Text of a string or a number.
    pub(crate) fn scalar(&self, value: &Value, name: &str, expected: &str) -> Result<String> {
        match scalar(value) {
            Some(text) => Ok(text),
            None if value.is_number() => {
                Err(self.unexpected(name, "text, since a number this large must be text to keep its digits,", value))
            }
            None => Err(self.unexpected(name, expected, value)),
        }
    }

    /// The texts of a list of strings and numbers, or of one of them.
    pub(crate) fn texts(&self, value: &Value, name: &str) -> Result<Vec<String>> {
        let expected = "a string, a number or a list of them";
        match value.as_array() {
            Some(items) => items.iter().map(|item| self.scalar(item, name, expected)).collect(),
            None => Ok(vec![self.scalar(value, name, expected)?]),
        }
    }

    /// As [`Row::text`], for a field that must be there and hold more than spaces.
    pub(crate) fn required_text(&self, names: &[&str]) -> Result<String> {
        let text = self.text(names)?.ok_or_else(|| self.missing(names))?;
        if text.trim().is_empty() {
            return Err(self.error(format!("text in {}", quoted(names)), "an empty string".to_owned()));
        }
        Ok(text)
    }

    /// A count or an index.
    pub(crate) fn count(&self, names: &[&str]) -> Result<Option<usize>> {
        let Some((value, name)) = self.get(names) else { return Ok(None) };
        // A CSV file has nothing but text.
        let count =
            value.as_u64().or_else(|| value.as_str()?.parse().ok()).and_then(|count| usize::try_from(count).ok());
        count.map(Some).ok_or_else(|| self.unexpected(&name, "a count", value))
    }

    /// A number.
    pub(crate) fn number(&self, names: &[&str]) -> Result<Option<f64>> {
        let Some((value, name)) = self.get(names) else { return Ok(None) };
        value
            .as_f64()
            .or_else(|| value.as_str()?.parse().ok())
            .map(Some)
            .ok_or_else(|| self.unexpected(&name, "a number", value))
    }

    /// A list of token ids below `vocab_size`.
    pub(crate) fn token_ids(&self, names: &[&str], vocab_size: usize) -> Result<Option<Vec<u32>>> {
        let Some((value, name)) = self.get(names) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(self.unexpected(&name, "a list of token ids", value)) };
        let mut ids = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let id = item.as_i64().ok_or_else(|| self.unexpected(&name, "a list of token ids", item))?;
            match u32::try_from(id) {
                Ok(fits) if (fits as usize) < vocab_size => ids.push(fits),
                _ => {
                    return Err(Error::TokenOutOfVocabulary {
                        path: self.path.clone(),
                        unit: self.unit,
                        line: self.line,
                        id,
                        at,
                        vocab_size,
                    });
                }
            }
        }
        Ok(Some(ids))
    }

    /// The error for a field that is not there.
    pub(crate) fn missing(&self, names: &[&str]) -> Error {
        let keys: Vec<_> = self.values.keys().map(String::as_str).collect();
        self.error(quoted(names), format!("the fields {}", keys.join(", ")))
    }

    /// The error for a field of another kind.
    pub(crate) fn unexpected(&self, name: &str, expected: &str, got: &Value) -> Error {
        let got: String = got.to_string().chars().take(EXCERPT).collect();
        self.error(format!("{expected} in `{name}`"), got)
    }

    /// The error for a problem of more bytes than any model reads.
    pub(crate) fn too_long(&self, limit: usize, got: usize) -> Error {
        Error::LongProblem { path: self.path.clone(), unit: self.unit, line: self.line, limit, got }
    }

    pub(crate) fn error(&self, expected: String, got: String) -> Error {
        Error::Field { path: self.path.clone(), unit: self.unit, line: self.line, expected, got }
    }
}

/// Text of a string or number. Whole numbers lose their point: SVAMP writes `145.0` for 145. Numbers too large for a float
/// to hold exactly are refused: they must be written as text.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    /// Whole floats up to here are exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
                Some(format!("{float:.0}"))
            }
            // Its digits are already lost.
            Some(float) if number.is_f64() && float.abs() >= EXACT => None,
            _ => Some(number.to_string()),
        },
        _ => None,
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: impl AsRef<[u8]>) -> Result<Vec<Row>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.jsonl");
        std::fs::write(&path, text).unwrap();
        read_json_lines(&path, "problem")
    }

    #[test]
    fn a_broken_line_is_named() {
        let text = format!("\u{FEFF}{}\r\n\n", "{\"a\": 1}\n".repeat(15)) + "{\"a\": }\n";
        let error = rows(&text).unwrap_err();
        assert!(matches!(&error, Error::Schemas(epikv_schemas::Error::BadLine { line: 18, .. })), "{error}");
        assert!(
            error.to_string().contains("set.jsonl, line 18: expected a JSON object, got \"{\\\"a\\\": }\""),
            "{error}"
        );
        assert!(matches!(rows("[1]"), Err(Error::Schemas(epikv_schemas::Error::BadLine { line: 1, .. }))));
        let error = rows(b"{}\n{\"a\": \"\xFF\"}").unwrap_err().to_string();
        assert!(error.contains("line 2: expected UTF-8 text, got another byte at 7"), "{error}");
    }

    #[test]
    fn an_empty_file_is_an_error() {
        assert!(matches!(rows("\n \n"), Err(Error::Empty { expected: "problem", .. })));
    }

    #[test]
    fn numbers_become_text() {
        let row = &rows(r#"{"a": 145.0, "b": 25, "c": 0.25, "d": "025", "e": -3.0}"#).unwrap()[0];
        let texts: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(|name| row.text(&[name]).unwrap().unwrap()).collect();
        assert_eq!(texts, ["145", "25", "0.25", "025", "-3"]);
    }

    #[test]
    fn lookups_name_what_is_wrong() {
        let row = &rows(r#"{"a": null, "b": [1], "ids": [3, 9, -1], "n": 1.5, "e": " "}"#).unwrap()[0];
        assert_eq!(row.text(&["a"]).unwrap(), None);
        assert!(row.required_text(&["a", "z"]).unwrap_err().to_string().contains("`a` or `z`"));
        assert!(row.required_text(&["e"]).unwrap_err().to_string().contains("empty"));
        assert!(row.text(&["b"]).unwrap_err().to_string().contains("in `b`, got [1]"));
        assert!(row.count(&["n"]).is_err());
        let error = row.token_ids(&["ids"], 9).unwrap_err();
        assert!(matches!(error, Error::TokenOutOfVocabulary { id: 9, at: 1, line: 1, .. }), "{error}");
        assert!(matches!(row.token_ids(&["ids"], 10), Err(Error::TokenOutOfVocabulary { id: -1, at: 2, .. })));
    }
}
