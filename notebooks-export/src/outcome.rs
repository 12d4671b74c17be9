//! The outcomes of a window: word, colour and meaning.
//!
//! Colours are told apart with the common colour-vision deficiencies. Colour never carries the meaning alone: in the
//! figure each outcome has a row of its own with its word beside it.

use epikv_figures::{BLUE, ORANGE, PURPLE, SKY, VERMILION};

/// An outcome as a page shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The word in the files.
    pub(crate) word: &'static str,
    /// What it says of the answer.
    pub(crate) meaning: &'static str,
    /// Fill of its bars.
    pub(crate) colour: &'static str,
}

/// All outcomes, flips first.
pub(crate) const OUTCOMES: [Outcome; 6] = [
    Outcome { word: "changed", meaning: "another answer", colour: VERMILION },
    Outcome { word: "no_answer", meaning: "ended without an answer", colour: ORANGE },
    Outcome { word: "truncated", meaning: "cut off before an answer", colour: PURPLE },
    Outcome { word: "unsure", meaning: "the grader could not decide", colour: "#999999" },
    Outcome { word: "same_value_other_form", meaning: "the same value, written differently", colour: SKY },
    Outcome { word: "same", meaning: "the same answer", colour: BLUE },
];

/// The place of a word in [`OUTCOMES`].
pub(crate) fn index_of(word: &str) -> Option<usize> {
    OUTCOMES.iter().position(|outcome| outcome.word == word)
}

#[cfg(test)]
mod tests {
    use epikv_schemas::{LabelWindow, Record, Role};

    use super::*;

    #[test]
    fn the_words_are_those_of_the_record() {
        let column = LabelWindow::TABLE.column("outcome").expect("a column");
        let Role::Word(words) = column.role else { panic!("outcome is a word: {:?}", column.role) };
        let (mut ours, mut theirs) = (OUTCOMES.map(|o| o.word).to_vec(), words.to_vec());
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs);
        assert_eq!(index_of("unsure"), Some(3));
        assert_eq!(index_of("same "), None);
    }

    #[test]
    fn colours_differ() {
        let mut colours = OUTCOMES.map(|o| o.colour).to_vec();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), OUTCOMES.len());
    }
}
