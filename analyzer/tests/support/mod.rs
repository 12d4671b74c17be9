//! Golden files.

use serde_json::Value;

/// A file of the folder `golden`.
pub(crate) fn golden(file: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    serde_json::from_str(&std::fs::read_to_string(path).expect("committed")).expect("JSON")
}

/// The members of a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}
