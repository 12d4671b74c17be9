//! Reading the files of a folder: JSON, plain or compressed, and tensors.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use epikv_model::backend::{DeviceName, OpenOptions};
use epikv_model::decoder::Decoder;
use epikv_model::load::{ModelRef, open};
use flate2::read::GzDecoder;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// Positions that a model must have; the references enforce no context, and some sequences are longer than it on purpose.
const MIN_POSITIONS: usize = 512;

/// Most bytes of a JSON file once it is decompressed.
const MOST_JSON: u64 = 1 << 30;

/// A JSON file; one that ends with `.gz` is decompressed.
pub(crate) fn json(path: &Path) -> Result<Value> {
    let read = || -> Result<Value> {
        let file = File::open(path)?;
        let mut text = String::new();
        if path.extension().is_some_and(|extension| extension == "gz") {
            GzDecoder::new(file).take(MOST_JSON).read_to_string(&mut text)?;
        } else {
            file.take(MOST_JSON).read_to_string(&mut text)?;
        }
        Ok(serde_json::from_str(&text)?)
    };
    read().with_context(|| format!("reading {}", path.display()))
}

/// The decoder of a model folder, in f32.
pub(crate) fn decoder(folder: &Path, device: DeviceName) -> Result<Decoder> {
    let (mut config, weights, _) = open(&ModelRef::Folder(folder.to_owned()))?;
    config.max_positions = config.max_positions.max(MIN_POSITIONS);
    Ok(Decoder::open(config, &*weights, &OpenOptions { device, ..OpenOptions::default() })?)
}

/// The members of a list.
pub(crate) fn list(value: &Value) -> Result<&[Value]> {
    value.as_array().map(Vec::as_slice).with_context(|| format!("expected a list, got {}", kind_of(value)))
}

/// The members of a list that need not be there.
pub(crate) fn list_or_none<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A count, a layer, a position.
pub(crate) fn count(value: &Value) -> Result<usize> {
    let number = value.as_u64().with_context(|| format!("expected a whole number, got {value}"))?;
    Ok(usize::try_from(number)?)
}

/// A number; infinities are words.
pub(crate) fn number(value: &Value) -> Result<f64> {
    match value {
        Value::String(word) if word == "inf" => Ok(f64::INFINITY),
        Value::String(word) if word == "-inf" => Ok(f64::NEG_INFINITY),
        _ => value.as_f64().with_context(|| format!("expected a number, got {}", kind_of(value))),
    }
}

/// Whole numbers of a list.
pub(crate) fn ids(value: &Value) -> Result<Vec<u32>> {
    list(value)?.iter().map(|id| Ok(u32::try_from(count(id)?)?)).collect()
}

/// All numbers of nested lists, in order.
pub(crate) fn numbers(value: &Value) -> Result<Vec<f64>> {
    match value {
        Value::Array(items) => Ok(items.iter().map(numbers).collect::<Result<Vec<_>>>()?.concat()),
        other => Ok(vec![number(other)?]),
    }
}

/// A word.
pub(crate) fn word(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("expected a word, got {}", kind_of(value)))
}

/// Members of an object, in order.
pub(crate) fn members(value: &Value) -> Result<&serde_json::Map<String, Value>> {
    value.as_object().with_context(|| format!("expected an object, got {}", kind_of(value)))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a word",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A tensor of f32 in rows: `[heads, rows, D]`, or one head without the first.
#[derive(Debug, Clone)]
pub(crate) struct Heads {
    pub(crate) rows: usize,
    pub(crate) d: usize,
    all: Vec<f32>,
}

impl Heads {
    /// The rows of a head, `[rows, D]`.
    pub(crate) fn head(&self, head: usize) -> &[f32] {
        &self.all[head * self.rows * self.d..(head + 1) * self.rows * self.d]
    }

    /// A row of a tensor without heads, `[D]`.
    pub(crate) fn rows_of(&self, row: usize) -> &[f32] {
        &self.all[row * self.d..(row + 1) * self.d]
    }

    /// How many heads.
    pub(crate) fn n_heads(&self) -> usize {
        self.all.len() / (self.rows * self.d).max(1)
    }
}

/// The bytes of a file of tensors.
pub(crate) struct Tensors(Vec<u8>);

impl Tensors {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self(fs::read(path).with_context(|| format!("reading {}", path.display()))?))
    }

    /// The tensor of that name.
    pub(crate) fn heads(&self, name: &str) -> Result<Heads> {
        let all = SafeTensors::deserialize(&self.0)?;
        let tensor = all.tensor(name).with_context(|| format!("tensor {name}"))?;
        ensure!(tensor.dtype() == Dtype::F32, "tensor {name}: expected f32, got {:?}", tensor.dtype());
        let [.., rows, d] = *tensor.shape() else { bail!("tensor {name}: expected rows, got {:?}", tensor.shape()) };
        let (numbers, _) = tensor.data().as_chunks::<4>();
        Ok(Heads { rows, d, all: numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect() })
    }
}
