//! How long a problem's trace is.

epikv_words::words! {
    /// Levels of length, counted in tokens of the reasoning.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Level {
        /// 45 to 130 tokens of reasoning.
        Short = "short",
        /// 140 to 250 tokens of reasoning.
        Middle = "middle",
        /// 290 to 410 tokens of reasoning.
        Default = "default",
        /// 1,050 to 1,220 tokens of reasoning.
        Long = "long",
    }
}

/// Ranges, inclusive, that a level draws from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranges {
    /// Tokens of the reasoning.
    pub(super) n_tokens: (usize, usize),
    /// Letters that are worked out.
    pub(super) n_derived: (usize, usize),
    /// Values that the query combines.
    pub(super) n_queried: (usize, usize),
    /// Letters between two queried values at least.
    pub(super) gap: usize,
}

impl Level {
    pub(super) fn ranges(self) -> Ranges {
        let ranges = |n_tokens, n_derived, n_queried, gap| Ranges { n_tokens, n_derived, n_queried, gap };
        match self {
            Self::Short => ranges((45, 130), (3, 7), (2, 3), 1),
            Self::Middle => ranges((140, 250), (7, 14), (2, 4), 2),
            Self::Default => ranges((290, 410), (13, 24), (2, 4), 3),
            Self::Long => ranges((1050, 1220), (40, 50), (2, 4), 5),
        }
    }
}
