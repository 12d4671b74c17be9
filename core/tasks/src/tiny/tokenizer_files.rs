//! The vocabulary as `tokenizer.json` and `tokenizer_config.json`, for this project and for Transformers.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::vocabulary::{N_CONTROL, TOKENS, UNKNOWN};
use crate::error::{Error, Result};

/// A box's beginning, a word, one digit, or one sign.
const PIECE: &str = r"\\boxed\{|[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]";

/// The statement is the first line of the last message; instructions after it are not in the model's vocabulary.
const CHAT_TEMPLATE: &str = "{{ bos_token + ' ' + messages[-1]['content'].split('\\n')[0] }}\
{% if add_generation_prompt %}{{ ' <think>' }}{% endif %}";

/// Writes `tokenizer.json` and `tokenizer_config.json` to a folder.
///
/// # Errors
/// If a file cannot be written.
pub fn write_tokenizer(folder: &Path) -> Result<()> {
    for (name, value) in [("tokenizer.json", tokenizer()), ("tokenizer_config.json", configuration())] {
        let path = folder.join(name);
        std::fs::write(&path, format!("{value:#}\n")).map_err(|source| Error::Io { path: path.clone(), source })?;
    }
    Ok(())
}

fn tokenizer() -> Value {
    let vocabulary: Map<String, Value> = TOKENS.iter().zip(0..).map(|(t, id)| ((*t).to_owned(), json!(id))).collect();
    let added: Vec<Value> = TOKENS[..N_CONTROL]
        .iter()
        .enumerate()
        .map(|(id, token)| {
            json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": !token.contains("think")})
        })
        .collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": PIECE}, "behavior": "Removed", "invert": true},
        "post_processor": null,
        // Spaces between tokens, but none inside a number: `4 7` would be two answers.
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "WordPiece", "prefix": "##", "cleanup": false},
            {"type": "Fuse"},
            {"type": "Replace", "pattern": {"Regex": "(?<=[0-9]) (?=[0-9])"}, "content": ""},
        ]},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": TOKENS[UNKNOWN as usize]},
    })
}

fn configuration() -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": TOKENS[0],
        "bos_token": TOKENS[1],
        "eos_token": TOKENS[2],
        "unk_token": TOKENS[3],
        "clean_up_tokenization_spaces": false,
        "model_max_length": 2048,
        "chat_template": CHAT_TEMPLATE,
    })
}
