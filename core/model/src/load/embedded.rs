//! The model embedded in the program.

use super::files::ModelFiles;

macro_rules! carried {
    ($($name:literal),+) => {
        &[$(($name, include_bytes!(concat!("../../../../data/tiny-reasoner/", $name)))),+]
    };
}

/// `data/tiny-reasoner`: see its card for what it is and how it was trained.
pub(crate) const TINY_REASONER: ModelFiles = ModelFiles::Embedded {
    name: "tiny-reasoner",
    files: carried!(
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json"
    ),
};
