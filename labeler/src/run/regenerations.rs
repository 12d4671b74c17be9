//! Regenerations of a run: those that the journal does not hold are made, the others are taken from it.

use std::sync::atomic::{AtomicBool, Ordering};

use epikv_model::Model;
use epikv_model::session::Ledger;

use crate::error::{Error, Result};
use crate::run::config::{Config, Protocol};
use crate::run::job::Job;
use crate::run::journal::Journal;
use crate::run::labels::{Labels, Progress};
use crate::run::plan::{Contexts, Plan};
use crate::run::prefixes::Prefixes;
use crate::run::regenerate::{Context, Regenerated, Scored, read_prefix, regenerate};
use crate::run::rows::timing;
use crate::windows::filler::ids_sha256;

/// Regenerations of one run, by what is known of them already.
pub(crate) struct Regenerations<'a> {
    model: &'a Model,
    config: &'a Config,
    journal: Option<&'a mut Journal>,
    interrupted: &'a AtomicBool,
    watch: &'a mut (dyn FnMut(Progress) + Send),
    pub(crate) ledger: Ledger,
    prefixes: Prefixes,
}

impl<'a> Regenerations<'a> {
    pub(crate) fn new(
        model: &'a Model,
        config: &'a Config,
        journal: Option<&'a mut Journal>,
        interrupted: &'a AtomicBool,
        watch: &'a mut (dyn FnMut(Progress) + Send),
    ) -> Self {
        let (ledger, prefixes) = (Ledger::default(), Prefixes::default());
        Self { model, config, journal, interrupted, watch, ledger, prefixes }
    }
}

impl Regenerations<'_> {
    /// Regenerates the answer of each trace with nothing withheld.
    pub(crate) fn controls(&mut self, jobs: &mut [Job<'_>], labels: &mut Labels) -> Result<()> {
        let (model, config) = (self.model, self.config);
        let stop_ids = model.stop_ids();
        let (mut prefixes, mut n_shared) = (Prefixes::default(), 0);
        let controls = self.run(
            "controls",
            jobs.len(),
            |i| ids_sha256(&jobs[i].context),
            |i| {
                let (tokens, max_new) = (jobs[i].context.clone(), config.max_new);
                let (draft, prefix) = match config.protocol {
                    Protocol::Naive => ([].into(), None),
                    Protocol::Fast => {
                        let prefix = read_prefix(model, &tokens)?;
                        n_shared += tokens.len();
                        prefixes.keep(i, &prefix);
                        (jobs[i].own_answer(&stop_ids).into(), Some((prefix, tokens.len() - 1)))
                    }
                };
                Ok(Context { tokens, prefix, hidden: None, draft, scored: Scored::Itself, max_new })
            },
        )?;
        self.ledger.prefill += n_shared as u64;
        self.prefixes = prefixes;
        for (job, control) in jobs.iter_mut().zip(controls) {
            labels.timings.push(timing(job.trace, None, &control, config));
            let own = job.own_answer(&stop_ids);
            let own = &own[..own.len().min(control.ids.len())];
            let ended = own.last().is_some_and(|id| stop_ids.contains(id));
            let own = model.tokenizer.decode(&own[..own.len() - usize::from(ended)])?;
            job.set_control(control, &own, config.answer);
        }
        Ok(())
    }

    /// Regenerates the answers of plans; those of a trace follow one another.
    pub(crate) fn plans(
        &mut self,
        phase: &'static str,
        contexts: &Contexts<'_>,
        jobs: &[Job<'_>],
        plans: &[Plan],
    ) -> Result<Vec<Regenerated>> {
        let (model, config) = (self.model, self.config);
        // One prefix at a time is enough, besides those that the controls left.
        let (mut shared, mut n_shared) = (None, 0);
        let mut prefixes = std::mem::take(&mut self.prefixes);
        let results = self.run(
            phase,
            plans.len(),
            |i| contexts.digest(jobs, &plans[i]),
            |i| {
                let plan = &plans[i];
                let prefix = match (config.protocol, shared.take()) {
                    (Protocol::Naive, _) => None,
                    (Protocol::Fast, Some((job, prefix))) if job == plan.job => Some(prefix),
                    (Protocol::Fast, _) => Some(if let Some(prefix) = prefixes.take(plan.job) {
                        prefix
                    } else {
                        let original = &jobs[plan.job].context;
                        n_shared += original.len();
                        read_prefix(model, original)?
                    }),
                };
                shared = prefix.clone().map(|prefix| (plan.job, prefix));
                let context = contexts.context(jobs, plan, prefix)?;
                if config.protocol == Protocol::Naive {
                    n_shared += context.prefix.as_ref().map_or(0, |(_, n)| *n);
                }
                Ok(context)
            },
        )?;
        self.ledger.prefill += n_shared as u64;
        Ok(results)
    }

    /// Regenerates `n` answers: those that the journal does not hold under their digest, in order.
    fn run(
        &mut self,
        phase: &'static str,
        n: usize,
        digest: impl Fn(usize) -> String + Sync,
        mut context: impl FnMut(usize) -> epikv_model::Result<Context> + Send,
    ) -> Result<Vec<Regenerated>> {
        let Self { model, config, journal, interrupted, watch, ledger, .. } = self;
        watch(Progress::Planned { phase, total: n });
        let mut results: Vec<Option<Regenerated>> = vec![None; n];
        if let Some(journal) = journal.as_deref().filter(|journal| !journal.is_empty()) {
            for (i, result) in results.iter_mut().enumerate() {
                *result = journal.find(&digest(i), model)?;
                if result.is_some() {
                    watch(Progress::Done);
                }
            }
        }
        let missing: Vec<usize> = (0..n).filter(|i| results[*i].is_none()).collect();
        let contexts = missing.iter().map(|&i| Ok((i, context(i)?)));
        let contexts = contexts.take_while(|_| !interrupted.load(Ordering::Relaxed));
        *ledger += regenerate(model, missing.len(), contexts, config, |i, result| {
            if let Some(journal) = journal {
                journal.add(digest(i), &result)?;
            }
            results[i] = Some(result);
            watch(Progress::Done);
            Ok(())
        })?;
        let n_done = results.iter().flatten().count();
        let results: Option<Vec<Regenerated>> = results.into_iter().collect();
        results.ok_or(Error::Interrupted { phase, n_done, n })
    }
}
