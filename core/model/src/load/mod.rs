//! Loading: from the value of `--model` to a checked configuration and a source of tensors.
//!
//! [`ModelRef`] tells the forms apart, [`open`] reads configuration and headers (no weights yet) and compares them, and
//! [`Origin`] says where it all came from. Tokenizer and chat template are read from the same place by their own modules,
//! led by [`Origin::kind`].
//!
//! Every size in a file is checked against the file before it is used, so that a damaged or hostile file is an error that
//! comes at once, not an allocation.

mod embedded;
pub(crate) mod files;
mod gguf;
mod gguf_config;
mod gguf_header;
mod gguf_names;
mod gguf_reader;
mod gguf_rope;
mod gguf_types;
#[cfg(test)]
mod golden;
pub(crate) mod hf_config;
mod hf_rope;
mod hf_weights;
pub(crate) mod json_fields;
mod limits;
mod model_ref;
mod origin;
mod random;
mod random_spec;
mod safetensors_header;

pub(crate) use embedded::TINY_REASONER;
pub use files::ModelFiles;
pub use gguf_header::GgufHeader;
pub use model_ref::{ModelRef, is_hub_id};
pub use origin::{Origin, OriginKind};
pub use random_spec::RandomSpec;

use crate::config::ModelConfig;
use crate::error::Result;
use crate::source::{self, TensorSource};

/// Weights that threads may load from side by side.
pub type Weights = Box<dyn TensorSource + Send + Sync>;

/// Opens a model: its configuration, its tensors (checked by name and shape, not yet read) and its identity.
///
/// # Errors
/// Files that are missing, damaged or of an unknown kind; a configuration that the decoder cannot honour; tensors that do
/// not fit it, all of them in one error.
pub fn open(model: &ModelRef) -> Result<(ModelConfig, Weights, Origin)> {
    open_with_header(model).map(|(opened, _)| opened)
}

/// As [`open`], with the header of a GGUF file, in which tokenizer and chat template are.
pub(crate) fn open_with_header(model: &ModelRef) -> Result<((ModelConfig, Weights, Origin), Option<GgufHeader>)> {
    let mut header = None;
    let (config, weights, origin): (ModelConfig, Weights, Origin) = match model {
        ModelRef::Tiny => open_files(embedded::TINY_REASONER)?,
        ModelRef::Random(spec) => {
            let origin = Origin::random(*spec, random::identity(spec));
            (spec.config(), Box::new(random::RandomWeights::new(spec)), origin)
        }
        ModelRef::Folder(folder) => open_files(folder.as_path().into())?,
        ModelRef::Gguf(file) => {
            let header = header.insert(GgufHeader::read(file)?);
            let (config, weights) = gguf::open(header)?;
            (config, Box::new(weights), Origin::gguf(file))
        }
    };
    source::check(&*weights, &config)?;
    Ok(((config, weights, origin), header))
}

fn open_files(files: ModelFiles) -> Result<(ModelConfig, Weights, Origin)> {
    let config = hf_config::read(&files)?;
    let weights = hf_weights::HfWeights::open(&files)?;
    let origin = Origin::hugging_face(files, weights.shards().to_vec());
    Ok((config, Box::new(weights), origin))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use epikv_words::Hint;

    use super::*;
    use crate::error::Error;

    fn opened(text: &str) -> Result<(ModelConfig, Weights, Origin)> {
        open(&text.parse()?)
    }

    #[test]
    fn a_random_model_opens_without_files() {
        let (config, weights, origin) = opened("random:4,layers=2").unwrap();
        assert_eq!(weights.shapes(), config.tensors());
        assert_eq!(origin.id(), "random:4,layers=2");
        let hash = origin.weights_sha256().unwrap().to_owned();
        assert_eq!(hash.len(), 64);
        let (_, _, same) = opened("random:4,layers=2,heads=4").unwrap();
        assert_eq!(same.weights_sha256().unwrap(), hash, "a default that is typed out changes nothing");
        let (_, _, other) = opened("random:5,layers=2").unwrap();
        assert_ne!(other.weights_sha256().unwrap(), hash);
    }

    #[test]
    fn the_embedded_model_is_the_folder_that_lies_in_the_repository() {
        let (config, weights, origin) = opened("tiny").unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/tiny-reasoner");
        let (of_folder, folder_weights, folder_origin) = open(&ModelRef::Folder(folder)).unwrap();
        assert_eq!(config, of_folder);
        assert_eq!(weights.shapes(), folder_weights.shapes());
        assert_eq!(origin.weights_sha256().unwrap(), folder_origin.weights_sha256().unwrap());
        assert_eq!((origin.id(), folder_origin.id()), ("tiny-reasoner", "tiny-reasoner"));
    }

    #[test]
    fn a_folder_is_checked_against_its_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let reference = ModelRef::Folder(folder.path().to_owned());
        let error = open(&reference).err().unwrap();
        assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("config.json")), "{error}");
        let config = r#"{"model_type": "llama", "vocab_size": 8, "hidden_size": 4, "intermediate_size": 4,
            "num_hidden_layers": 1, "num_attention_heads": 1, "tie_word_embeddings": true}"#;
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        let tensors: Vec<(&str, safetensors::tensor::TensorView<'_>)> = Vec::new();
        let empty = safetensors::serialize(tensors, None).unwrap();
        std::fs::write(folder.path().join("model.safetensors"), empty).unwrap();
        let error = open(&reference).err().unwrap();
        assert!(matches!(&error, Error::Tensors { problems, .. } if problems.len() == 11), "{error}");
    }

    #[test]
    fn a_missing_gguf_file_is_named() {
        let error = opened("no/such.gguf").err().unwrap();
        assert!(error.to_string().contains("no/such.gguf") && error.hint().is_some());
    }
}
