//! A tokenizer from GGUF metadata: byte-level BPE (`tokenizer.ggml.model = gpt2`) with a known pre-tokenizer.
//!
//! `SentencePiece` vocabularies and unknown pre-tokenizers are errors that name what is known.
//! candle has a conversion of its own, which falls silently to GPT-2 with a space in front for most names, so it is
//! not used.

use std::collections::HashSet;

use candle_core::quantized::gguf_file::Value;
use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer as Library};

use super::post::post_processor;
use super::special::SpecialTokens;
use super::{Tokenizer, library_error, pre};
use crate::error::{Error, Result};
use crate::load::GgufHeader;

/// `tokenizer.ggml.token_type` of tokens that are matched in text before anything else and carry a role.
const CONTROL: u32 = 3;
/// `tokenizer.ggml.token_type` of tokens that are matched in text before anything else, and are text.
const USER_DEFINED: u32 = 4;

pub(super) fn load(header: &GgufHeader) -> Result<Tokenizer> {
    let metadata = Metadata { header };
    let place = header.path().display().to_string();
    let model = metadata.string("tokenizer.ggml.model")?.unwrap_or("nothing");
    if model != "gpt2" {
        let sort = if matches!(model, "llama" | "gemma" | "t5") { " (SentencePiece)" } else { "" };
        return Err(metadata.unfit("tokenizer.ggml.model = gpt2 (byte-level BPE)", format!("{model}{sort}")));
    }
    let name = metadata.string("tokenizer.ggml.pre")?.unwrap_or("nothing");
    let Some(rule) = pre::find(name) else {
        return Err(metadata.unfit(&format!("tokenizer.ggml.pre to be one of {}", pre::known()), format!("{name:?}")));
    };

    let tokens = metadata.strings("tokenizer.ggml.tokens")?;
    let merges = metadata.merges()?;
    let added = metadata.added(&tokens)?;
    let vocabulary: Vocab = tokens.iter().map(|token| (*token).to_owned()).zip(0..).collect();
    if vocabulary.len() != tokens.len() {
        let mut seen = HashSet::new();
        let twice = tokens.iter().find(|token| !seen.insert(**token)).copied().unwrap_or_default();
        return Err(metadata.unfit("tokens that differ", format!("{twice:?} twice")));
    }
    let bpe = BPE::builder()
        .vocab_and_merges(vocabulary, merges)
        .ignore_merges(rule.ignore_merges)
        .build()
        .map_err(library_error(&place))?;
    let mut library = Library::new(bpe);
    library.with_normalizer(rule.nfc.then_some(NormalizerWrapper::NFC(NFC))).map_err(library_error(&place))?;
    library.with_pre_tokenizer(Some(rule.pre_tokenizer(&place)?));
    library.with_decoder(Some(ByteLevelDecoder::new(false, true, true)));
    library.add_tokens(added).map_err(library_error(&place))?;

    let ids = metadata.special_ids(tokens.len())?;
    let named = |name: &str| ids.iter().find(|pair| pair.0 == name).map(|pair| pair.1);
    let add = |key: &str, absent: bool, name: &str| -> Result<Option<(String, u32)>> {
        if !metadata.flag(key)?.unwrap_or(absent) {
            return Ok(None);
        }
        let id = named(name)
            .ok_or_else(|| metadata.unfit(&format!("an id for {name}, since {key} is set"), "none".to_owned()))?;
        Ok(Some((tokens[id as usize].to_owned(), id)))
    };
    let bos = add("tokenizer.ggml.add_bos_token", rule.add_bos, "bos_token")?;
    let eos = add("tokenizer.ggml.add_eos_token", false, "eos_token")?;
    library.with_post_processor(Some(post_processor(bos.as_ref(), eos.as_ref(), &place)?));
    Tokenizer::assemble(library, special_tokens(&ids, &tokens), place, None)
}

/// The named special tokens and the chat template, for `ChatTemplate`.
pub(crate) fn chat(header: &GgufHeader) -> Result<(Option<String>, SpecialTokens)> {
    let metadata = Metadata { header };
    let template = metadata.string("tokenizer.chat_template")?.map(str::to_owned);
    let tokens = metadata.strings("tokenizer.ggml.tokens")?;
    let ids = metadata.special_ids(tokens.len())?;
    Ok((template, special_tokens(&ids, &tokens)))
}

