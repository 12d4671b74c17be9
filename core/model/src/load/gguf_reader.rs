//! Reads the bytes of a GGUF header in order. Nothing is read or allocated beyond the file.

use std::io::Read;
use std::path::Path;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;

use super::gguf_types::{self, READABLE};
use crate::error::{Error, Result};

/// Elements of all metadata arrays together; vocabularies with their merges stay far below.
const MAX_ARRAY_ELEMENTS: u64 = 1 << 24;
const MAX_ARRAY_DEPTH: usize = 4;
const MAX_DIMS: u32 = 4;

/// A tensor as the file declares it: name, format, shape (slowest dimension first), offset into the data.
pub(super) type Declared = (String, GgmlDType, Vec<usize>, u64);

/// The file from front to back, with the number of bytes that are left.
pub(super) struct Reader<'a> {
    path: &'a Path,
    file: &'a mut dyn Read,
    at: u64,
    end: u64,
    /// Array elements read so far.
    elements: u64,
}

impl<'a> Reader<'a> {
    /// `file` holds `end` bytes; `path` is its name in errors.
    pub(super) fn new(path: &'a Path, file: &'a mut dyn Read, end: u64) -> Self {
        Self { path, file, at: 0, end, elements: 0 }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes of the file.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    pub(super) fn damaged(&self, what: impl Into<String>, expected: impl Into<String>, got: String) -> Error {
        Error::Damaged { path: self.path.to_owned(), what: what.into(), expected: expected.into(), got }
    }

    /// Fails before anything is read or allocated if the file has fewer than `n` bytes left.
    fn need(&self, what: &str, n: u64) -> Result<()> {
        if n <= self.left() {
            return Ok(());
        }
        Err(self.damaged(what, format!("{n} bytes at byte {}", self.at), format!("{} before the end", self.left())))
    }

    fn fill(&mut self, what: &str, bytes: &mut [u8]) -> Result<()> {
        self.need(what, bytes.len() as u64)?;
        self.file.read_exact(bytes).map_err(Error::io(self.path))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(what, &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Bytes that are not UTF-8 are replaced: some vocabularies in use have a few.
    pub(super) fn text(&mut self, what: &str) -> Result<String> {
        let length = self.u64(what)?;
        self.need(what, length)?;
        let mut bytes = vec![0; length as usize];
        self.fill(what, &mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    pub(super) fn magic(&mut self) -> Result<()> {
        let magic: [u8; 4] = self.array("magic")?;
        if &magic != b"GGUF" {
            return Err(self.damaged("magic", "GGUF", magic.escape_ascii().to_string()));
        }
        match self.u32("version")? {
            2 | 3 => Ok(()),
            other => Err(Error::Config {
                path: self.path.to_owned(),
                field: "version".to_owned(),
                expected: "2 or 3, little endian".to_owned(),
                got: other.to_string(),
            }),
        }
    }

    pub(super) fn value(&mut self, key: &str, kind: u32, depth: usize) -> Result<Value> {
        Ok(match kind {
            0 => Value::U8(u8::from_le_bytes(self.array(key)?)),
            1 => Value::I8(i8::from_le_bytes(self.array(key)?)),
            2 => Value::U16(u16::from_le_bytes(self.array(key)?)),
            3 => Value::I16(i16::from_le_bytes(self.array(key)?)),
            4 => Value::U32(self.u32(key)?),
            5 => Value::I32(i32::from_le_bytes(self.array(key)?)),
            6 => Value::F32(f32::from_le_bytes(self.array(key)?)),
            7 => match self.array(key)? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [other] => return Err(self.damaged(key, "0 or 1", other.to_string())),
            },
            8 => Value::String(self.text(key)?),
            9 => self.list(key, depth)?,
            10 => Value::U64(self.u64(key)?),
            11 => Value::I64(i64::from_le_bytes(self.array(key)?)),
            12 => Value::F64(f64::from_le_bytes(self.array(key)?)),
            other => return Err(self.damaged(key, "a metadata type of 0 to 12", other.to_string())),
        })
    }

    fn list(&mut self, key: &str, depth: usize) -> Result<Value> {
        let kind = self.u32(key)?;
        let length = self.u64(key)?;
        self.need(key, length)?; // each element takes at least a byte
        self.elements += length;
        if self.elements > MAX_ARRAY_ELEMENTS || depth >= MAX_ARRAY_DEPTH {
            let expected = format!("lists of {MAX_ARRAY_ELEMENTS} elements in all, nested {MAX_ARRAY_DEPTH} deep");
            return Err(self.damaged(key, expected, format!("{length} more at depth {}", depth + 1)));
        }
        let mut values = Vec::new();
        for _ in 0..length {
            values.push(self.value(key, kind, depth + 1)?);
        }
        Ok(Value::Array(values))
    }

    pub(super) fn tensor(&mut self) -> Result<Declared> {
        let name = self.text("a tensor name")?;
        let what = format!("tensor {name}");
        let n_dims = self.u32(&what)?;
        if !(1..=MAX_DIMS).contains(&n_dims) {
            return Err(self.damaged(what, format!("1 to {MAX_DIMS} dimensions"), n_dims.to_string()));
        }
        let mut shape = Vec::new();
        for _ in 0..n_dims {
            let size = self.u64(&what)?;
            shape.push(
                usize::try_from(size).map_err(|_| self.damaged(&what, "sizes of this machine", size.to_string()))?,
            );
        }
        shape.reverse();
        let format = gguf_types::format(self.u32(&what)?).map_err(|got| Error::Config {
            path: self.path.to_owned(),
            field: format!("{what}, type"),
            expected: READABLE.to_owned(),
            got,
        })?;
        Ok((name, format, shape, self.u64(&what)?))
    }
}
