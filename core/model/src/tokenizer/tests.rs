//! Tokenizers from small folders and GGUF files made on the spot; parity with references is in `parity`.

use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use proptest::prelude::*;

use super::*;

/// A byte-level BPE over a few merges, with `<s>`, `</s>` and `<think>` added.
fn byte_level_json() -> serde_json::Value {
    let mut vocabulary: serde_json::Map<_, _> =
        bytes::alphabet().iter().zip(0..).map(|(c, id)| (c.to_string(), id.into())).collect();
    for (token, id) in [("he", 256), ("ll", 257), ("Ġa", 258)] {
        vocabulary.insert(token.to_owned(), id.into());
    }
    let added = |id: u32, content: &str, special: bool| {
        serde_json::json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": special})
    };
    serde_json::json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": null,
        "added_tokens": [added(259, "<s>", true), added(260, "</s>", true), added(261, "<think>", false)],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocabulary, "merges": ["h e", "l l", "Ġ a"]},
    })
}

fn folder(config: &serde_json::Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), byte_level_json().to_string()).unwrap();
    std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    folder
}

#[test]
fn stored_truncation_is_dropped() {
    let folder = folder(&serde_json::json!({}));
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    assert_eq!(tokenizer.encode("hello a hello a", true).unwrap().len(), 9);
    assert_eq!(tokenizer.bos_id(), None);
}

#[test]
fn special_tokens_are_strings_or_objects_and_the_map_fills_gaps() {
    let folder = folder(&serde_json::json!({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}}));
    std::fs::write(
        folder.path().join("special_tokens_map.json"),
        r#"{"bos_token": "ignored", "pad_token": {"content": "<pad>"}}"#,
    )
    .unwrap();
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    assert_eq!((tokenizer.bos_id(), tokenizer.eos_id()), (Some(259), Some(260)));
    // Declared but in no vocabulary: added behind the last token, as Transformers does.
    assert_eq!(tokenizer.pad_id(), Some(262));
    assert!(tokenizer.is_special(262));
    assert_eq!(tokenizer.vocab_size(), 263);
}

#[test]
fn tokens_of_the_configuration_are_added() {
    let token = serde_json::json!({"content": "</think>", "lstrip": false, "normalized": false, "rstrip": false,
        "single_word": false, "special": false});
    let folder = folder(&serde_json::json!({"added_tokens_decoder": {"262": token}}));
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    assert_eq!(tokenizer.encode("a</think>", false).unwrap(), [u32::from(b'a'), 262]);
    assert!(!tokenizer.is_special(262));
}

#[test]
fn an_explicit_bos_flag_replaces_the_post_processor_and_bos_is_never_doubled() {
    let folder = folder(&serde_json::json!({"bos_token": "<s>", "add_bos_token": true}));
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    let id = u32::from(b'a');
    assert_eq!(tokenizer.encode("a", true).unwrap(), [259, id]);
    assert_eq!(tokenizer.encode("a", false).unwrap(), [id]);
    assert_eq!(tokenizer.encode_once("a").unwrap(), [259, id]);
    assert_eq!(tokenizer.encode_once("<s>a").unwrap(), [259, id]);
}

#[test]
fn a_vocabulary_must_fit_the_embedding() {
    let folder = folder(&serde_json::json!({}));
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    assert!(tokenizer.check_fits(262).is_ok() && tokenizer.check_fits(300).is_ok());
    let error = tokenizer.check_fits(261).unwrap_err().to_string();
    assert!(error.contains("261") && error.contains("262"), "{error}");
}

#[test]
fn a_broken_definition_is_an_error_and_a_random_one_is_fixed() {
    let folder = folder(&serde_json::json!({}));
    let path = folder.path().join("tokenizer.json");
    let good: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let with = |part: &str, value: serde_json::Value| {
        let mut changed = good.clone();
        changed[part] = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        Tokenizer::from_folder(folder.path()).and_then(|tokenizer| tokenizer.encode("hello a hello a", false))
    };
    // The library panics on the first two.
    let garbage = serde_json::json!({"type": "Precompiled", "precompiled_charsmap": "AAAAqqqq"});
    let error = with("normalizer", garbage).unwrap_err().to_string();
    assert!(error.ends_with("the tokenizer failed"), "{error}");
    assert!(with("pre_tokenizer", serde_json::json!({"type": "FixedLength", "length": 0})).is_err());
    let mut model = good["model"].clone();
    model["dropout"] = 0.9.into();
    let ids = with("model", model.clone()).unwrap();
    assert!((0..20).all(|_| with("model", model.clone()).unwrap() == ids));
    let text = good.to_string();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(Tokenizer::from_folder(folder.path()).unwrap_err().to_string().contains("not valid JSON"));
}

