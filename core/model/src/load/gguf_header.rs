//! Header of a GGUF file: metadata and the place of each tensor, every size checked against the file before it is used.
//!
//! Layout (little endian): magic, version 2 or 3, counts of tensors and of metadata entries, the entries
//! `key type value`, the tensors `name n_dims dims type offset`, then the data, aligned. Candle's own reader is not used
//! since it stops at the first unknown tensor type without naming the tensor, and divides by an alignment of zero.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;

use super::gguf_reader::{Declared, Reader};
use crate::error::{Error, Result};

const MAX_ALIGNMENT: u64 = 1 << 20;

/// A GGUF file without its weights.
#[derive(Debug)]
pub struct GgufHeader {
    path: PathBuf,
    metadata: HashMap<String, Value>,
    tensors: BTreeMap<String, GgufTensor>,
}

/// One tensor of a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GgufTensor {
    pub(super) format: GgmlDType,
    /// Slowest dimension first, as in Hugging Face files (this file has them the other way round).
    pub(super) shape: Vec<usize>,
    /// Bytes from the start of the file.
    pub(super) bytes: Range<u64>,
}

impl GgufHeader {
    /// Reads and checks the header of a file.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        let about = file.metadata().map_err(Error::io(path))?;
        if !about.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        let end = about.len();
        Self::parse(path, &mut BufReader::new(file), end)
    }

    fn parse(path: &Path, file: &mut dyn Read, end: u64) -> Result<Self> {
        let mut reader = Reader::new(path, file, end);
        reader.magic()?;
        let n_tensors = reader.u64("number of tensors")?;
        let n_entries = reader.u64("number of metadata entries")?;
        // An entry takes at least 13 bytes, a tensor 24.
        let least = n_entries.saturating_mul(13).saturating_add(n_tensors.saturating_mul(24));
        if least > reader.left() {
            let got = format!("{} bytes", reader.left());
            return Err(reader.damaged("header", format!("{n_tensors} tensors and {n_entries} metadata entries"), got));
        }
        let mut metadata = HashMap::new();
        for _ in 0..n_entries {
            let key = reader.text("a metadata key")?;
            let kind = reader.u32(&key)?;
            let value = reader.value(&key, kind, 0)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(reader.damaged(key, "one entry of this name", "a second one".to_owned()));
            }
        }
        let alignment = alignment(path, &metadata)?;
        let mut declared = Vec::new();
        for _ in 0..n_tensors {
            declared.push(reader.tensor()?);
        }
        let data = reader.at().next_multiple_of(alignment)..reader.end();
        let mut tensors = BTreeMap::new();
        for (name, tensor) in placed(path, declared, alignment, &data)? {
            if tensors.insert(name.clone(), tensor).is_some() {
                return Err(reader.damaged(format!("tensor {name}"), "one of this name", "a second one".to_owned()));
            }
        }
        Ok(Self { path: path.to_owned(), metadata, tensors })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All metadata, the tokenizer's included (`tokenizer.ggml.*`, `tokenizer.chat_template`).
    pub fn metadata(&self) -> &HashMap<String, Value> {
        &self.metadata
    }

    pub(super) fn tensors(&self) -> &BTreeMap<String, GgufTensor> {
        &self.tensors
    }
}

fn alignment(path: &Path, metadata: &HashMap<String, Value>) -> Result<u64> {
    const KEY: &str = "general.alignment";
    match metadata.get(KEY).map(Value::to_u64) {
        None => Ok(32),
        Some(Ok(value)) if value.is_power_of_two() && value <= MAX_ALIGNMENT => Ok(value),
        Some(value) => Err(Error::Damaged {
            path: path.to_owned(),
            what: KEY.to_owned(),
            expected: format!("a power of two up to {MAX_ALIGNMENT}"),
            got: value.map_or("another type".to_owned(), |value| value.to_string()),
        }),
    }
}

