//! The state of a training run in one safetensors file, written whole or not at all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use safetensors::{Dtype, SafeTensors, View};

use crate::adamw::AdamW;
use crate::layout::ParameterLayout;
use crate::trainer::{Trainer, TrainerOptions};
use epikv_model::config::ModelConfig;
use epikv_model::error::{Error, Result};

/// Parts of the state, by the prefix of their tensors.
const PARTS: [&str; 3] = ["weights", "first", "second"];

/// Reads and writes the state of a [`Trainer`]: weights, both moments, step and depth.
#[derive(Debug)]
pub struct Checkpoint;

impl Checkpoint {
    /// Writes the state of `trainer` to `path`: temporary file, fsync, rename. Without `moments` the file is a third as
    /// long, and a run that continues from it starts with fresh moments.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(trainer: &Trainer, path: &Path, moments: bool) -> Result<()> {
        let parts = [&trainer.weights, &trainer.optimiser.first, &trainer.optimiser.second];
        let kept = if moments { parts.len() } else { 1 };
        let tensors = PARTS.iter().zip(parts).take(kept).flat_map(|(part, flat)| {
            let parameters = trainer.layout.parameters().iter();
            parameters.map(move |p| (format!("{part}.{}", p.name), Floats::new(p.shape.clone(), p.of(flat))))
        });
        let about = [("step", trainer.n_steps()), ("layers", trainer.config.n_layers)];
        let about: HashMap<String, String> = about.map(|(k, v)| (k.to_owned(), v.to_string())).into();
        let bytes = safetensors::serialize(tensors, Some(about)).map_err(|error| damaged(path, "tensors", &error))?;
        write_whole(path, &bytes)
    }

    /// Reads the state of a run whose model has the shape of `config`, at whatever depth the file has.
    ///
    /// # Errors
    /// If the file is missing, damaged or of another shape.
    pub fn load(path: &Path, config: &ModelConfig, options: TrainerOptions) -> Result<Trainer> {
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| damaged(path, "header", &error))?;
        let number = |key: &str| -> Result<usize> {
            let text = header.metadata().as_ref().and_then(|m| m.get(key)).map_or("nothing", String::as_str);
            text.parse().map_err(|error| damaged(path, key, &error))
        };
        let config = ModelConfig { n_layers: number("layers")?, ..config.clone() };
        let layout = ParameterLayout::new(&config);
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| damaged(path, "tensors", &error))?;
        let part = |part: &str| -> Result<Vec<f32>> {
            let mut flat = Vec::with_capacity(layout.n_weights());
            for parameter in layout.parameters() {
                let name = format!("{part}.{}", parameter.name);
                let tensor = tensors.tensor(&name).map_err(|error| damaged(path, &name, &error))?;
                if tensor.shape() != parameter.shape || tensor.dtype() != Dtype::F32 {
                    return Err(Error::Damaged {
                        path: path.to_owned(),
                        what: name,
                        expected: format!("F32 {:?}", parameter.shape),
                        got: format!("{:?} {:?}", tensor.dtype(), tensor.shape()),
                    });
                }
                let (words, _) = tensor.data().as_chunks::<4>();
                flat.extend(words.iter().map(|word| f32::from_le_bytes(*word)));
            }
            Ok(flat)
        };
        let weights = part(PARTS[0])?;
        let has_moments = tensors.names().iter().any(|name| name.starts_with(PARTS[1]));
        let optimiser = if has_moments {
            AdamW { step: 0, first: part(PARTS[1])?, second: part(PARTS[2])? }
        } else {
            AdamW::new(weights.len())
        };
        Trainer::assemble(config, weights, AdamW { step: number("step")?, ..optimiser }, options)
    }
}

fn damaged(path: &Path, what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Damaged {
        path: path.to_owned(),
        what: what.to_owned(),
        expected: "the state of a training run".to_owned(),
        got: error.to_string(),
    }
}

/// Writes a file so that readers see the old one or the new one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension("tmp-train");
    let write = || {
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(Error::io(path))
}

/// A tensor to be written.
pub(crate) struct Floats {
    shape: Vec<usize>,
    bytes: Vec<u8>,
    dtype: Dtype,
}

impl Floats {
    pub(crate) fn new(shape: Vec<usize>, elements: &[f32]) -> Self {
        Self { shape, bytes: elements.iter().flat_map(|v| v.to_le_bytes()).collect(), dtype: Dtype::F32 }
    }

    /// Rounded to half precision.
    pub(crate) fn half(shape: Vec<usize>, elements: &[f32]) -> Self {
        let bytes = elements.iter().flat_map(|&v| half::f16::from_f32(v).to_le_bytes()).collect();
        Self { shape, bytes, dtype: Dtype::F16 }
    }
}

impl View for Floats {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}