#[test]
#[cfg(unix)]
fn a_device_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, read) in [
        ("tokenizer.json", (|path: &Path| Tokenizer::from_folder(path).map(drop)) as fn(&Path) -> crate::Result<()>),
        ("model.gguf", |path| crate::load::GgufHeader::read(&path.join("model.gguf")).map(drop)),
    ] {
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(name)).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("expected a file, got a device"), "{name}: {error}");
    }
}

#[test]
fn the_hash_is_that_of_the_file() {
    let folder = folder(&serde_json::json!({}));
    let bytes = std::fs::read(folder.path().join("tokenizer.json")).unwrap();
    assert_eq!(Tokenizer::from_folder(folder.path()).unwrap().sha256(), sha256_hex(&bytes));
}

#[test]
fn folders_without_a_tokenizer_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = |folder: &Path| Tokenizer::from_folder(folder).unwrap_err().to_string();
    assert!(error(folder.path()).contains("no tokenizer file"));
    assert!(error(&folder.path().join("absent")).contains("no such folder"));
    std::fs::write(folder.path().join("tokenizer.model"), "").unwrap();
    assert!(error(folder.path()).contains("SentencePiece"));
    std::fs::write(folder.path().join("tokenizer.json"), "{\n]").unwrap();
    assert!(matches!(Tokenizer::from_folder(folder.path()), Err(Error::Json { .. })));
    std::fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    assert!(matches!(Tokenizer::from_folder(folder.path()), Err(Error::TokenizerLibrary { .. })));
}

#[test]
fn a_whitespace_tokenizer_has_offsets_too() {
    let folder = tempfile::tempdir().unwrap();
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"t0": 0, "t1": 1, "t10": 10}, "unk_token": "t0"},
    });
    std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    let ids = tokenizer.encode("t10 t1  t10", false).unwrap();
    assert_eq!(ids, [10, 1, 10]);
    let text = tokenizer.byte_offsets(&ids).unwrap();
    assert_eq!(text.text(), "t10 t1 t10");
    assert_eq!(text.ends, [3, 6, 10]);
    // Holes and ids past the end have no token; the largest id counts.
    assert_eq!(tokenizer.vocab_size(), 11);
    let text = tokenizer.byte_offsets(&[1, 7, 10]).unwrap();
    assert_eq!(text.text(), "t1\u{FFFD}t10");
    assert_eq!(tokenizer.decode(&[1, 7, 10]).unwrap(), text.text());
}

#[test]
fn a_split_character_and_added_tokens_have_exact_bytes() {
    let folder = folder(&serde_json::json!({}));
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    let ids = tokenizer.encode("<think>€ a", false).unwrap();
    let text = tokenizer.byte_offsets(&ids).unwrap();
    assert_eq!(text.ends, [7, 8, 9, 10, 12]);
    assert_eq!(text.token_bytes(1), [0xE2]);
    // Cut inside the character: the bytes are kept, the text shows a replacement.
    assert_eq!(tokenizer.decode(&ids[..2]).unwrap(), "<think>\u{FFFD}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_add_up_for_any_ids(ids in proptest::collection::vec(0_u32..300, 0..40)) {
        let tokenizer = Tokenizer::builtin_bytes().unwrap();
        let text = tokenizer.byte_offsets(&ids).unwrap();
        prop_assert_eq!(text.ends.len(), ids.len());
        prop_assert!(text.ends.is_sorted());
        prop_assert_eq!(text.ends.last().copied().unwrap_or(0), text.bytes.len());
        prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text.text());
    }

    #[test]
    fn any_text_comes_back(text in "\\PC{0,40}") {
        let tokenizer = Tokenizer::builtin_bytes().unwrap();
        let ids = tokenizer.encode(&text, false).unwrap();
        prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text);
    }
}

/// Metadata of a GGUF file with the vocabulary above.
fn metadata(pre: &str) -> Vec<(&'static str, Value)> {
    let strings = |all: Vec<String>| Value::Array(all.into_iter().map(Value::String).collect());
    let mut tokens: Vec<String> = bytes::alphabet().iter().map(ToString::to_string).collect();
    tokens.extend(["he", "ll", "Ġa", "<s>", "</s>", "<think>"].map(str::to_owned));
    let mut types = vec![Value::I32(1); 259];
    types.extend([3, 3, 4].map(Value::I32));
    vec![
        ("tokenizer.ggml.model", Value::String("gpt2".to_owned())),
        ("tokenizer.ggml.pre", Value::String(pre.to_owned())),
        ("tokenizer.ggml.tokens", strings(tokens)),
        ("tokenizer.ggml.token_type", Value::Array(types)),
        ("tokenizer.ggml.merges", strings(["h e", "l l", "Ġ a"].map(str::to_owned).to_vec())),
        ("tokenizer.ggml.bos_token_id", Value::U32(259)),
        ("tokenizer.ggml.eos_token_id", Value::U32(260)),
        ("tokenizer.chat_template", Value::String("{{ bos_token }}{{ messages[0].content }}".to_owned())),
    ]
}

