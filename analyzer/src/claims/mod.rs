//! What a run says of the claims of the papers.
//!
//! A [`Claim`] is a row of `claims.toml`: a [`Figure`] that is estimated, what the claim [`Says`] of it, and the runs that
//! the claim is about. [`Figure::parts`] reads the figure from the tables of a [`Run`], and [`judge`] gives the verdicts
//! of a page.

mod figure;
mod labels;
mod part;
mod policies;
mod ranks;
mod run;
mod verdict;

use serde::{Deserialize, Serialize};

pub use self::figure::Figure;
pub use self::part::{Part, Says, Scale, Test, Unequal};
pub use self::policies::{Count, Effect};
pub use self::ranks::{Against, Layers, Ranked};
pub use self::run::{Run, TRUNCATED};
pub use self::verdict::{Judged, Own, Tested, Verdict, judge};

/// A claim of a paper, and how it is tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Name.
    pub id: String,
    /// Where it is made.
    pub source: String,
    /// The claim in our words.
    #[serde(rename = "claim")]
    pub statement: String,
    /// The runs that it is about.
    #[serde(default)]
    pub own: Own,
    /// What is estimated.
    pub figure: Figure,
    /// What it says of every part of the figure; none for arithmetic and for what cannot be measured here.
    pub says: Option<Says>,
    /// What else a reader should know.
    pub note: Option<String>,
    /// Command that makes the files that decide it.
    pub command: Option<String>,
}
