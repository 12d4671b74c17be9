//! CSV with a header line: fields between commas, quoted where they hold commas, quotes (doubled) or line breaks.

use std::path::Path;

use epikv_schemas::fs;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Largest file.
const MOST_BYTES: u64 = 1 << 30;

/// Each row as an object of texts; an empty field is null.
pub(super) fn read(path: &Path) -> Result<Vec<Map<String, Value>>> {
    let text = fs::read_text(path, MOST_BYTES)?;
    let bad = |line: usize, expected: String, got: String| Error::Field {
        path: path.to_owned(),
        unit: "record",
        line,
        expected,
        got,
    };
    let records = records(text.trim_start_matches('\u{feff}'))
        .map_err(|line| bad(line, "a closing quote".to_owned(), "the end of the file".to_owned()))?;
    let mut records = records.into_iter();
    let Some(header) = records.next() else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (at, record) in records.enumerate() {
        if record.len() != header.len() {
            let expected = format!("{} fields, as in the header", header.len());
            return Err(bad(at + 2, expected, format!("{} fields", record.len())));
        }
        let value = |text: String| if text.is_empty() { Value::Null } else { Value::String(text) };
        rows.push(header.iter().cloned().zip(record.into_iter().map(value)).collect());
    }
    Ok(rows)
}

/// The fields of each record that is not blank; the number of the record whose quote is not closed.
fn records(text: &str) -> std::result::Result<Vec<Vec<String>>, usize> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                let record = std::mem::take(&mut record);
                if record.len() > 1 || !record[0].is_empty() {
                    records.push(record);
                }
            }
            c => field.push(c),
        }
    }
    if quoted {
        return Err(records.len() + 1);
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_commas_quotes_and_line_breaks() {
        let text = "a,b\r\n\"x, \"\"y\"\"\nz\",025\n\n,1";
        assert_eq!(records(text).unwrap(), [vec!["a", "b"], vec!["x, \"y\"\nz", "025"], vec!["", "1"]]);
        assert_eq!(records("a\n\"b"), Err(2));
    }
}
