//! Errors of problems, prompts and traces.

use std::path::PathBuf;

use epikv_words::Hint;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of reading problems and traces and of building prompts. Each names the file and the place in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A problem that is too long for any model.
    #[error("{}, {unit} {line}: expected a problem of at most {limit} bytes, got {got}", path.display())]
    LongProblem {
        /// The file.
        path: PathBuf,
        /// What it consists of: `line` or `row`.
        unit: &'static str,
        /// Where, from 1.
        line: usize,
        /// Bytes that a problem may have.
        limit: usize,
        /// Its bytes.
        got: usize,
    },
    /// A row lacks something or holds something else.
    #[error("{}, {unit} {line}: expected {expected}, got {got}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// `line` of a text file, `row` of a Parquet file.
        unit: &'static str,
        /// Its number, from 1.
        line: usize,
        /// What would be accepted.
        expected: String,
        /// What is there.
        got: String,
    },
    /// Two rows have the same id.
    #[error("{}, {unit} {line}: expected ids that differ, got {id:?} again (first in {unit} {first})", path.display())]
    DuplicateId {
        /// The file.
        path: PathBuf,
        /// `line` or `row`.
        unit: &'static str,
        /// Number of the second, from 1.
        line: usize,
        /// Number of the first.
        first: usize,
        /// The id.
        id: String,
    },
    /// A file has no rows.
    #[error("{}: expected at least one {expected}, got an empty file", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// What its rows are.
        expected: &'static str,
    },
    /// A token id that the model does not have.
    #[error(
        "{}, {unit} {line}: expected token ids below {vocab_size}, the model's vocabulary, got {id} at index {at}",
        path.display()
    )]
    TokenOutOfVocabulary {
        /// The file.
        path: PathBuf,
        /// `line` or `row`.
        unit: &'static str,
        /// Its number, from 1.
        line: usize,
        /// The id.
        id: i64,
        /// Index in the list.
        at: usize,
        /// Rows of the model's embedding.
        vocab_size: usize,
    },
    /// A chat prompt was asked for and the model has no template.
    #[error("{place}: expected a chat template, got none")]
    NoChatTemplate {
        /// The model's tokenizer.
        place: String,
    },
    /// A prompt that does not ask what it should.
    #[error("{place}: expected a prompt that holds the problem's text, the chat template left it out or changed it")]
    ProblemLeftOut {
        /// Where the template stands.
        place: String,
    },
    /// A file whose token ids are those of another tokenizer.
    #[error("{}: made with another vocabulary: expected tokenizer {expected}, got {got}", path.display())]
    OtherTokenizer {
        /// The file.
        path: PathBuf,
        /// Hash of the tokenizer that made it.
        expected: String,
        /// Hash of the model's tokenizer, and where that lies.
        got: String,
    },
    /// A tokenizer that cannot write the texts of a file.
    #[error(
        "{}: expected a tokenizer that gives the texts back, got {tokenizer}, which loses {lost} of {of} characters \
         ({:.1} %)", path.display(), 100.0 * *lost as f64 / (*of).max(1) as f64
    )]
    LosesText {
        /// The file.
        path: PathBuf,
        /// Where the tokenizer lies.
        tokenizer: String,
        /// Characters that it does not give back, white space not counted.
        lost: usize,
        /// Characters of the texts.
        of: usize,
    },
    /// A prompt length that the token list does not have.
    #[error("expected a prompt of at most {n_tokens} tokens, the length of the trace, got {n_prompt}")]
    PromptTooLong {
        /// As given.
        n_prompt: usize,
        /// Tokens of the trace.
        n_tokens: usize,
    },
    /// A count that the record files cannot hold.
    #[error("{what}: expected at most {max}, got {got}", max = i32::MAX)]
    TooLarge {
        /// The column.
        what: &'static str,
        /// The value.
        got: u64,
    },
    /// The tokenizer or the chat template failed.
    #[error(transparent)]
    Model(#[from] epikv_model::error::Error),
    /// A file could not be read as Parquet or as JSON lines.
    #[error(transparent)]
    Schemas(#[from] epikv_schemas::Error),
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoChatTemplate { .. } => {
                Some("--prompt-style plain uses the problem text as it is; base models have no template".to_owned())
            }
            Self::LongProblem { .. } => {
                Some("the file should hold one problem a line or row; is it another kind of file?".to_owned())
            }
            Self::ProblemLeftOut { .. } => Some("--prompt-style plain uses the problem text as it is".to_owned()),
            Self::OtherTokenizer { .. } => {
                Some("--model must be the one that the traces were made or imported with".to_owned())
            }
            Self::LosesText { .. } => Some(
                "--model must be the one that wrote the traces; its weights are not needed, a folder with tokenizer.json is \
                 enough"
                    .to_owned(),
            ),
            Self::TokenOutOfVocabulary { .. } => {
                Some("the trace may come from another model: --model must be the one that wrote it".to_owned())
            }
            Self::Io { path, .. } if !path.exists() => Some(format!("{} does not exist", path.display())),
            Self::Model(error) => error.hint(),
            Self::Schemas(error) => error.hint(),
            _ => None,
        }
    }
}
