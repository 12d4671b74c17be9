//! Makes the rows of generations as they end, and keeps them.

use std::sync::{Mutex, PoisonError};

use crate::engine::decode::Watch;
use crate::engine::generation::{Decoded, Recorded};
use crate::engine::recorder::Eviction;
use crate::error::Result;
use crate::experiment::cells::{Cells, Finished};
use crate::experiment::prepared::{Place, Prepared};
use crate::experiment::rows::{Planned, Writer};
use crate::experiment::runs::Progress;

/// What has just ended: where it belongs, its rows, and what failed.
pub(crate) type Ended = (Place, Finished, Option<String>);

/// Makes the rows of generations as they end, and keeps them.
pub(crate) struct Keeper<'a> {
    pub(crate) writer: &'a Writer<'a>,
    pub(crate) prepared: &'a [Prepared<'a>],
    /// By job: the place of the problem, and the cell.
    pub(crate) cells: &'a [(usize, Planned)],
    pub(crate) store: Option<&'a Cells>,
    pub(crate) fresh: &'a Mutex<Vec<Ended>>,
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
}

impl Watch for Keeper<'_> {
    fn done(&self, job: usize, decoded: Decoded) -> Result<()> {
        let (place, cell) = &self.cells[job];
        let item = &self.prepared[*place];
        let (run, failure) = self.writer.row(item, cell, Some(&decoded))?;
        if let Some(store) = self.store.filter(|store| store.records_signals()) {
            let full = item.full_cells.get(&cell.sample).map(|full| store.signals_of(full)).transpose()?;
            let same = run.first_difference;
            store.signals(&cell.hash, &self.writer.signals(item, cell, &decoded, full.as_deref(), same)?)?;
        }
        let finished = Finished { run, timing: Some(self.writer.timing(item, cell, &decoded)) };
        if let Some(store) = self.store {
            store.keep(&finished)?;
        }
        // Nothing panics while it holds the lock.
        let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.push(((*place, cell.sample), finished, failure));
        (self.progress)(Progress::Done);
        Ok(())
    }

    fn wants_signals(&self, n_layers: usize) -> Result<Vec<Recorded>> {
        let wanted = self.store.is_some_and(Cells::records_signals);
        if wanted { self.writer.settings.recorded(n_layers) } else { Ok(Vec::new()) }
    }

    fn wants_evictions(&self) -> bool {
        self.store.is_some_and(Cells::records_steps)
    }

    fn evicted(&self, job: usize, part: usize, evictions: Vec<Eviction>) -> Result<()> {
        let (place, cell) = &self.cells[job];
        let rows = self.writer.steps(&self.prepared[*place], cell, &evictions)?;
        self.store.map_or(Ok(()), |store| store.steps(&cell.hash, part, &rows))
    }
}
