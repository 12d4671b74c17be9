//! A tokenizer from a Hugging Face folder: `tokenizer.json`, completed by `tokenizer_config.json` as Transformers does.
//!
//! Three things in the configuration change ids and are easy to miss: tokens that are declared there but absent from
//! `tokenizer.json` are added; special tokens are added too; and `add_bos_token`/`add_eos_token`, when present, replace
//! the post-processor. Padding and truncation stored in `tokenizer.json` are dropped: a trace is never cut or filled.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tokenizers::{AddedToken, ModelWrapper, Tokenizer as Library};

use super::post::post_processor;
use super::special::SpecialTokens;
use super::{Tokenizer, library_error, sha256_hex};
use crate::error::{Error, Result};
use crate::load::files::ModelFiles;
use crate::load::json_fields::read_object;

const DEFINITION: &str = "tokenizer.json";
const CONFIG: &str = "tokenizer_config.json";
const SPECIAL: &str = "special_tokens_map.json";

pub(super) fn load(files: &ModelFiles) -> Result<Tokenizer> {
    if !files.has(DEFINITION) {
        return Err(missing(files));
    }
    let (path, bytes) = (files.path(DEFINITION), files.read(DEFINITION)?);
    let place = path.display().to_string();
    let mut library = parse(&path, &bytes)?;
    without_dropout(&mut library);
    library.with_padding(None);
    library.with_truncation(None).map_err(library_error(&place))?;

    let config = FolderConfig::read(files)?;
    let special = config.special_tokens()?;
    let mut added = config.added_tokens()?;
    for (name, text) in special.iter() {
        let known = library.get_added_vocabulary().get_vocab().contains_key(text);
        if !known && added.iter().all(|token| token.content != text) {
            added.push(config.special_token(name)?.unwrap_or_else(|| AddedToken::from(text, true)));
        }
    }
    library.add_tokens(added).map_err(library_error(&place))?;

    let (add_bos, add_eos) = (config.flag("add_bos_token")?, config.flag("add_eos_token")?);
    if add_bos.is_some() || add_eos.is_some() || library.get_post_processor().is_none() {
        let wanted = |flag: Option<bool>, name: &str| {
            let text = special.get(name).filter(|_| flag == Some(true))?;
            Some((text.to_owned(), library.token_to_id(text)?))
        };
        let (bos, eos) = (wanted(add_bos, "bos_token"), wanted(add_eos, "eos_token"));
        library.with_post_processor(Some(post_processor(bos.as_ref(), eos.as_ref(), &place)?));
    }
    Tokenizer::assemble(library, special, place, Some(sha256_hex(&bytes)))
}

/// Switches off the dropout of merges, a device of training: with it the same text has other ids at each call.
fn without_dropout(library: &mut Library) {
    if let ModelWrapper::BPE(bpe) = library.get_model()
        && bpe.dropout.is_some()
    {
        let mut bpe = bpe.clone();
        bpe.dropout = None;
        library.with_model(bpe);
    }
}

/// The library's own errors do not say where a file is broken, so plain JSON errors are told apart first.
fn parse(path: &Path, bytes: &[u8]) -> Result<Library> {
    Library::from_bytes(bytes).map_err(|source| match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        Err(source) => Error::Json { path: path.to_owned(), source },
        Ok(_) => Error::TokenizerLibrary { place: path.display().to_string(), source },
    })
}

fn missing(files: &ModelFiles) -> Error {
    let got = if matches!(files, ModelFiles::Disk(folder) if !folder.is_dir()) {
        "no such folder"
    } else if files.has("tokenizer.model") {
        "only tokenizer.model (SentencePiece), which is not supported: convert it to tokenizer.json"
    } else if files.has("vocab.json") {
        "only vocab.json, the old form: save the tokenizer again to get tokenizer.json"
    } else {
        "no tokenizer file"
    };
    let place = files.place().display().to_string();
    Error::Tokenizer { place, expected: DEFINITION.to_owned(), got: got.to_owned() }
}

/// `tokenizer_config.json`, and `special_tokens_map.json` for what it leaves out. Either file may be absent.
#[derive(Debug)]
pub(crate) struct FolderConfig {
    path: PathBuf,
    values: Map<String, Value>,
}

impl FolderConfig {
    pub(crate) fn read(files: &ModelFiles) -> Result<Self> {
        let path = files.path(CONFIG);
        let object = |file| if files.has(file) { read_object(files, file) } else { Ok(Map::new()) };
        let (mut values, map) = (object(CONFIG)?, object(SPECIAL)?);
        for name in SpecialTokens::names() {
            if let (false, Some(value)) = (values.contains_key(name), map.get(name)) {
                values.insert(name.to_owned(), value.clone());
            }
        }
        Ok(Self { path, values })
    }

    /// The file, for errors.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A field, where it is set and not null.
    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.values.get(field).filter(|value| !value.is_null())
    }

    /// The error for a field of an unexpected kind.
    pub(crate) fn unexpected(&self, field: &str, expected: &str, got: &Value) -> Error {
        Error::Config {
            path: self.path.clone(),
            field: field.to_owned(),
            expected: expected.to_owned(),
            got: got.to_string(),
        }
    }

    pub(crate) fn special_tokens(&self) -> Result<SpecialTokens> {
        let mut pairs = Vec::new();
        for name in SpecialTokens::names() {
            if let Some(token) = self.special_token(name)? {
                pairs.push((name, token.content));
            }
        }
        Ok(SpecialTokens::from_pairs(pairs.iter().map(|(name, text)| (*name, text.as_str()))))
    }

    fn flag(&self, field: &str) -> Result<Option<bool>> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.unexpected(field, "true or false", other)),
        }
    }

    /// A special token is a string or an object with `content`.
    fn special_token(&self, name: &str) -> Result<Option<AddedToken>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(AddedToken::from(text.as_str(), true).normalized(false))),
            Some(object) => self.token_object(name, object).map(|token| Some(token.special(true))),
        }
    }

    /// `added_tokens_decoder`, by id.
    fn added_tokens(&self) -> Result<Vec<AddedToken>> {
        const FIELD: &str = "added_tokens_decoder";
        let Some(value) = self.get(FIELD) else { return Ok(Vec::new()) };
        let Value::Object(entries) = value else {
            return Err(self.unexpected(FIELD, "an object from id to token", value));
        };
        let mut tokens = Vec::new();
        for (key, entry) in entries {
            let field = format!("{FIELD}.{key}");
            let id: u32 = key.parse().map_err(|_| self.unexpected(&field, "an id as key", entry))?;
            tokens.push((id, self.token_object(&field, entry)?));
        }
        tokens.sort_by_key(|(id, _)| *id);
        Ok(tokens.into_iter().map(|(_, token)| token).collect())
    }

    fn token_object(&self, field: &str, value: &Value) -> Result<AddedToken> {
        let Some(content) = value.get("content").and_then(Value::as_str) else {
            return Err(self.unexpected(field, "a string or an object with `content`", value));
        };
        let flag = |name: &str, absent: bool| value.get(name).and_then(Value::as_bool).unwrap_or(absent);
        let special = flag("special", false);
        Ok(AddedToken::from(content, special)
            .single_word(flag("single_word", false))
            .lstrip(flag("lstrip", false))
            .rstrip(flag("rstrip", false))
            .normalized(flag("normalized", !special)))
    }
}
