//! Prefixes read for the controls, kept for the windows of the same traces.

use std::collections::BTreeMap;
use std::sync::Arc;

use epikv_model::cache::Prefix;

/// Bytes of keys and values that are kept between controls and windows, so that memory does not grow with the number of
/// traces.
const ROOM: usize = 256 << 20;

/// Whether one more prefix is kept beside others, by their bytes.
pub(crate) fn fits(kept: usize, more: usize) -> bool {
    kept + more <= ROOM
}

/// Prefixes by trace, as many as there is room for.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    kept: BTreeMap<usize, Arc<Prefix>>,
    bytes: usize,
}

impl Prefixes {
    /// Keeps the prefix of a trace, if it fits.
    pub(crate) fn keep(&mut self, job: usize, prefix: &Arc<Prefix>) {
        if fits(self.bytes, prefix.bytes()) {
            self.bytes += prefix.bytes();
            self.kept.insert(job, prefix.clone());
        }
    }

    /// Gives the prefix of a trace back.
    pub(crate) fn take(&mut self, job: usize) -> Option<Arc<Prefix>> {
        let prefix = self.kept.remove(&job)?;
        self.bytes -= prefix.bytes();
        Some(prefix)
    }
}
