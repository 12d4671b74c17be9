//! Header of one safetensors file: where each tensor lies, checked against the file before anything is read.
//!
//! Layout: `u64` length `n` (little endian), `n` bytes of JSON `{name: {dtype, shape, data_offsets: [from, to]}}`, then the
//! data, which the tensors cover without hole or overlap. The format's own library wants the whole file in memory or
//! mapped; here only the header is read, and each tensor's bytes later on demand.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// As in the format's own library.
const MAX_HEADER_BYTES: u64 = 100_000_000;
const LENGTH_BYTES: u64 = 8;

/// How numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    F32,
    F16,
    Bf16,
}

impl Stored {
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) stored: Stored,
    pub(super) shape: Vec<usize>,
    /// Bytes from the start of the file.
    pub(super) bytes: Range<u64>,
}

/// Reads and checks the header of `file`, which is called `path` in errors; entries come in the order of their data.
pub(super) fn read(path: &Path, file: &mut (impl Read + ?Sized), file_bytes: u64) -> Result<Vec<Entry>> {
    let mut length = [0; LENGTH_BYTES as usize];
    if file_bytes < LENGTH_BYTES {
        return Err(damaged(path, "length of the header", "8 bytes", format!("{file_bytes} bytes")));
    }
    file.read_exact(&mut length).map_err(Error::io(path))?;
    let header_bytes = u64::from_le_bytes(length);
    let room = (file_bytes - LENGTH_BYTES).min(MAX_HEADER_BYTES);
    if header_bytes > room {
        return Err(damaged(path, "header", format!("at most {room} bytes"), format!("{header_bytes} bytes")));
    }
    let mut header = vec![0; header_bytes as usize];
    file.read_exact(&mut header).map_err(Error::io(path))?;
    let object: Map<String, Value> = serde_json::from_slice(&header)
        .map_err(|error| damaged(path, "header", "a JSON object", format!("bytes that do not parse ({error})")))?;

    let data = LENGTH_BYTES + header_bytes..file_bytes;
    let mut entries = Vec::with_capacity(object.len());
    for (name, value) in object.iter().filter(|(name, _)| *name != "__metadata__") {
        entries.push(entry(path, name, value, &data)?);
    }
    entries.sort_by_key(|entry| (entry.bytes.start, entry.bytes.end));
    check_cover(path, &entries, &data)?;
    Ok(entries)
}

fn entry(path: &Path, name: &str, value: &Value, data: &Range<u64>) -> Result<Entry> {
    let what = |part: &str| format!("tensor {name}, {part}");
    let numbers =
        |field: &str| -> Option<Vec<u64>> { value.get(field)?.as_array()?.iter().map(Value::as_u64).collect() };
    let stored = match value.get("dtype").and_then(Value::as_str) {
        Some("F32") => Stored::F32,
        Some("F16") => Stored::F16,
        Some("BF16") => Stored::Bf16,
        other => {
            return Err(Error::Config {
                path: path.to_owned(),
                field: what("dtype"),
                expected: "F32, F16 or BF16".to_owned(),
                got: other.unwrap_or("nothing").to_owned(),
            });
        }
    };
    let Some(shape) = numbers("shape") else {
        return Err(damaged(path, what("shape"), "a list of sizes", value.to_string()));
    };
    let Some(&[from, to]) = numbers("data_offsets").as_deref() else {
        return Err(damaged(path, what("offsets"), "two numbers", value.to_string()));
    };
    let room = data.end - data.start;
    if from > to || to > room {
        return Err(damaged(
            path,
            what("bytes"),
            format!("within the {room} bytes of data"),
            format!("{from} to {to}"),
        ));
    }
    let needed = shape.iter().try_fold(stored.bytes() as u64, |product, &size| product.checked_mul(size));
    if needed != Some(to - from) {
        let needed = needed.map_or("more than any file has".to_owned(), |bytes| bytes.to_string());
        let expected = format!("{needed} bytes for {stored:?} {shape:?}");
        return Err(damaged(path, what("bytes"), expected, (to - from).to_string()));
    }
    let shape = shape.iter().map(|&size| usize::try_from(size)).collect::<std::result::Result<_, _>>();
    let shape = shape.map_err(|_| damaged(path, what("shape"), "sizes of this machine", value.to_string()))?;
    Ok(Entry { name: name.to_owned(), stored, shape, bytes: data.start + from..data.start + to })
}

