//! A model ready to use: decoder, tokenizer, chat template and where they came from.

use candle_core::Device;
use serde_json::{Value, json};

use crate::backend::OpenOptions;
use crate::chat::ChatTemplate;
use crate::config::ModelConfig;
use crate::decoder::{AttentionKernel, Decoder};
use crate::error::Result;
use crate::linear::WeightFormat;
use crate::load::{GgufHeader, ModelFiles, ModelRef, Origin, OriginKind, TINY_REASONER, hf_config, open_with_header};
use crate::source::TensorSource;
use crate::tokenizer::Tokenizer;

/// Everything that a command needs of a model.
#[derive(Debug)]
pub struct Model {
    /// The forward pass.
    pub decoder: Decoder,
    /// Text to ids and back.
    pub tokenizer: Tokenizer,
    /// The chat template, where the model has one.
    pub chat: Option<ChatTemplate>,
    /// Where it came from.
    pub origin: Origin,
    format: WeightFormat,
}

/// What a model makes of text: its tokenizer and chat template, opened without its weights.
#[derive(Debug)]
pub struct TextModel {
    /// Text to ids and back.
    pub tokenizer: Tokenizer,
    /// The chat template, where the model has one.
    pub chat: Option<ChatTemplate>,
    /// Ids are below: the rows of the embedding where the configuration can be read, else of the tokenizer.
    pub vocab_size: usize,
}

impl TextModel {
    /// Opens tokenizer and chat template. Of a folder, `tokenizer.json` is enough; of a GGUF file, its header is read.
    ///
    /// # Errors
    /// If the tokenizer or the chat template is missing or broken.
    pub fn open(reference: &ModelRef) -> Result<Self> {
        let (tokenizer, chat, rows) = match reference {
            ModelRef::Gguf(file) => {
                let header = GgufHeader::read(file)?;
                (Tokenizer::from_gguf(&header)?, ChatTemplate::from_gguf(&header)?, None)
            }
            ModelRef::Random(spec) => {
                (Tokenizer::builtin_bytes()?, Some(ChatTemplate::builtin()?), Some(spec.config().vocab_size))
            }
            ModelRef::Tiny => Self::of_files(TINY_REASONER)?,
            ModelRef::Folder(folder) => Self::of_files(folder.as_path().into())?,
        };
        let vocab_size = rows.unwrap_or(0).max(tokenizer.vocab_size());
        Ok(Self { tokenizer, chat, vocab_size })
    }

    fn of_files(files: ModelFiles) -> Result<(Tokenizer, Option<ChatTemplate>, Option<usize>)> {
        // An architecture that the decoder does not know has a tokenizer all the same.
        let rows = hf_config::read(&files).ok().map(|config| config.vocab_size);
        Ok((Tokenizer::from_folder(files.clone())?, ChatTemplate::from_folder(files)?, rows))
    }

    /// What identifies the reading of text, for provenance.
    pub fn provenance(&self) -> Value {
        json!({
            "tokenizer_sha256": self.tokenizer.sha256(),
            "template_sha256": self.chat.as_ref().map(ChatTemplate::sha256),
        })
    }
}

impl Model {
    /// The same with another attention kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: AttentionKernel) -> Self {
        Self { decoder: self.decoder.with_kernel(kernel), ..self }
    }

    /// Opens a model and loads its weights onto a device of the tensor library, in f32.
    pub fn open(reference: &ModelRef, device: &Device, format: WeightFormat) -> Result<Self> {
        Self::load(reference, format, |config, weights| Decoder::load(config, weights, device, format))
    }

    /// Opens a model as the options say. Everything cheap is checked first.
    pub fn open_with(reference: &ModelRef, options: &OpenOptions) -> Result<Self> {
        options.check()?;
        Self::load(reference, options.weights, |config, weights| Decoder::open(config, weights, options))
    }

    fn load(
        reference: &ModelRef,
        format: WeightFormat,
        decoder: impl FnOnce(ModelConfig, &dyn TensorSource) -> Result<Decoder>,
    ) -> Result<Self> {
        let ((config, weights, origin), gguf) = open_with_header(reference)?;
        let (tokenizer, chat) = match (gguf, origin.kind()) {
            (Some(header), _) => (Tokenizer::from_gguf(&header)?, ChatTemplate::from_gguf(&header)?),
            (None, OriginKind::Folder(folder)) => {
                (Tokenizer::from_folder(folder.clone())?, ChatTemplate::from_folder(folder.clone())?)
            }
            (None, _) => (Tokenizer::builtin_bytes()?, Some(ChatTemplate::builtin()?)),
        };
        tokenizer.check_fits(config.vocab_size)?;
        Ok(Self { decoder: decoder(config, &*weights)?, tokenizer, chat, origin, format })
    }

    /// Ids that end a generation: those of the configuration, else the tokenizer's end of sequence.
    pub fn stop_ids(&self) -> Vec<u32> {
        match self.decoder.config().eos_ids.as_slice() {
            [] => self.tokenizer.eos_id().into_iter().collect(),
            ids => ids.to_vec(),
        }
    }

    /// The end-of-sequence token as the tokenizer names it, else the first stop id.
    pub fn eos_id(&self) -> Option<u32> {
        self.tokenizer.eos_id().or_else(|| self.decoder.config().eos_ids.first().copied())
    }

    /// What is wrong where logits are not numbers: weights that are none make such.
    pub fn not_numbers(&self) -> String {
        format!("expected logits that are numbers of {}, got others: its weights may be damaged", self.origin.id())
    }

    /// What identifies the computation, for provenance. Equal values mean equal bits, on a CPU whatever the attention kernel;
    /// kernel and positions are the run's to tell, since it chooses them, some runs several.
    pub fn provenance(&self) -> Result<Value> {
        let facts = self.decoder.backend().facts();
        Ok(json!({
            "id": self.origin.id(),
            "weights_sha256": self.origin.weights_sha256()?,
            "tokenizer_sha256": self.tokenizer.sha256(),
            "template_sha256": self.chat.as_ref().map(ChatTemplate::sha256),
            "config": self.decoder.config(),
            "dtype": facts.dtype.name(),
            "weights": self.format.name(),
            "device": facts.name.kind(),
        }))
    }
}
