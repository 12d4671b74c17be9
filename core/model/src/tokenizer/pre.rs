//! Known values of `tokenizer.ggml.pre`, the name by which a GGUF file says how text is cut before merging.
//!
//! The name decides ids (how digits, spaces and line ends are cut), so an unknown one is an error: guessing GPT-2 gives
//! a model plausible text with wrong tokens. Only rules that are known exactly are here. Where llama.cpp and the model's
//! own `tokenizer.json` differ, `tokenizer.json` is followed: Qwen's normalises to NFC, which llama.cpp leaves out.

use tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

use super::library_error;
use crate::error::Result;

/// Words, runs of up to three digits, punctuation, line ends, spaces.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// As `LLAMA3`, each digit alone.
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// How text is cut.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// The pattern of GPT-2.
    Gpt2,
    /// Each digit alone, then the pattern of GPT-2.
    DigitsGpt2,
    /// A pattern of its own.
    Pattern(&'static str),
}

/// One rule and the names it goes by.
#[derive(Debug)]
pub(super) struct Rule {
    names: &'static [&'static str],
    cut: Cut,
    /// Unicode normalisation form C before anything else.
    pub(super) nfc: bool,
    /// A piece that is itself a token is taken whole, without merging.
    pub(super) ignore_merges: bool,
    /// Begin-of-sequence in front, where the file does not say.
    pub(super) add_bos: bool,
}

const RULES: [Rule; 5] = [
    Rule { names: &["gpt-2", "phi-2"], cut: Cut::Gpt2, nfc: false, ignore_merges: false, add_bos: false },
    Rule {
        names: &["smollm", "starcoder", "refact"],
        cut: Cut::DigitsGpt2,
        nfc: false,
        ignore_merges: false,
        add_bos: false,
    },
    Rule {
        names: &["llama-bpe", "llama3", "llama-v3"],
        cut: Cut::Pattern(LLAMA3),
        nfc: false,
        ignore_merges: true,
        add_bos: true,
    },
    Rule { names: &["smaug-bpe"], cut: Cut::Pattern(LLAMA3), nfc: false, ignore_merges: false, add_bos: false },
    Rule {
        names: &["qwen2", "deepseek-r1-qwen"],
        cut: Cut::Pattern(QWEN2),
        nfc: true,
        ignore_merges: false,
        add_bos: false,
    },
];

/// The rule of a name.
pub(super) fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.names.contains(&name))
}

/// All known names, for errors.
pub(super) fn known() -> String {
    RULES.iter().flat_map(|rule| rule.names).copied().collect::<Vec<_>>().join(", ")
}

impl Rule {
    /// The pre-tokenizer: cut, then map bytes to the alphabet. Never a space in front.
    pub(super) fn pre_tokenizer(&self, place: &str) -> Result<PreTokenizerWrapper> {
        let first = match self.cut {
            Cut::Gpt2 => return Ok(ByteLevel::new(false, true, true).into()),
            Cut::DigitsGpt2 => Digits::new(true).into(),
            Cut::Pattern(pattern) => {
                let pattern = SplitPattern::Regex(pattern.to_owned());
                Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(library_error(place))?.into()
            }
        };
        let with_gpt2 = matches!(self.cut, Cut::DigitsGpt2);
        Ok(Sequence::new(vec![first, ByteLevel::new(false, true, with_gpt2).into()]).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    fn pieces(name: &str, text: &str) -> Vec<String> {
        let cut = find(name).unwrap().pre_tokenizer("test").unwrap();
        let mut string = PreTokenizedString::from(text);
        cut.pre_tokenize(&mut string).unwrap();
        let splits = string.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(piece, _, _)| piece.to_owned()).collect()
    }

    #[test]
    fn digits_are_cut_by_rule() {
        assert_eq!(pieces("gpt-2", "a 12345"), ["a", "Ġ12345"]);
        assert_eq!(pieces("smollm", "a 12345"), ["a", "Ġ", "1", "2", "3", "4", "5"]);
        assert_eq!(pieces("llama-bpe", "a 12345"), ["a", "Ġ", "123", "45"]);
        assert_eq!(pieces("qwen2", "a 12345"), ["a", "Ġ", "1", "2", "3", "4", "5"]);
    }

    #[test]
    fn no_space_is_put_in_front() {
        for rule in &RULES {
            assert_eq!(pieces(rule.names[0], "Hello")[0], "Hello", "{}", rule.names[0]);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = RULES.iter().flat_map(|rule| rule.names).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), RULES.iter().map(|rule| rule.names.len()).sum::<usize>());
    }
}
