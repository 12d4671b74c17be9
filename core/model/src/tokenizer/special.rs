//! The named special tokens of a model: begin, end, padding.

/// Names that Transformers gives to special tokens, in its order; chat templates see them as variables.
const NAMES: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// Texts of the named special tokens, as `tokenizer_config.json` or GGUF metadata declare them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    pairs: Vec<(&'static str, String)>,
}

impl SpecialTokens {
    /// From name and text; names that Transformers does not know are left out.
    pub(crate) fn from_pairs<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let given: Vec<_> = given.into_iter().collect();
        let find = |name: &'static str| given.iter().find(|pair| pair.0 == name).map(|pair| (name, pair.1.to_owned()));
        Self { pairs: NAMES.into_iter().filter_map(find).collect() }
    }

    /// The known names.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }

    /// Name and text of each token that is set.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.pairs.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// The text of one, for example `bos_token`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|pair| pair.0 == name).map(|pair| pair.1)
    }
}
