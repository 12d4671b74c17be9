//! Errors of loading and running a model.

use std::path::{Path, PathBuf};

use epikv_words::Hint;

use crate::backend::device_name::DeviceName;

/// The function by which a template asks for the day.
pub(crate) const STRFTIME_NOW: &str = "strftime_now";

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of loading and running a model. Each names the place, what was expected and what was found.
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
    /// A folder, a device or a pipe stands where a file should.
    #[error("{}: expected a file, got {}", path.display(), if path.is_dir() { "a folder" } else { "a device or a pipe" })]
    NotAFile {
        /// What stands there.
        path: PathBuf,
    },
    /// A JSON file is not JSON.
    #[error("{} is not valid JSON", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The cause, with line and column.
        source: serde_json::Error,
    },
    /// A field of a configuration file is missing or has a value that this crate cannot honour.
    #[error("{}: {field}: expected {expected}, got {got}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The field, dotted.
        field: String,
        /// What would be accepted.
        expected: String,
        /// What the file says, or `nothing`.
        got: String,
    },
    /// Tensors are missing, unexpected or misshapen. All of them are listed.
    #[error("{}: {} tensors do not fit the configuration:{}", path.display(), problems.len(), list(problems))]
    Tensors {
        /// The folder or file.
        path: PathBuf,
        /// One entry a tensor.
        problems: Vec<TensorProblem>,
    },
    /// A weight file is damaged: truncated, overlapping or with impossible sizes.
    #[error("{}: {what}: expected {expected}, got {got}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The part of the file.
        what: String,
        /// What it should hold.
        expected: String,
        /// What it holds.
        got: String,
    },
    /// A tokenizer cannot be built or does not fit the model.
    #[error("{place}: tokenizer: expected {expected}, got {got}")]
    Tokenizer {
        /// The file, or the kind of tokenizer.
        place: String,
        /// What would be accepted.
        expected: String,
        /// What was found.
        got: String,
    },
    /// The tokenizers library refused a text or a file.
    #[error("{place}: the tokenizer failed")]
    TokenizerLibrary {
        /// The file, or the operation.
        place: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A chat template does not parse or render.
    #[error("{place}: the chat template failed")]
    ChatTemplate {
        /// Where the template stands.
        place: String,
        /// The cause, with the line.
        source: minijinja::Error,
    },
    /// A model was asked for in a form that is not known.
    #[error("unknown model {given:?}: expected {expected}")]
    UnknownModel {
        /// As typed.
        given: String,
        /// The accepted forms.
        expected: String,
    },
    /// A token id outside the vocabulary.
    #[error("token id {id} at {at} is outside the vocabulary of {vocab_size}")]
    TokenOutOfRange {
        /// The id.
        id: u32,
        /// Where in the batch it stands.
        at: usize,
        /// The vocabulary.
        vocab_size: usize,
    },
    /// A position beyond what the model was made for.
    #[error("position {position} exceeds the model's context of {max_positions} tokens")]
    ContextExceeded {
        /// The position.
        position: usize,
        /// The context.
        max_positions: usize,
    },
    /// More tokens than a fixed cache has free slots.
    #[error("cache full: {wanted} tokens to append, {free} of {capacity} slots free")]
    CacheFull {
        /// Tokens to append.
        wanted: usize,
        /// Free slots.
        free: usize,
        /// All slots.
        capacity: usize,
    },
    /// A request that the decoder cannot honour, by a caller's mistake.
    #[error("{what}: expected {expected}, got {got}")]
    Request {
        /// The argument.
        what: &'static str,
        /// What would be accepted.
        expected: String,
        /// What came.
        got: String,
    },
    /// A device was asked for in a form that is not known.
    #[error("unknown device {given:?}: expected cpu or cuda:N")]
    UnknownDevice {
        /// As typed.
        given: String,
    },
    /// A device that this build does not have.
    #[error("--device {device}: expected a device of this build, which has the CPU alone")]
    DeviceNotBuilt {
        /// As asked for.
        device: DeviceName,
    },
    /// Something that a device does not do.
    #[error("{what}: expected {expected} on the device {device}, got {got}")]
    Unsupported {
        /// The flag.
        what: &'static str,
        /// Where.
        device: DeviceName,
        /// What would be accepted.
        expected: String,
        /// What was asked for.
        got: String,
    },
    /// The tensor library failed.
    #[error("tensor library")]
    Tensor(#[from] candle_core::Error),
}

/// Where an error of configuration says that a folder has no weights.
pub(crate) const WEIGHTS: &str = "weights";

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { path, .. } if !path.exists() => Some(format!(
                "{} does not exist; --model takes `random:SEED`, a folder with config.json, or a .gguf file",
                path.display()
            )),
            Self::Tensors { problems, .. }
                if problems.iter().all(|p| matches!(p, TensorProblem::Unexpected { .. })) =>
            {
                Some("the weights belong to a model with more parts than config.json describes".to_owned())
            }
            Self::Damaged { .. } => Some("the file may be cut short: compare its size with the source".to_owned()),
            Self::NotAFile { .. } => Some("--model takes a folder that holds the model's files themselves".to_owned()),
            Self::Config { field, .. } if field == WEIGHTS => {
                Some("put the .safetensors files of the model beside its config.json, or pass a .gguf file".to_owned())
            }
            Self::Config { field, .. }
                if ["rope", "architecture", "model_type"].iter().any(|part| field.contains(part)) =>
            {
                Some(
                    "Llama, Qwen2 and Qwen3 models run, with RoPE default, linear or llama3 (README, A real model)"
                        .to_owned(),
                )
            }
            Self::Tokenizer { .. } => Some(
                "weights and tokenizer must come from the same model: tokenizer.json lies beside its weights, where \
                 AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER) writes it"
                    .to_owned(),
            ),
            Self::ChatTemplate { source, .. }
                if source.kind() == minijinja::ErrorKind::UnknownFunction
                    && source.to_string().contains(STRFTIME_NOW) =>
            {
                Some(
                    "the template asks for a date: give it in the template's format, as in --template-date '26 Jul 2024'"
                        .to_owned(),
                )
            }
            Self::UnknownDevice { .. } => Some("`cpu` runs everywhere; `cuda:0` is the first CUDA device".to_owned()),
            Self::DeviceNotBuilt { device } => Some(format!(
                "{} devices need a build of their own, with the CUDA toolkit installed: cargo build --release --features {}",
                device.kind(),
                device.kind()
            )),
            Self::Unsupported { what, expected, .. } => {
                Some(format!("leave {what} out or set it to {expected}, or choose another --device"))
            }
            Self::ContextExceeded { .. } => Some("shorten the trace, or lower --max-new".to_owned()),
            _ => None,
        }
    }
}

