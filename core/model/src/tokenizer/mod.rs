//! Text to token ids and back, exactly as the model was trained, with the bytes that each token wrote.
//!
//! Sources: a Hugging Face folder ([`Tokenizer::from_folder`]), GGUF metadata ([`Tokenizer::from_gguf`]) and, for seeded
//! random models, one token a byte ([`Tokenizer::builtin_bytes`]). Nothing is skipped or cleaned up when decoding:
//! spans are found in the decoded text, so it must hold all of it.

pub(crate) mod builtin;
mod bytes;
pub(crate) mod folder;
pub(crate) mod gguf;
mod offsets;
#[cfg(test)]
mod parity;
mod post;
mod pre;
mod special;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use epikv_words::caught;
use sha2::{Digest, Sha256};
use tokenizers::Tokenizer as Library;

pub use builtin::{BUILTIN_BOS_ID, BUILTIN_EOS_ID, BUILTIN_PAD_ID, BUILTIN_VOCAB_SIZE};
pub use offsets::TokenText;
pub use special::SpecialTokens;

use crate::error::{Error, Result};
use crate::load::{GgufHeader, ModelFiles};

/// A tokenizer and the special tokens that its model declares.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    library: Library,
    special: SpecialTokens,
    special_ids: HashSet<u32>,
    /// Set for byte-level decoders, whose tokens have bytes of their own.
    byte_table: Option<bytes::ByteTable>,
    vocab_size: usize,
    place: String,
    sha256: String,
}

impl Tokenizer {
    /// From a Hugging Face folder: `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json`.
    ///
    /// # Errors
    /// If `tokenizer.json` is missing (a folder with only `tokenizer.model` is named as such) or broken.
    pub fn from_folder(files: impl Into<ModelFiles>) -> Result<Self> {
        let files = files.into();
        guarded(&files.place().display().to_string(), || folder::load(&files))
    }

    /// From the metadata of a GGUF file.
    ///
    /// # Errors
    /// If the vocabulary is not byte-level BPE or its pre-tokenizer is unknown; both errors name what is known.
    pub fn from_gguf(header: &GgufHeader) -> Result<Self> {
        guarded(&header.path().display().to_string(), || gguf::load(header))
    }

    /// One token a byte (id = byte) and [`BUILTIN_VOCAB_SIZE`]` - 256` added ones: padding, begin, end, think tags, roles.
    pub fn builtin_bytes() -> Result<Self> {
        builtin::bytes()
    }

    /// `sha256` is of the file where there is one of its own, else of the serialised definition.
    fn assemble(library: Library, special: SpecialTokens, place: String, sha256: Option<String>) -> Result<Self> {
        let sha256 = match sha256 {
            Some(given) => given,
            None => sha256_hex(library.to_string(false).map_err(library_error(&place))?.as_bytes()),
        };
        let added = library.get_added_vocabulary().get_added_tokens_decoder();
        let special_ids = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
        let largest = library.get_vocab(true).into_values().max();
        Ok(Self {
            byte_table: is_byte_level(&library).then(bytes::ByteTable::new),
            // Ids may have holes, and it is the largest that must fit the embedding.
            vocab_size: largest.map_or(0, |id| id as usize + 1),
            library,
            special,
            special_ids,
            place,
            sha256,
        })
    }

