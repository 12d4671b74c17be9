//! The tokenizer of seeded random models: one token a byte.

use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer as Library};

use super::special::SpecialTokens;
use super::{Tokenizer, bytes, library_error};
use crate::error::Result;

/// Tokens after the 256 bytes, in id order.
const ADDED: [&str; 8] = ["<pad>", "<s>", "</s>", "<think>", "</think>", "<|system|>", "<|user|>", "<|assistant|>"];

/// How errors name this tokenizer.
const PLACE: &str = "built-in byte tokenizer";

/// Id of the built-in padding token.
pub const BUILTIN_PAD_ID: u32 = 256;
/// Id of the built-in begin-of-sequence token.
pub const BUILTIN_BOS_ID: u32 = 257;
/// Id of the built-in end-of-sequence token.
pub const BUILTIN_EOS_ID: u32 = 258;

/// Size of the built-in vocabulary: the bytes and eight added tokens.
pub const BUILTIN_VOCAB_SIZE: usize = 256 + ADDED.len();

pub(super) fn bytes() -> Result<Tokenizer> {
    let vocabulary: Vocab = bytes::alphabet().into_iter().zip(0..).map(|(c, id)| (c.to_string(), id)).collect();
    let model = BPE::builder().vocab_and_merges(vocabulary, Vec::new()).build().map_err(library_error(PLACE))?;
    let mut library = Library::new(model);
    // No splitting: without merges a piece is its bytes, wherever it is cut.
    library.with_pre_tokenizer(Some(ByteLevel::new(false, true, false)));
    library.with_decoder(Some(ByteLevelDecoder::new(false, true, false)));
    library
        .add_tokens(ADDED.map(|text| AddedToken::from(text, true).normalized(false)))
        .map_err(library_error(PLACE))?;
    let special = SpecialTokens::from_pairs([("bos_token", "<s>"), ("eos_token", "</s>"), ("pad_token", "<pad>")]);
    Tokenizer::assemble(library, special, PLACE.to_owned(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_below_256_are_the_bytes() {
        let tokenizer = bytes().unwrap();
        let text = "né\u{0}\n  \\boxed{42} 🙂";
        let ids = tokenizer.encode(text, true).unwrap();
        assert_eq!(ids, text.bytes().map(u32::from).collect::<Vec<_>>());
        assert_eq!(tokenizer.decode(&ids).unwrap(), text);
    }

    #[test]
    fn tags_and_roles_are_single_tokens() {
        let tokenizer = bytes().unwrap();
        assert_eq!(tokenizer.encode("<think>x</think>", false).unwrap(), [259, 120, 260]);
        assert_eq!(tokenizer.token_id("<|assistant|>"), Some(263));
        assert_eq!(tokenizer.vocab_size(), BUILTIN_VOCAB_SIZE);
        assert!(tokenizer.is_special(258) && !tokenizer.is_special(65));
        assert_eq!(tokenizer.bos_id(), Some(BUILTIN_BOS_ID));
        assert_eq!((tokenizer.eos_id(), tokenizer.pad_id()), (Some(BUILTIN_EOS_ID), Some(BUILTIN_PAD_ID)));
    }
}
