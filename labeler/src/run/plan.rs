//! A regeneration to be made: which trace, which tokens are withheld, and what the answer is read from.

use std::ops::Range;
use std::sync::Arc;

use epikv_model::Model;
use epikv_model::cache::Prefix;
use epikv_model::sampler::stream_number;

use crate::run::config::{Config, Protocol};
use crate::run::job::Job;
use crate::run::regenerate::{Context, Scored, read_prefix};
use crate::windows::filler::{FillerSource, ids_sha256};
use crate::windows::intervention::Intervention;

/// One regeneration.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Number of the job.
    pub(crate) job: usize,
    /// Number of the window in its trace.
    pub(crate) window: usize,
    /// Spans that are withheld together: one, or two of a pair, ascending and apart.
    pub(crate) spans: Vec<Range<usize>>,
    /// What stands in their place, span after span; empty unless they are overwritten.
    pub(crate) filler: Vec<u32>,
}

/// What a plan's context is cut from and shared with.
pub(crate) struct Contexts<'a> {
    pub(crate) model: &'a Model,
    pub(crate) config: &'a Config,
    pub(crate) filler: &'a FillerSource,
}

impl Contexts<'_> {
    /// A plan for spans of a trace.
    pub(crate) fn plan(&self, jobs: &[Job<'_>], job: usize, window: usize, spans: Vec<Range<usize>>) -> Plan {
        let number = stream_number(&jobs[job].trace.trace_id);
        let overwritten = self.config.intervention == Intervention::Occlude;
        let filler = if overwritten {
            spans.iter().flat_map(|span| self.filler.ids(number, span)).collect()
        } else {
            Vec::new()
        };
        Plan { job, window, spans, filler }
    }

    /// All tokens of the context, those withheld from its cache too.
    pub(crate) fn tokens(&self, jobs: &[Job<'_>], plan: &Plan) -> Vec<u32> {
        let Job { context, closing, .. } = &jobs[plan.job];
        let (n, _) = self.config.intervention.context(&plan.spans[0], context.len());
        let mut tokens = context[..n].to_vec();
        let mut filler = &plan.filler[..];
        for span in plan.spans.iter().filter(|_| !filler.is_empty()) {
            let (own, rest) = filler.split_at(span.len());
            tokens[span.clone()].copy_from_slice(own);
            filler = rest;
        }
        if self.config.intervention == Intervention::Truncate {
            tokens.extend(&context[closing.clone()]);
        }
        tokens
    }

    /// What decides the answer of a plan, in few bytes.
    pub(crate) fn digest(&self, jobs: &[Job<'_>], plan: &Plan) -> String {
        let tokens = ids_sha256(&self.tokens(jobs, plan));
        match self.hidden(jobs, plan) {
            Some((n, hidden)) => format!("{tokens} {n} without {}..{}", hidden.start, hidden.end),
            None => tokens,
        }
    }

    /// Tokens of the cache that the row begins with, and the places among them that are withheld.
    fn hidden(&self, jobs: &[Job<'_>], plan: &Plan) -> Option<(usize, Range<usize>)> {
        let intervention = self.config.intervention;
        let (n, hidden) = intervention.context(&plan.spans[0], jobs[plan.job].context.len());
        Some((intervention.n_shared(&plan.spans[0], n), hidden?))
    }

    /// The context of a plan, behind the trace's own tokens as far as these are shared; the naive protocol shares nothing.
    pub(crate) fn context(
        &self,
        jobs: &[Job<'_>],
        plan: &Plan,
        shared: Option<Arc<Prefix>>,
    ) -> epikv_model::Result<Context> {
        let job = &jobs[plan.job];
        let tokens = self.tokens(jobs, plan);
        let hidden = self.hidden(jobs, plan);
        let n_shared = match &hidden {
            Some((n, _)) => *n,
            None => self.config.intervention.n_shared(&plan.spans[0], tokens.len()),
        };
        let prefix = match (shared, &hidden) {
            (Some(prefix), _) => Some((prefix, n_shared)),
            // Nothing can be withheld from a cache before it is there.
            (None, Some(_)) => Some((read_prefix(self.model, &tokens[..n_shared])?, n_shared)),
            (None, None) => None,
        };
        let control: Arc<[u32]> = job.control.as_ref().map_or_else(|| [].into(), |control| control.ids.clone());
        let n_trace = tokens.len();
        let (draft, scored, n_more) = if self.config.intervention.runs_on() {
            let rest = &job.context[n_trace..];
            (rest.iter().chain(control.iter()).copied().collect(), Scored::Nothing, rest.len())
        } else {
            (control.clone(), Scored::Draft(control), 0)
        };
        let draft = match self.config.protocol {
            Protocol::Naive => [].into(),
            Protocol::Fast => draft,
        };
        let max_new = self.config.max_new.saturating_add(n_more);
        Ok(Context { tokens, prefix, hidden: hidden.map(|(_, hidden)| hidden), draft, scored, max_new })
    }
}

/// Tokens that the row of a span reads after what it shares with the trace.
pub(crate) fn n_read(config: &Config, job: &Job<'_>, span: &Range<usize>) -> usize {
    let (n, _) = config.intervention.context(span, job.context.len());
    let n = n + if config.intervention == Intervention::Truncate { job.closing.len() } else { 0 };
    n - config.intervention.n_shared(span, n)
}
