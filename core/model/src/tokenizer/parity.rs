//! Ids, texts, offsets and chat renderings equal to Transformers' (`tests/golden/model/tokenizers.json`, written by the
//! script beside it), and ids equal to llama.cpp's on a real GGUF file.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Tokenizer;
use crate::chat::{ChatTemplate, Message, RenderOptions};
use crate::load::GgufHeader;

/// Texts that a tokenizer is compared on.
const AT_LEAST: usize = 30;

/// SmolLM2-135M-Instruct as GGUF, in the repository's scratch folder: too large to commit.
const SMOLLM2: &str = "scratch/SmolLM2-135M-Instruct.gguf";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn golden(file: &str) -> Value {
    let path = repository().join("tests/golden/model").join(file);
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// Each golden folder with the results of Transformers.
fn folders() -> Vec<(String, PathBuf, Value)> {
    let all = golden("tokenizers.json");
    let folders = all["tokenizers"].as_object().unwrap();
    let folder = |name: &String| repository().join("tests/golden/model/tokenizers").join(name);
    folders.iter().map(|(name, golden)| (name.clone(), folder(name), golden.clone())).collect()
}

#[test]
fn folders_give_transformers_ids_texts_and_offsets() {
    for (name, path, golden) in folders() {
        let tokenizer = Tokenizer::from_folder(&path).unwrap();
        assert_eq!(Some(tokenizer.vocab_size() as u64), golden["vocab_size"].as_u64(), "{name}");
        for (field, id) in [
            ("bos_token_id", tokenizer.bos_id()),
            ("eos_token_id", tokenizer.eos_id()),
            ("pad_token_id", tokenizer.pad_id()),
        ] {
            assert_eq!(id.map(u64::from), golden[field].as_u64(), "{name} {field}");
        }
        let texts = golden["texts"].as_array().unwrap();
        assert!(texts.len() >= AT_LEAST);
        for case in texts {
            let text = case["text"].as_str().unwrap();
            let found = tokenizer.encode(text, false).unwrap();
            assert_eq!(found, ids(&case["ids"]), "{name}: {text:?}");
            assert_eq!(tokenizer.encode(text, true).unwrap(), ids(&case["ids_special"]), "{name}: {text:?}");
            let decoded = case["decoded"].as_str().unwrap();
            assert_eq!(tokenizer.decode(&found).unwrap(), decoded, "{name}: {text:?}");
            // Normalised texts have other bytes than the offsets count.
            if decoded == text {
                check_ends(&tokenizer, &found, text, &case["offsets_byte"]);
            }
        }
    }
}

/// The reference ends a token that splits a character at the end of that character.
fn check_ends(tokenizer: &Tokenizer, found: &[u32], text: &str, offsets: &Value) {
    let ends = tokenizer.byte_offsets(found).unwrap().ends;
    let expected = offsets.as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap() as usize);
    for (end, expected) in ends.into_iter().zip(expected) {
        let whole = (end..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap();
        assert_eq!(whole, expected, "{text:?}");
    }
}

#[test]
fn folders_render_chats_as_transformers_does() {
    for (name, path, golden) in folders() {
        let tokenizer = Tokenizer::from_folder(&path).unwrap();
        let template = ChatTemplate::from_folder(&path).unwrap().unwrap();
        for case in golden["chats"].as_array().unwrap() {
            let mut options = RenderOptions {
                add_generation_prompt: case["add_generation_prompt"].as_bool().unwrap_or(false),
                ..RenderOptions::default()
            };
            for variable in ["enable_thinking", "tools"] {
                if let Some(value) = case.get(variable) {
                    options.variables.insert(variable.to_owned(), value.clone());
                }
            }
            let rendered = template.render(case["messages"].as_array().unwrap(), &options);
            let label = format!("{name} {}", case["name"]);
            if let Some(message) = case["error"].as_str() {
                let error = rendered.unwrap_err();
                let cause = std::error::Error::source(&error).unwrap().to_string();
                assert!(cause.contains(message), "{label}: {cause}");
                continue;
            }
            let text = rendered.unwrap();
            assert_eq!(text, case["text"].as_str().unwrap(), "{label}");
            let found = tokenizer.encode(&text, false).unwrap();
            assert_eq!(found, ids(&case["ids"]), "{label}");
            // The template wrote begin-of-sequence where there is one: nobody adds a second.
            assert_eq!(tokenizer.encode_once(&text).unwrap(), found, "{label}");
        }
    }
}

#[test]
fn a_real_gguf_file_gives_llama_cpps_ids() {
    let path = repository().join(SMOLLM2);
    if !path.is_file() {
        return skipped(&path);
    }
    let golden = golden("smollm2_tokens.json");
    let header = GgufHeader::read(&path).unwrap();
    let tokenizer = Tokenizer::from_gguf(&header).unwrap();
    let cases = golden["texts"].as_array().unwrap();
    assert!(cases.len() >= AT_LEAST);
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let found = tokenizer.encode(text, false).unwrap();
        assert_eq!(found, ids(&case["ids"]), "{text:?}");
        assert_eq!(tokenizer.decode(&found).unwrap(), text);
    }
    let template = ChatTemplate::from_gguf(&header).unwrap().unwrap();
    let prompt = template.render(&[Message::user("2+2?")], &RenderOptions::generation()).unwrap();
    assert_eq!(
        prompt,
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
         <|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn skipped(path: &Path) {
    eprintln!("skipped: {} is not there; docs/real-model.md says how to get it", path.display());
}
