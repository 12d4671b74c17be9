//! A score from outside: the seam by which a program adds a policy without touching this crate.
//!
//! ```text
//! a Signal, or a function of the cache  ->  OwnScore  ->  Score::Own  ->  Policy  ->  PolicyRow  ->  NamedPolicy  ->  the grid
//! ```
//!
//! `examples/my_policy.rs` of the workspace does it in a page.

use epikv_model::cache::RowCache;
use epikv_signals::Signal;

/// A score that is in no table of this crate.
#[derive(Debug, Clone, Copy)]
pub struct OwnScore {
    /// Its name in tables and files. Two scores of one name count as the same.
    pub name: &'static str,
    /// How it is computed.
    pub kind: OwnKind,
}

/// How a score from outside is computed.
#[derive(Debug, Clone, Copy)]
pub enum OwnKind {
    /// Given once, when a token is fed, for a model of so many layers. Generated tokens only: a prompt token that is not
    /// protected counts as lowest.
    Signal(fn(n_layers: usize) -> epikv_signals::Result<Box<dyn Signal>>),
    /// Computed anew at each eviction from what is held: for each kept set, one number a token in order of positions.
    Cache(fn(&RowCache) -> epikv_signals::Result<Vec<Vec<f32>>>),
}

impl PartialEq for OwnScore {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for OwnScore {}