/// Turns offsets into places in the file; each must lie inside the data, aligned, and apart from the others.
fn placed(
    path: &Path,
    declared: Vec<Declared>,
    alignment: u64,
    data: &Range<u64>,
) -> Result<Vec<(String, GgufTensor)>> {
    let damaged = |name: &str, part: &str, expected: String, got: String| Error::Damaged {
        path: path.to_owned(),
        what: format!("tensor {name}, {part}"),
        expected,
        got,
    };
    let mut all = Vec::with_capacity(declared.len());
    for (name, format, shape, offset) in declared {
        let (row, block) = (shape.last().copied().unwrap_or(0), format.block_size());
        // A row of a vector is one number, which no part of a block is: rows of q and k are moved.
        if shape.len() == 1 && block > 1 {
            let expected = "F32, F16 or BF16 for a tensor of one dimension".to_owned();
            return Err(damaged(&name, "type", expected, format!("{format:?}")));
        }
        if row == 0 || shape.contains(&0) || row % block != 0 {
            let expected = format!("rows of a multiple of {block} numbers for {format:?}");
            return Err(damaged(&name, "shape", expected, format!("{shape:?}")));
        }
        let rows = &shape[..shape.len() - 1];
        let bytes = rows.iter().try_fold(row / block, |n, &size| n.checked_mul(size));
        let bytes = bytes.and_then(|blocks| blocks.checked_mul(format.type_size()));
        let start = data.start.checked_add(offset).filter(|_| offset.is_multiple_of(alignment));
        let Some(start) = start else {
            return Err(damaged(&name, "offset", format!("a multiple of {alignment}"), offset.to_string()));
        };
        let stop = bytes.and_then(|bytes| start.checked_add(bytes as u64));
        let Some(stop) = stop.filter(|&stop| stop <= data.end) else {
            let got =
                bytes.map_or("more than any file has".to_owned(), |bytes| format!("{bytes} bytes from byte {start}"));
            return Err(damaged(&name, "bytes", format!("within the {} bytes of the file", data.end), got));
        };
        all.push((name, GgufTensor { format, shape, bytes: start..stop }));
    }
    all.sort_by_key(|(_, tensor)| tensor.bytes.start);
    for pair in all.windows(2) {
        if pair[1].1.bytes.start < pair[0].1.bytes.end {
            let expected = format!("byte {} or later, where {} ends", pair[0].1.bytes.end, pair[0].0);
            return Err(damaged(&pair[1].0, "start", expected, format!("byte {}", pair[1].1.bytes.start)));
        }
    }
    Ok(all)
}

#[cfg(test)]
pub(super) mod tests {
    use candle_core::quantized::{QTensor, gguf_file};
    use candle_core::{Device, Tensor};

    use super::*;

