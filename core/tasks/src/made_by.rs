//! Checks that a file fits the model: token ids are valid only with the tokenizer that made them.

use std::path::Path;

use epikv_model::Model;
use epikv_schemas::Provenance;

use crate::error::{Error, Result};

/// Refuses a file that another tokenizer made, as far as its provenance says.
///
/// # Errors
/// If the tokenizers differ.
pub fn check_tokenizer(made_by: &Provenance, model: &Model, path: &Path) -> Result<()> {
    let tokenizer = &model.tokenizer;
    match stored(made_by, "tokenizer_sha256").filter(|sha| *sha != tokenizer.sha256()) {
        None => Ok(()),
        Some(expected) => Err(Error::OtherTokenizer {
            path: path.to_owned(),
            expected: expected.to_owned(),
            got: format!("{} of {}", tokenizer.sha256(), tokenizer.place()),
        }),
    }
}

/// Whether a file was made with other weights than the model's, as far as its provenance says.
pub fn has_other_weights(made_by: &Provenance, model: &Model) -> bool {
    let stored = stored(made_by, "weights_sha256");
    stored.is_some_and(|sha| model.origin.weights_sha256().is_ok_and(|own| own != sha))
}

fn stored<'p>(made_by: &'p Provenance, key: &str) -> Option<&'p str> {
    made_by.get("model")?[key].as_str()
}