fn special_tokens(ids: &[(&'static str, u32)], tokens: &[&str]) -> SpecialTokens {
    SpecialTokens::from_pairs(ids.iter().map(|(name, id)| (*name, tokens[*id as usize])))
}

/// Typed access to the metadata, with errors that name the file and the key.
struct Metadata<'a> {
    header: &'a GgufHeader,
}

impl<'a> Metadata<'a> {
    fn unfit(&self, expected: &str, got: String) -> Error {
        Error::Tokenizer { place: self.header.path().display().to_string(), expected: expected.to_owned(), got }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.header.metadata().get(key)
    }

    fn string(&self, key: &str) -> Result<Option<&'a str>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.unfit(&format!("{key} to be a string"), kind(other))),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.unfit(&format!("{key} to be a bool"), kind(other))),
        }
    }

    fn array(&self, key: &str) -> Result<&'a [Value]> {
        match self.get(key) {
            Some(Value::Array(values)) => Ok(values),
            Some(other) => Err(self.unfit(&format!("{key} to be an array"), kind(other))),
            None => Err(self.unfit(key, "nothing".to_owned())),
        }
    }

    fn strings(&self, key: &str) -> Result<Vec<&'a str>> {
        let one = |value: &'a Value| match value {
            Value::String(text) => Ok(text.as_str()),
            other => Err(self.unfit(&format!("{key} to hold strings"), kind(other))),
        };
        self.array(key)?.iter().map(one).collect()
    }

    /// A merge is two symbols with a space between; the alphabet has no space of its own.
    fn merges(&self) -> Result<Vec<(String, String)>> {
        const KEY: &str = "tokenizer.ggml.merges";
        let pair = |(index, merge): (usize, &str)| {
            let (left, right) = merge
                .split_once(' ')
                .ok_or_else(|| self.unfit(&format!("{KEY}[{index}] to be two symbols"), format!("{merge:?}")))?;
            Ok((left.to_owned(), right.to_owned()))
        };
        self.strings(KEY)?.into_iter().enumerate().map(pair).collect()
    }

    /// Tokens that are found in the text before it is cut.
    fn added(&self, tokens: &[&str]) -> Result<Vec<AddedToken>> {
        const KEY: &str = "tokenizer.ggml.token_type";
        let types = self.array(KEY)?;
        if types.len() != tokens.len() {
            return Err(self.unfit(
                &format!("{KEY} to have {} entries, as many as tokens", tokens.len()),
                types.len().to_string(),
            ));
        }
        let mut added = Vec::new();
        for (token, value) in tokens.iter().zip(types) {
            let sort = integer(value).ok_or_else(|| self.unfit(&format!("{KEY} to hold integers"), kind(value)))?;
            if sort == CONTROL || sort == USER_DEFINED {
                added.push(AddedToken::from(*token, sort == CONTROL).normalized(false));
            }
        }
        Ok(added)
    }

    fn special_ids(&self, n_tokens: usize) -> Result<Vec<(&'static str, u32)>> {
        const KEYS: [(&str, &str); 4] = [
            ("bos_token", "tokenizer.ggml.bos_token_id"),
            ("eos_token", "tokenizer.ggml.eos_token_id"),
            ("unk_token", "tokenizer.ggml.unknown_token_id"),
            ("pad_token", "tokenizer.ggml.padding_token_id"),
        ];
        let mut ids = Vec::new();
        for (name, key) in KEYS {
            let Some(value) = self.get(key) else { continue };
            match integer(value).filter(|id| (*id as usize) < n_tokens) {
                Some(id) => ids.push((name, id)),
                None => return Err(self.unfit(&format!("{key} to be below {n_tokens}"), format!("{value:?}"))),
            }
        }
        Ok(ids)
    }
}

/// Writers use any integer type for ids.
fn integer(value: &Value) -> Option<u32> {
    match *value {
        Value::U8(n) => Some(n.into()),
        Value::U16(n) => Some(n.into()),
        Value::U32(n) => Some(n),
        Value::U64(n) => n.try_into().ok(),
        Value::I8(n) => n.try_into().ok(),
        Value::I16(n) => n.try_into().ok(),
        Value::I32(n) => n.try_into().ok(),
        Value::I64(n) => n.try_into().ok(),
        _ => None,
    }
}

fn kind(value: &Value) -> String {
    format!("{:?}", value.value_type()).to_lowercase()
}