impl Error {
    /// The error of a file that could not be read or written, for `map_err`.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| match source.kind() {
            std::io::ErrorKind::IsADirectory => Self::NotAFile { path: path.to_owned() },
            _ => Self::Io { path: path.to_owned(), source },
        }
    }
}

/// One tensor that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TensorProblem {
    /// Needed, not there.
    Missing {
        /// Name.
        name: String,
        /// Shape it should have.
        expected: Vec<usize>,
    },
    /// There, not needed.
    Unexpected {
        /// Name.
        name: String,
        /// Its shape.
        got: Vec<usize>,
    },
    /// Of another shape.
    Shape {
        /// Name.
        name: String,
        /// Shape it should have.
        expected: Vec<usize>,
        /// Its shape.
        got: Vec<usize>,
    },
}

impl std::fmt::Display for TensorProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { name, expected } => write!(f, "{name} is missing (shape {expected:?})"),
            Self::Unexpected { name, got } => write!(f, "{name} is unexpected (shape {got:?})"),
            Self::Shape { name, expected, got } => write!(f, "{name} has shape {got:?}, expected {expected:?}"),
        }
    }
}

/// At most twenty lines, so that a wrong folder does not print a thousand.
fn list(problems: &[TensorProblem]) -> String {
    const SHOWN: usize = 20;
    let mut lines: Vec<String> = problems.iter().take(SHOWN).map(ToString::to_string).collect();
    if problems.len() > SHOWN {
        lines.push(format!("and {} more", problems.len() - SHOWN));
    }
    lines.iter().fold(String::new(), |text, line| text + "\n  " + line)
}
