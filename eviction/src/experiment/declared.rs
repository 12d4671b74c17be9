//! Declarations made before a run: contrasts and the margin of equivalence, kept in the folder of the results.
//!
//! A declaration counts only if it was made before results were there. A contrast counts while its first policy has no
//! finished generation, a margin while no policy that evicts has one. A later margin is refused, a later contrast is
//! called exploratory, and the report says so.

use std::path::Path;

use epikv_schemas::fs;
use serde::{Deserialize, Serialize};

use crate::analysis::summary::Comparisons;
use crate::error::{DeclaredError, Result};
use crate::experiment::cells::Cells;
use crate::policy::registry::FULL;

/// The file of the declaration.
const FILE: &str = "declared.json";

/// A declaration of a page at most.
const LIMIT: u64 = 1 << 20;

/// What a folder holds.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    margin: Option<f64>,
    primary: Vec<(String, String)>,
}

/// Takes down what was declared and returns the comparisons that count, with a line for each that does not.
///
/// # Errors
/// If the declaration of the folder cannot be read or replaced, or a margin comes after results.
pub fn declare(folder: &Path, asked: Comparisons, cells: &Cells, fresh: bool) -> Result<(Comparisons, Vec<String>)> {
    let path = folder.join(FILE);
    let mut declared = if path.exists() && !fresh {
        let text = fs::read_text(&path, LIMIT)?;
        serde_json::from_str(&text).map_err(|source| DeclaredError::Damaged { path: path.clone(), source })?
    } else {
        Declared::default()
    };
    let finished = cells.finished_policies();
    if let Some(margin) = asked.margin.filter(|margin| declared.margin != Some(*margin)) {
        if finished.iter().any(|policy| !policy.starts_with(FULL)) {
            let declared = declared.margin;
            return Err(DeclaredError::LateMargin { margin, n_finished: finished.len(), declared }.into());
        }
        declared.margin = Some(margin);
    }
    let (mut primary, mut late) = (Vec::new(), Vec::new());
    for contrast in asked.primary {
        if !declared.primary.contains(&contrast) {
            if finished.contains(&contrast.0) {
                late.push(format!(
                    "{}:{} was declared after generations of {} were finished and is exploratory",
                    contrast.0, contrast.1, contrast.0
                ));
                continue;
            }
            declared.primary.push(contrast.clone());
        }
        primary.push(contrast);
    }
    // What was declared earlier counts whether it is typed again or not.
    primary.extend(declared.primary.iter().filter(|contrast| !primary.contains(contrast)).cloned().collect::<Vec<_>>());
    if declared != Declared::default() {
        fs::create_folder(folder)?;
        let text = serde_json::to_string_pretty(&declared)
            .map_err(|source| DeclaredError::Damaged { path: path.clone(), source })?;
        fs::write_atomic(&path, text.as_bytes())?;
    } else if path.exists() {
        std::fs::remove_file(&path).map_err(|source| DeclaredError::Remove { path, source })?;
    }
    Ok((Comparisons { margin: declared.margin, primary, ..asked }, late))
}