    /// Writes a file with candle's own writer.
    pub(in crate::load) fn write(path: &Path, metadata: &[(&str, Value)], tensors: &[(String, QTensor)]) {
        let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (*key, value)).collect();
        let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
    }

    fn small() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.gguf");
        let ones = Tensor::ones((2, 32), candle_core::DType::F32, &Device::Cpu).unwrap();
        let tensors = [("a", GgmlDType::F32), ("b", GgmlDType::Q8_0), ("c", GgmlDType::BF16)]
            .map(|(name, format)| (name.to_owned(), QTensor::quantize(&ones, format).unwrap()));
        let list = Value::Array(vec![Value::String("x".to_owned()), Value::String("é".to_owned())]);
        write(&path, &[("k", Value::U32(7)), ("list", list), ("flag", Value::Bool(true))], &tensors);
        std::fs::read(path).unwrap()
    }

    fn parse(bytes: &[u8]) -> Result<GgufHeader> {
        GgufHeader::parse(Path::new("x.gguf"), &mut &bytes[..], bytes.len() as u64)
    }

    fn message(bytes: &[u8]) -> String {
        let text = parse(bytes).unwrap_err().to_string();
        text.split_once(": ").unwrap().1.to_owned()
    }

    /// A header of version 3 with the given counts, followed by `rest`.
    fn header(n_tensors: u64, n_entries: u64, rest: &[&[u8]]) -> Vec<u8> {
        let counts = [n_tensors.to_le_bytes(), n_entries.to_le_bytes()].concat();
        [b"GGUF", &3u32.to_le_bytes()[..], &counts, &rest.concat()].concat()
    }

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn tensor(name: &str, dims: &[u64], code: u32, offset: u64) -> Vec<u8> {
        let dims: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
        let n_dims = (dims.len() as u32 / 8).to_le_bytes();
        [&text(name)[..], &n_dims, &dims, &code.to_le_bytes(), &offset.to_le_bytes()].concat()
    }

    #[test]
    fn metadata_and_tensors_are_found() {
        let header = parse(&small()).unwrap();
        assert_eq!(header.metadata()["k"].to_u32().unwrap(), 7);
        assert_eq!(header.metadata()["list"].to_vec().unwrap()[1].to_string().unwrap(), "é");
        let b = &header.tensors()["b"];
        assert_eq!((b.format, b.shape.as_slice(), b.bytes.end - b.bytes.start), (GgmlDType::Q8_0, &[2, 32][..], 68));
        assert!(header.metadata()["flag"].to_bool().unwrap());
    }

    #[test]
    fn other_files_and_versions_are_named() {
        assert!(message(b"PK34").starts_with("magic: expected GGUF, got PK34"));
        assert!(message(b"GG").contains("4 bytes at byte 0, got 2 before the end"));
        assert!(message(b"GGUF\x01\0\0\0").contains("version: expected 2 or 3"));
    }

    #[test]
    fn hostile_counts_and_sizes_end_at_once() {
        assert!(message(&header(u64::MAX, u64::MAX, &[])).contains("got 0 bytes"));
        let key = [&u64::MAX.to_le_bytes()[..], &[0; 40]].concat();
        assert!(message(&header(0, 1, &[&key])).starts_with("a metadata key: expected 18446744073709551615 bytes"));
        let list = [&text("k")[..], &9u32.to_le_bytes(), &0u32.to_le_bytes(), &(1u64 << 60).to_le_bytes()].concat();
        assert!(message(&header(0, 1, &[&list, &[0; 16]])).starts_with("k: expected 1152921504606846976 bytes"));
        for (dims, offset) in [(&[1 << 60][..], 0), (&[1 << 32, 1 << 32], 0), (&[32], 1 << 60), (&[32], u64::MAX - 31)]
        {
            let text = message(&header(1, 0, &[&tensor("t", dims, 0, offset), &[0; 256]]));
            assert!(text.starts_with("tensor t, "), "{dims:?}: {text}");
        }
    }

    #[test]
    fn deep_lists_are_refused() {
        let nested = [&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat().repeat(50);
        let entry = [&text("k")[..], &9u32.to_le_bytes(), &nested].concat();
        assert!(message(&header(0, 1, &[&entry])).contains("nested 4 deep"));
    }

    #[test]
    fn misplaced_tensors_are_named() {
        let two = |offset| header(2, 0, &[&tensor("a", &[32], 0, 0), &tensor("b", &[32], 0, offset), &[0; 512]]);
        parse(&two(128)).unwrap();
        assert!(message(&two(96)).contains("tensor b, start: expected byte 224 or later, where a ends, got byte 192"));
        assert!(message(&two(129)).contains("tensor b, offset: expected a multiple of 32"));
        assert!(
            message(&header(1, 0, &[&tensor("a", &[33, 1], 8, 0), &[0; 512]])).contains("a multiple of 32 numbers")
        );
        assert!(message(&header(1, 0, &[&tensor("a", &[0], 0, 0), &[0; 512]])).contains("tensor a, shape"));
        assert!(message(&header(1, 0, &[&tensor("a", &[], 0, 0), &[0; 512]])).contains("1 to 4 dimensions"));
        let iq = message(&header(1, 0, &[&tensor("a", &[256], 23, 0), &[0; 512]]));
        assert!(iq.contains("tensor a, type") && iq.ends_with("got IQ4_XS"), "{iq}");
    }

    #[test]
    fn alignment_must_be_a_power_of_two() {
        for value in [0u32, 24, 1 << 30] {
            let entry = [&text("general.alignment")[..], &4u32.to_le_bytes(), &value.to_le_bytes()].concat();
            assert!(message(&header(0, 1, &[&entry])).contains("a power of two"), "{value}");
        }
    }

    #[test]
    fn any_cut_or_flipped_byte_is_an_error_or_a_header_but_no_panic() {
        let good = small();
        for length in (0..good.len()).step_by(7) {
            let whole = parse(&good[..length]).is_ok();
            assert!(!whole || good[length..].iter().all(|&byte| byte == 0), "cut at {length}"); // padding may go
        }
        for at in 0..good.len() {
            for mask in [0x01, 0x10, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= mask;
                let _ = parse(&bytes);
            }
        }
    }
}
