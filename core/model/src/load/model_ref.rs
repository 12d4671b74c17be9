//! The forms of `--model`, told apart by spelling and by the files on disk.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::random_spec::{PREFIX, RandomSpec};
use crate::error::{Error, Result};

/// The accepted forms, as errors list them.
const FORMS: &str = "`tiny`, `random:SEED[,key=value...]`, a folder with config.json, or a .gguf file";

/// A model as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelRef {
    /// The embedded model.
    Tiny,
    /// A seeded random decoder.
    Random(RandomSpec),
    /// A Hugging Face folder.
    Folder(PathBuf),
    /// A GGUF file.
    Gguf(PathBuf),
}

impl FromStr for ModelRef {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let path = Path::new(text);
        let unknown = |expected: String| Err(Error::UnknownModel { given: text.to_owned(), expected });
        if text == "tiny" {
            Ok(Self::Tiny)
        } else if text.starts_with(PREFIX) {
            Ok(Self::Random(text.parse()?))
        } else if path.is_dir() {
            Ok(Self::Folder(path.to_owned()))
        } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf")) {
            Ok(Self::Gguf(path.to_owned()))
        } else if path.is_file() {
            unknown(format!("{FORMS}; this is a file of another kind"))
        } else if is_hub_id(text) {
            let advice = "nothing is fetched from the Hub: download the model to a folder and pass the folder";
            unknown(format!("a folder of this name, which does not exist; {advice}"))
        } else {
            unknown(format!("{FORMS}; there is no such folder"))
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tiny => f.write_str("tiny"),
            Self::Random(spec) => spec.fmt(f),
            Self::Folder(path) | Self::Gguf(path) => path.display().fmt(f),
        }
    }
}

/// Whether a text has the form `org/name` of a model on the Hugging Face Hub.
pub fn is_hub_id(text: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    text.split_once('/').is_some_and(|(organisation, name)| part(organisation) && part(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        text.parse::<ModelRef>().unwrap_err().to_string()
    }

    #[test]
    fn forms_are_told_apart_and_shown_as_typed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_str().unwrap();
        for text in ["tiny", "random:3,layers=2", "some/where/model.gguf", folder] {
            assert_eq!(text.parse::<ModelRef>().unwrap().to_string(), text);
        }
        assert_eq!("tiny".parse::<ModelRef>().unwrap(), ModelRef::Tiny);
        assert!(matches!("x.GGUF".parse::<ModelRef>().unwrap(), ModelRef::Gguf(_)));
        assert!(matches!(folder.parse::<ModelRef>().unwrap(), ModelRef::Folder(_)));
    }

    #[test]
    fn a_hub_id_says_that_nothing_is_fetched() {
        assert!(message("deepseek-ai/DeepSeek-R1-Distill-Llama-8B").contains("nothing is fetched from the Hub"));
        assert!(is_hub_id("Qwen/Qwen3-0.6B"));
        for text in ["./models/x", "a/b/c", "/models", "models/", "plain"] {
            assert!(!is_hub_id(text), "{text}");
        }
    }

    #[test]
    fn other_texts_list_the_forms() {
        assert!(message("plain").contains("there is no such folder"));
        assert!(message("").contains("random:SEED"));
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(message(file.path().to_str().unwrap()).contains("a file of another kind"));
    }
}