    /// Ids of a text. Special tokens that are spelled out in it are recognised, as Transformers does.
    /// `add_special` adds what the post-processor adds: begin-of-sequence for Llama, nothing for Qwen.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        guarded(&self.place, || {
            let encoding = self.library.encode_fast(text, add_special).map_err(library_error(&self.place))?;
            Ok(encoding.get_ids().to_vec())
        })
    }

    /// As [`Tokenizer::encode`] with special tokens added, but never a second begin-of-sequence: a text that already
    /// starts with it is encoded as it is.
    pub fn encode_once(&self, text: &str) -> Result<Vec<u32>> {
        let has_bos = self.special.get("bos_token").is_some_and(|bos| text.starts_with(bos));
        self.encode(text, !has_bos)
    }

    /// The text of ids: nothing skipped, no clean-up of spaces. An id that the tokenizer has no token for, which a
    /// padded embedding makes possible, reads as `U+FFFD`.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        if self.byte_table.is_none() && ids.iter().all(|id| self.token(*id).is_some()) {
            return self.library_decode(ids);
        }
        Ok(self.byte_offsets(ids)?.text().into_owned())
    }

    /// The decoded bytes and the end of each token in them. Exact for byte-level tokens that split a character; with
    /// other decoders a token that leaves a character unfinished ends where it began.
    pub fn byte_offsets(&self, ids: &[u32]) -> Result<TokenText> {
        let mut text = TokenText::default();
        if let Some(table) = &self.byte_table {
            let mut written = Vec::new();
            for id in ids {
                written.clear();
                table.push(&self.token(*id).unwrap_or_else(no_token), &mut written);
                text.push(&written);
            }
            return Ok(text);
        }
        // Runs of known ids through the library, unknown ids between them.
        for run in ids.chunk_by(|a, b| self.token(*a).is_some() == self.token(*b).is_some()) {
            if self.token(run[0]).is_none() {
                for _ in run {
                    text.push(no_token().as_bytes());
                }
                continue;
            }
            let part = offsets::incremental(run, |ids| self.library_decode(ids))?;
            let start = text.bytes.len();
            text.bytes.extend_from_slice(&part.bytes);
            text.ends.extend(part.ends.iter().map(|end| start + end));
        }
        Ok(text)
    }

    fn library_decode(&self, ids: &[u32]) -> Result<String> {
        guarded(&self.place, || self.library.decode(ids, false).map_err(library_error(&self.place)))
    }

    /// Id of a vocabulary entry or added token.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.library.token_to_id(token)
    }

    /// The vocabulary entry of an id, in the tokenizer's own alphabet (`Ġthe`).
    pub fn token(&self, id: u32) -> Option<String> {
        self.library.id_to_token(id)
    }

    /// Largest id plus one, added tokens included.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Checks that each id has a row in an embedding of `vocab_size` rows. Spare rows are fine: models pad.
    ///
    /// # Errors
    /// If the vocabulary is larger; both sizes are named.
    pub fn check_fits(&self, vocab_size: usize) -> Result<()> {
        if self.vocab_size <= vocab_size {
            return Ok(());
        }
        Err(Error::Tokenizer {
            place: self.place.clone(),
            expected: format!("a vocabulary of at most {vocab_size} tokens, the rows of the model's embedding"),
            got: self.vocab_size.to_string(),
        })
    }

    /// The named special tokens.
    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special
    }

    /// Begin-of-sequence, where the model has one.
    pub fn bos_id(&self) -> Option<u32> {
        self.named_id("bos_token")
    }

    /// End-of-sequence, where the model has one. The ids that end a generation are the model's: see `ModelConfig`.
    pub fn eos_id(&self) -> Option<u32> {
        self.named_id("eos_token")
    }

    /// Padding, where the model has one.
    pub fn pad_id(&self) -> Option<u32> {
        self.named_id("pad_token")
    }

    fn named_id(&self, name: &str) -> Option<u32> {
        self.token_id(self.special.get(name)?)
    }

    /// True for control tokens: begin, end, padding, roles.
    pub fn is_special(&self, id: u32) -> bool {
        self.special_ids.contains(&id)
    }

    /// Hash of the definition: of `tokenizer.json` as `sha256sum` prints it, or of the equivalent for GGUF.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The file, for errors.
    pub fn place(&self) -> &str {
        &self.place
    }
}

/// What an id without a token reads as.
fn no_token() -> String {
    char::REPLACEMENT_CHARACTER.to_string()
}

/// True if decoding only maps characters to bytes.
fn is_byte_level(library: &Library) -> bool {
    let decoder = library.get_decoder().and_then(|decoder| serde_json::to_value(decoder).ok()).unwrap_or_default();
    let plain = |value: &serde_json::Value| value["type"] == "ByteLevel";
    match decoder["decoders"].as_array() {
        Some(parts) => !parts.is_empty() && parts.iter().all(plain),
        None => plain(&decoder),
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

type LibraryError = Box<dyn std::error::Error + Send + Sync>;

/// Work of the library, which panics on some definitions that it accepts: a panic is an error.
fn guarded<T>(place: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(work).unwrap_or_else(|message| Err(library_error(place)(message.into())))
}

fn library_error(place: &str) -> impl Fn(LibraryError) -> Error + '_ {
    move |source| Error::TokenizerLibrary { place: place.to_owned(), source }
}
