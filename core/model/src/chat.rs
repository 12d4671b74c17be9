//! Chat messages to prompt text, by the model's own Jinja template, as Transformers renders it.
//!
//! A model without a template gets no invented format. Rendered prompts hold their special tokens as text,
//! begin-of-sequence included, so they are encoded with `add_special = false`, as Transformers does.
//!
//! **No clock.** `strftime_now` exists only when the caller gives a date, as text. Templates that check for it fall back to a
//! date of their own; the others fail with an error that says so. The same messages always give the same prompt.

mod braces;
mod environment;
mod filters;
mod json;
mod methods;
mod operators;
mod percent;
mod python;
mod rewrite;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

use minijinja::Value;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::load::{GgufHeader, ModelFiles};
use crate::tokenizer::folder::FolderConfig;
use crate::tokenizer::{SpecialTokens, gguf};

/// Template of the seeded random models, whose tokenizer is [`crate::tokenizer::Tokenizer::builtin_bytes`]. The
/// generation prompt opens the think tag, as those of the R1 distillations do.
const BUILTIN: &str = "{{ bos_token }}{% for message in messages %}{{ '<|' + message.role + '|>' + message.content }}\
                       {% endfor %}{% if add_generation_prompt %}{{ '<|assistant|><think>\\n' }}{% endif %}";

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }
}

/// What a rendering depends on besides the messages.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions {
    /// End with what makes the model answer.
    pub add_generation_prompt: bool,
    /// Variables of the template, such as `enable_thinking`.
    pub variables: BTreeMap<String, serde_json::Value>,
    /// What `strftime_now` gives, in whatever form the template asks for; without it the function does not exist.
    pub date: Option<String>,
}

impl RenderOptions {
    /// The options that make a model answer, with no extra variables and no date.
    pub fn generation() -> Self {
        Self { add_generation_prompt: true, ..Self::default() }
    }
}

/// A chat template with the special tokens that it may mention.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    source: String,
    special: SpecialTokens,
    place: String,
}

impl ChatTemplate {
    /// From a Hugging Face folder: `chat_template.jinja`, else `chat_template` of `tokenizer_config.json` (one
    /// template, or a list of named ones of which `default` is taken). `None` where there is neither.
    pub fn from_folder(files: impl Into<ModelFiles>) -> Result<Option<Self>> {
        const FILE: &str = "chat_template.jinja";
        let files = files.into();
        let config = FolderConfig::read(&files)?;
        let special = config.special_tokens()?;
        let (source, place) = if files.has(FILE) {
            let path = files.path(FILE);
            let text = String::from_utf8(files.read(FILE)?);
            let text = text.map_err(|e| Error::io(&path)(std::io::Error::new(std::io::ErrorKind::InvalidData, e)))?;
            (text, path.display().to_string())
        } else {
            let Some(source) = configured(&config)? else { return Ok(None) };
            (source, format!("{}: chat_template", config.path().display()))
        };
        Self::new(&source, special, place).map(Some)
    }

    /// From the metadata of a GGUF file; `None` where it has no template.
    pub fn from_gguf(header: &GgufHeader) -> Result<Option<Self>> {
        let (source, special) = gguf::chat(header)?;
        let place = format!("{}: tokenizer.chat_template", header.path().display());
        source.map(|source| Self::new(&source, special, place)).transpose()
    }

    /// The template of the seeded random models.
    pub fn builtin() -> Result<Self> {
        let special = SpecialTokens::from_pairs([("bos_token", "<s>"), ("eos_token", "</s>"), ("pad_token", "<pad>")]);
        Self::new(BUILTIN, special, "built-in chat template".to_owned())
    }

    /// A template from its source. It is compiled once here, so that a broken one is found before a model is loaded.
    pub fn new(source: &str, special: SpecialTokens, place: String) -> Result<Self> {
        let template = Self { source: source.to_owned(), special, place };
        environment::run(source, None, None).map_err(|error| template.error(error))?;
        Ok(template)
    }

    /// The prompt of a conversation. Messages are [`Message`]s, or anything that serialises to what the template reads.
    ///
    /// # Errors
    /// If the template raises (some demand alternating roles), asks for a date that was not given, uses something that
    /// only Python has, or outgrows the limits of steps, bytes and nesting.
    pub fn render(&self, messages: &[impl Serialize], options: &RenderOptions) -> Result<String> {
        let mut context: BTreeMap<String, Value> =
            self.special.iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
        // Defined and none, as in Transformers: templates test both ways.
        context.insert("tools".to_owned(), Value::from(()));
        context.insert("documents".to_owned(), Value::from(()));
        context.extend(options.variables.iter().map(|(name, value)| (name.clone(), Value::from_serialize(value))));
        context.insert("messages".to_owned(), Value::from_serialize(messages));
        context.insert("add_generation_prompt".to_owned(), Value::from(options.add_generation_prompt));

        environment::run(&self.source, Some(Value::from(context)), options.date.as_deref())
            .map_err(|error| self.error(error))
    }

    /// The template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Hash of the template's text.
    pub fn sha256(&self) -> String {
        format!("{:x}", Sha256::digest(self.source.as_bytes()))
    }

    /// The file, for errors and provenance.
    pub fn place(&self) -> &str {
        &self.place
    }

    fn error(&self, source: minijinja::Error) -> Error {
        Error::ChatTemplate { place: self.place.clone(), source }
    }
}

/// `chat_template` of `tokenizer_config.json`.
fn configured(config: &FolderConfig) -> Result<Option<String>> {
    const FIELD: &str = "chat_template";
    let Some(value) = config.get(FIELD) else { return Ok(None) };
    let unexpected = || config.unexpected(FIELD, "a string, or a list of {name, template} with a `default`", value);
    if let Some(text) = value.as_str() {
        return Ok(Some(text.to_owned()));
    }
    let named = value.as_array().ok_or_else(unexpected)?;
    let default = named.iter().find(|entry| entry["name"] == "default").ok_or_else(unexpected)?;
    default["template"].as_str().map(|text| Some(text.to_owned())).ok_or_else(unexpected)
}
