//! What a regeneration is compared with, and what counts as its answer.

use serde::Serialize;

epikv_words::words! {
    /// Which answer a regeneration is compared with, and which outcomes count as a flip.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
    #[serde(into = "&'static str")]
    pub enum Mapping {
        /// Against the control; a truncated or unsure regeneration decides nothing.
        #[default]
        Control = "control",
        /// Against gold, string for string; no box or a truncated regeneration counts as a flip. What the published labels did.
        Paper = "paper",
    }
}

epikv_words::words! {
    /// What counts as the answer of a regeneration.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
    #[serde(into = "&'static str")]
    pub enum AnswerKind {
        /// Find the answer in the text and grade it.
        ///
        /// A mathematical answer, found by the grader's rules and compared by value.
        #[default]
        Math = "math",
        /// Compare the whole text, letter by letter.
        ///
        /// The whole regenerated text is compared. For models that give no boxed answers; then the reference is
        /// the trace's own continuation, not gold.
        Text = "text",
    }
}
