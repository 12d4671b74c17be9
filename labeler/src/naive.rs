//! The protocol as the paper describes it: for each window a fresh forward pass over the whole context and one greedy
//! regeneration. Nothing is shared or guessed; this is what the fast protocol is held against.

use epikv_model::Model;
use epikv_model::cache::{Capacity, Scope};
use epikv_model::sampler::Sampling;
use epikv_model::session::{Finish, FinishedRow, Ledger, RowSpec, Session};

use crate::error::Result;

/// A regenerated answer.
#[derive(Debug, Clone)]
pub(crate) struct Regenerated {
    /// Text of the new tokens, without the ending one.
    pub(crate) text: String,
    pub(crate) n_new: usize,
    pub(crate) finish: Finish,
    pub(crate) min_margin: Option<f32>,
    pub(crate) n_forwarded: usize,
    pub(crate) wall_s: f64,
}

impl Regenerated {
    /// Whether it was stopped before its own end.
    pub(crate) fn is_cut(&self) -> bool {
        self.finish != Finish::Eos
    }
}

/// Regenerates the answers of many contexts, `batch` at a time; `done` gets each as it ends, by the index of its context.
pub(crate) fn regenerate(
    model: &Model,
    contexts: impl Iterator<Item = Vec<u32>>,
    max_new: usize,
    batch: usize,
    mut done: impl FnMut(usize, Regenerated),
) -> Result<Ledger> {
    let stop_ids = model.stop_ids();
    let specs = contexts.enumerate().map(|(key, context)| {
        let cache = model.decoder.cache(Scope::Global, Capacity::Growing)?;
        Ok(RowSpec { key, context, cache, max_new, stop_ids: stop_ids.clone(), sampling: Sampling::Greedy })
    });
    let mut session = Session::new(&model.decoder);
    session.run(specs, batch, |row| -> Result<()> {
        done(row.key, regenerated(model, &row)?);
        Ok(())
    })?;
    Ok(session.ledger())
}

fn regenerated(model: &Model, row: &FinishedRow) -> Result<Regenerated> {
    let ended = row.finish == Finish::Eos;
    let text = model.tokenizer.decode(&row.generated[..row.generated.len() - usize::from(ended)])?;
    Ok(Regenerated {
        text,
        n_new: row.generated.len(),
        finish: row.finish,
        min_margin: row.margins.iter().copied().reduce(f32::min),
        n_forwarded: row.n_context + row.generated.len().saturating_sub(1),
        wall_s: row.wall.as_secs_f64(),
    })
}
