//! Special tokens around a text.

use tokenizers::PostProcessorWrapper;

use super::library_error;
use crate::error::Result;

/// A post-processor that puts `bos` in front and `eos` behind. Built from its serialised form, since the library's
/// own syntax cannot express tokens that hold a colon.
pub(super) fn post_processor(
    bos: Option<&(String, u32)>,
    eos: Option<&(String, u32)>,
    place: &str,
) -> Result<PostProcessorWrapper> {
    let special = |token: Option<&(String, u32)>, type_id: u32| {
        token.iter().map(|(text, _)| serde_json::json!({"SpecialToken": {"id": text, "type_id": type_id}})).collect()
    };
    let around = |sequence: &str, type_id: u32| -> Vec<serde_json::Value> {
        let middle = vec![serde_json::json!({"Sequence": {"id": sequence, "type_id": type_id}})];
        [special(bos, type_id), middle, special(eos, type_id)].concat()
    };
    let declared: serde_json::Map<_, _> = bos
        .iter()
        .chain(eos.iter())
        .map(|(text, id)| (text.clone(), serde_json::json!({"id": text, "ids": [id], "tokens": [text]})))
        .collect();
    let pair = [around("A", 0), around("B", 1)].concat();
    let value = serde_json::json!({
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": pair,
        "special_tokens": declared,
    });
    serde_json::from_value(value).map_err(|source| library_error(place)(Box::new(source)))
}
