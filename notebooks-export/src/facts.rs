//! Facts about a trace and its windows, as text.

use std::collections::BTreeSet;

use epikv_schemas::{LabelWindow, Trace};

use crate::checked::Checked;
use crate::html::{Escaped, NULL, isolated, or_null};
use crate::outcome::OUTCOMES;

/// Names and contents, as HTML, of the list at the head of the page.
pub(crate) fn facts(trace: &Trace, windows: &[LabelWindow]) -> Vec<(&'static str, String)> {
    let own = |text: &str| Escaped(text).to_string();
    let decided: Vec<bool> = windows.iter().filter_map(|w| w.flipped).collect();
    let flipped = decided.iter().filter(|flipped| **flipped).count();
    let fillers: BTreeSet<&str> = windows.iter().map(|w| w.filler.as_str()).collect();
    let fillers: Vec<&str> = fillers.into_iter().collect();
    let correct = match trace.correct {
        Some(true) => "yes",
        Some(false) => "no",
        None => NULL,
    };
    vec![
        ("data set", isolated(&trace.dataset)),
        ("problem", isolated(&trace.problem_id)),
        ("right answer", or_null(trace.gold.as_deref())),
        ("answer", or_null(trace.answer.as_deref())),
        ("correct", format!("{correct} ({})", Escaped(&trace.verdict))),
        ("tokens", format!("{} prompt, {} reasoning, {} answer", trace.n_prompt, trace.n_reason, trace.n_answer)),
        ("answer boundary", format!("{} ({})", trace.boundary, Escaped(&trace.boundary_kind))),
        ("generation ended by", own(&trace.finish_reason)),
        ("filler", or_null((!fillers.is_empty()).then(|| fillers.join(", ")).as_deref())),
        ("windows that flip the answer", format!("{flipped} of {} decided, {} in all", decided.len(), windows.len())),
    ]
}

/// Rows of the legend as HTML cells: outcome with its colour, meaning, number of windows.
pub(crate) fn legend(checked: &Checked<'_>) -> Vec<Vec<String>> {
    let row = |(outcome, windows): (&crate::outcome::Outcome, &Vec<_>)| {
        let swatch = format!("<span class=\"swatch\" style=\"background:{}\"></span>", outcome.colour);
        vec![format!("{swatch}{}", outcome.word), outcome.meaning.to_owned(), windows.len().to_string()]
    };
    OUTCOMES.iter().zip(&checked.by_outcome).map(row).collect()
}

/// Heads of the table of all windows.
pub(crate) const WINDOW_HEADS: [&str; 8] =
    ["window", "start", "end", "outcome", "flipped", "answer", "smallest margin", "regenerated text"];

/// A row of the table of all windows, as HTML cells.
pub(crate) fn window_cells(window: &LabelWindow) -> Vec<String> {
    let flipped = window.flipped.map_or(NULL, |flipped| if flipped { "yes" } else { "no" });
    vec![
        window.window.to_string(),
        window.start.to_string(),
        window.end.to_string(),
        Escaped(&window.outcome).to_string(),
        flipped.to_owned(),
        or_null(window.answer.as_deref()),
        window.min_margin.map_or_else(|| NULL.to_owned(), |margin| format!("{margin:.4}")),
        Escaped(&window.answer_text).to_string(),
    ]
}