/// The tensors, sorted by place, must lie end to end and fill the data.
fn check_cover(path: &Path, entries: &[Entry], data: &Range<u64>) -> Result<()> {
    let mut at = data.start;
    for entry in entries {
        if entry.bytes.start != at {
            let kind = if entry.bytes.start < at { "an overlap" } else { "a hole" };
            let got = format!("{kind}: byte {}", entry.bytes.start - data.start);
            return Err(damaged(
                path,
                format!("tensor {}, start", entry.name),
                format!("byte {}", at - data.start),
                got,
            ));
        }
        at = entry.bytes.end;
    }
    if at == data.end {
        return Ok(());
    }
    let expected = format!("{} bytes, as its tensors say", at - data.start);
    Err(damaged(path, "data", expected, format!("{} bytes", data.end - data.start)))
}

fn damaged(path: &Path, what: impl Into<String>, expected: impl Into<String>, got: String) -> Error {
    Error::Damaged { path: path.to_owned(), what: what.into(), expected: expected.into(), got }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Result<Vec<Entry>> {
        read(Path::new("x"), &mut &bytes[..], bytes.len() as u64)
    }

    fn file(header: &str, data_bytes: usize) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; data_bytes]].concat()
    }

    fn message(header: &str, data_bytes: usize) -> String {
        match parsed(&file(header, data_bytes)) {
            Ok(entries) => format!("{} entries", entries.len()),
            Err(error) => error.to_string().split_once("x: ").unwrap().1.to_owned(),
        }
    }

    #[test]
    fn good_headers_pass_with_metadata_and_padding() {
        let header = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   "#;
        assert_eq!(message(header, 8), "1 entries");
        assert_eq!(message("{}", 0), "0 entries");
    }

    #[test]
    fn each_damage_names_the_tensor_and_both_numbers() {
        let a = r#""a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
        assert_eq!(message(&format!("{{{a}}}"), 7), "tensor a, bytes: expected within the 7 bytes of data, got 0 to 8");
        assert_eq!(message(&format!("{{{a}}}"), 9), "data: expected 8 bytes, as its tensors say, got 9 bytes");
        let b = r#""b":{"dtype":"F16","shape":[2],"data_offsets":[6,10]}"#;
        assert_eq!(message(&format!("{{{a},{b}}}"), 10), "tensor b, start: expected byte 8, got an overlap: byte 6");
        let c = r#""c":{"dtype":"BF16","shape":[],"data_offsets":[9,11]}"#;
        assert_eq!(message(&format!("{{{a},{c}}}"), 11), "tensor c, start: expected byte 8, got a hole: byte 9");
        let wrong = r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#;
        assert_eq!(message(wrong, 8), "tensor a, bytes: expected 12 bytes for F32 [3], got 8");
        let reversed = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#;
        assert!(message(reversed, 8).contains("got 8 to 0"));
    }

    #[test]
    fn absurd_sizes_end_at_once() {
        let huge = r#"{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}"#;
        assert!(message(huge, 8).contains("more than any file has"));
        let text = parsed(&u64::MAX.to_le_bytes()).unwrap_err().to_string();
        assert!(text.contains("header: expected at most 0 bytes"), "{text}");
        assert!(parsed(&[1, 2, 3]).unwrap_err().to_string().contains("expected 8 bytes, got 3 bytes"));
    }

    #[test]
    fn other_types_are_named() {
        let header = r#"{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}"#;
        assert_eq!(message(header, 2), "tensor a, dtype: expected F32, F16 or BF16, got F8_E4M3");
        assert!(message(r#"{"a":3}"#, 0).contains("got nothing"));
        assert!(message("not json", 0).contains("a JSON object"));
    }

    #[test]
    fn any_cut_or_flipped_byte_is_an_error_or_a_header_but_no_panic() {
        let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F16","shape":[3],"data_offsets":[8,14]}}"#;
        let good = file(header, 14);
        for length in (0..good.len()).step_by(7) {
            assert!(parsed(&good[..length]).is_err(), "cut at {length}");
        }
        for at in 0..good.len() {
            for mask in [0x01, 0x10, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= mask;
                let _ = parsed(&bytes);
            }
        }
    }
}