fn gguf_with(metadata: &[(&str, Value)]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut file = std::fs::File::create(&path).unwrap();
    let pairs: Vec<_> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    gguf_file::write(&mut file, &pairs, &[]).unwrap();
    (folder, path)
}

fn gguf_error(metadata: &[(&str, Value)]) -> String {
    let (_folder, path) = gguf_with(metadata);
    Tokenizer::from_gguf(&GgufHeader::read(&path).unwrap()).unwrap_err().to_string()
}

#[test]
fn gguf_metadata_gives_a_tokenizer() {
    let (_folder, path) = gguf_with(&metadata("smollm"));
    let header = GgufHeader::read(&path).unwrap();
    let tokenizer = Tokenizer::from_gguf(&header).unwrap();
    let ids = tokenizer.encode("hello a<think>12", true).unwrap();
    let tokens: Vec<_> = ids.iter().map(|id| tokenizer.token(*id).unwrap()).collect();
    assert_eq!(tokens, ["he", "ll", "o", "Ġa", "<think>", "1", "2"]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "hello a<think>12");
    assert_eq!((tokenizer.bos_id(), tokenizer.eos_id(), tokenizer.pad_id()), (Some(259), Some(260), None));
    assert!(tokenizer.is_special(259) && !tokenizer.is_special(261));

    let template = crate::chat::ChatTemplate::from_gguf(&header).unwrap().unwrap();
    let options = crate::chat::RenderOptions::default();
    let text = template.render(&[crate::chat::Message::user("he")], &options).unwrap();
    assert_eq!(text, "<s>he");
}

#[test]
fn gguf_adds_bos_by_rule_or_flag() {
    let ids = |metadata: &[(&str, Value)]| {
        let (_folder, path) = gguf_with(metadata);
        Tokenizer::from_gguf(&GgufHeader::read(&path).unwrap()).unwrap().encode("he", true).unwrap()
    };
    assert_eq!(ids(&metadata("llama-bpe")), [259, 256]);
    let mut off = metadata("llama-bpe");
    off.push(("tokenizer.ggml.add_bos_token", Value::Bool(false)));
    assert_eq!(ids(&off), [256]);
}

#[test]
fn gguf_vocabularies_that_are_not_known_are_refused() {
    let mut other = metadata("smollm");
    other[0].1 = Value::String("llama".to_owned());
    assert!(gguf_error(&other).contains("SentencePiece"));
    let error = gguf_error(&metadata("default"));
    assert!(error.contains("llama-bpe") && error.contains("\"default\""), "{error}");
    assert!(gguf_error(&metadata("smollm")[..1]).contains("tokenizer.ggml.pre"));
}

#[test]
fn gguf_metadata_that_does_not_add_up_is_refused() {
    let replaced = |index: usize, value: Value| {
        let mut all = metadata("smollm");
        all[index].1 = value;
        gguf_error(&all)
    };
    assert!(replaced(3, Value::Array(vec![Value::I32(1)])).contains("262 entries"));
    assert!(replaced(4, Value::Array(vec![Value::String("he".to_owned())])).contains("two symbols"));
    assert!(replaced(5, Value::U32(4_000_000)).contains("below 262"));
    assert!(replaced(2, Value::Array(vec![Value::U32(1)])).contains("strings"));
    let mut twice = metadata("smollm");
    if let Value::Array(tokens) = &mut twice[2].1 {
        tokens[1] = tokens[0].clone();
    }
    assert!(gguf_error(&twice).contains("twice"));
}

#[test]
fn a_truncated_gguf_file_is_an_error() {
    let (folder, path) = gguf_with(&metadata("smollm"));
    let bytes = std::fs::read(&path).unwrap();
    for length in [0, 3, 24, bytes.len() / 2] {
        let cut = folder.path().join("cut.gguf");
        std::fs::write(&cut, &bytes[..length]).unwrap();
        assert!(GgufHeader::read(&cut).is_err(), "{length} bytes");
    }
    assert!(matches!(GgufHeader::read(&folder.path().join("absent.gguf")), Err(Error::Io { .. })));
}
