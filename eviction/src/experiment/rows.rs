//! From a generation to its rows in the record files.

use std::collections::BTreeMap;

use epikv_model::Model;
use epikv_model::decoder::AttentionKernel;
use epikv_model::session::Finish;
use epikv_schemas::{EvictionRun, EvictionSignal, EvictionStep, EvictionTiming};
use epikv_tasks::trace::{FinishReason, Generation, Sampling, build_trace};

use crate::engine::certificate::Certificate;
use crate::engine::generation::Decoded;
use crate::engine::recorder::Eviction;
use crate::error::{Error, Result};
use crate::experiment::config::Settings;
use crate::experiment::outcome::Outcome;
use crate::experiment::prepared::Prepared;
use crate::policy::budget::Budget;
use crate::policy::parse::NamedPolicy;

/// A problem under a policy and a budget, before it is decoded.
pub(crate) struct Planned {
    /// Hash of what determines the row.
    pub(crate) hash: String,
    pub(crate) sample: u32,
    pub(crate) budget: Option<Budget>,
    /// The budget in tokens.
    pub(crate) tokens: Option<usize>,
    /// Why it is not decoded.
    pub(crate) refused: Option<String>,
    /// Whether the budget has no room for what some policy protects.
    pub(crate) infeasible: bool,
}

/// What all rows of one policy share.
pub(crate) struct Writer<'a> {
    pub(crate) model: &'a Model,
    pub(crate) settings: &'a Settings,
    pub(crate) policy: &'a NamedPolicy,
}

/// What the grader says of a generation.
struct Graded {
    outcome: Outcome,
    answer: Option<String>,
    finish: Option<&'static str>,
    error: Option<String>,
}

impl Writer<'_> {
    /// The row of a cell, and what failed.
    pub(crate) fn row(
        &self,
        item: &Prepared<'_>,
        cell: &Planned,
        decoded: Option<&Decoded>,
    ) -> Result<(EvictionRun, Option<String>)> {
        let graded = match decoded {
            Some(decoded) => self.grade(item, cell, decoded)?,
            None if cell.infeasible => Graded { outcome: Outcome::Infeasible, answer: None, finish: None, error: None },
            None => {
                let error = cell.refused.clone().or_else(|| Some("the generation without eviction failed".to_owned()));
                Graded { outcome: Outcome::Error, answer: None, finish: None, error }
            }
        };
        let failure = graded.error.clone().filter(|_| decoded.is_some()).map(|error| {
            let budget = cell.budget.map_or(String::new(), |budget| format!(" at {budget}"));
            format!("{}: {}{budget}: {error}", item.problem.id, self.policy.name)
        });
        let certificate = decoded.map(|decoded| decoded.certificate);
        let size = |of: fn(&Certificate) -> usize, what| certificate.as_ref().map(|c| column(what, of(c))).transpose();
        let bytes = |of: fn(&Certificate) -> usize| certificate.as_ref().map(|c| of(c) as i64);
        let ids = |decoded: &Decoded| decoded.generated.iter().map(|&id| column("token_ids", id as usize)).collect();
        let layers = self.policy.policy.score.layers(self.model.decoder.config().n_layers)?;
        let row = EvictionRun {
            problem_id: item.problem.id.clone(),
            policy: self.policy.name.clone(),
            budget: cell.budget.map(|budget| budget.to_string()),
            sample: sample(cell)?,
            cell: cell.hash.clone(),
            dataset: item.problem.dataset.clone(),
            composition: self.policy.policy.to_string(),
            layers: layers.map(|[a, b]| format!("{a}+{b}")),
            needs_attention: self.needs_attention(),
            budget_tokens: cell.tokens.map(|tokens| column("budget_tokens", tokens)).transpose()?,
            outcome: graded.outcome.name().to_owned(),
            correct: graded.outcome.correct(),
            answer: graded.answer,
            gold: item.problem.gold.clone(),
            finish_reason: graded.finish.map(str::to_owned),
            error: graded.error,
            n_prompt: column("n_prompt", item.prompt.ids.len())?,
            n_new: decoded.map(|decoded| column("n_new", decoded.generated.len())).transpose()?,
            token_ids: decoded.map(ids).transpose()?,
            first_difference: first_difference(item, cell, decoded),
            min_margin: decoded.and_then(|decoded| decoded.margins.iter().copied().reduce(f32::min)),
            held_last: size(|c| c.last_held, "held_last")?,
            held_steady: certificate.as_ref().and_then(Certificate::steady_held),
            held_mean: certificate.as_ref().and_then(Certificate::mean_held),
            held_max: size(|c| c.max_held, "held_max")?,
            held_peak: size(|c| c.peak_held, "held_peak")?,
            read_tokens: certificate.as_ref().and_then(Certificate::mean_read),
            peak_kv_bytes: bytes(|c| c.peak_kv_bytes),
            allocated_kv_bytes: bytes(|c| c.allocated_kv_bytes),
            kv_byte_steps: bytes(|c| c.kv_byte_steps),
            n_evictions: size(|c| c.n_evictions, "n_evictions")?,
            n_evicted: size(|c| c.n_evicted, "n_evicted")?,
            certificate: certificate.as_ref().map(Certificate::holds),
            n_protected_lost: size(|c| c.n_protected_lost, "n_protected_lost")?,
            seed: self.settings.seed as i64,
            temperature: self.settings.temperature,
            top_p: self.settings.top_p,
        };
        Ok((row, failure))
    }

    /// Whether the policy looks at attention weights.
    fn needs_attention(&self) -> bool {
        let n_layers = self.model.decoder.config().n_layers;
        self.policy.policy.has_budget() && self.policy.policy.score.needs_attention(n_layers)
    }

    /// How attention was computed: weights are looked at for the policy, or for a signal that is recorded.
    fn kernel(&self) -> AttentionKernel {
        let n_layers = self.model.decoder.config().n_layers;
        let looks = |name: &String| epikv_signals::find(name).and_then(|row| row.needs_attention(n_layers));
        let recorded = self.settings.signals.iter().any(|name| looks(name).unwrap_or(false));
        if recorded || self.needs_attention() { AttentionKernel::Explicit } else { AttentionKernel::Fused }
    }

    /// What a generation cost.
    pub(crate) fn timing(&self, item: &Prepared<'_>, cell: &Planned, decoded: &Decoded) -> EvictionTiming {
        EvictionTiming {
            problem_id: item.problem.id.clone(),
            policy: self.policy.name.clone(),
            budget: cell.budget.map(|budget| budget.to_string()),
            sample: i32::try_from(cell.sample).unwrap_or(i32::MAX),
            wall_s: decoded.times.wall().as_secs_f64(),
            prefill_s: decoded.times.prefill.as_secs_f64(),
            forward_s: decoded.times.forward().as_secs_f64(),
            score_s: decoded.times.score.as_secs_f64(),
            select_s: decoded.times.select.as_secs_f64(),
            move_s: decoded.times.moves.as_secs_f64(),
            bytes_to_host: i64::try_from(decoded.times.bytes_to_host).ok(),
            batch: i32::try_from(self.settings.batch).unwrap_or(i32::MAX),
            threads: i32::try_from(self.settings.threads).unwrap_or(i32::MAX),
            kernel: format!("{} {}", self.kernel().name(), epikv_model::instruction_set()),
            machine: self.settings.machine.clone(),
        }
    }

    /// The rows of some evictions of a cell.
    pub(crate) fn steps(
        &self,
        item: &Prepared<'_>,
        cell: &Planned,
        evictions: &[Eviction],
    ) -> Result<Vec<EvictionStep>> {
        let row = |one: &Eviction| {
            let number = |what, value: Option<usize>| value.map(|value| column(what, value)).transpose();
            Ok(EvictionStep {
                problem_id: item.problem.id.clone(),
                policy: self.policy.name.clone(),
                budget: cell.budget.map(|budget| budget.to_string()),
                sample: sample(cell)?,
                step: column("step", one.step)?,
                layer: number("layer", one.layer)?,
                head: number("head", one.head)?,
                pos: column("pos", one.pos.0 as usize)?,
                score: one.score,
                kept_score: one.kept_score,
                reason: one.reason().to_owned(),
            })
        };
        evictions.iter().map(row).collect()
    }

    /// The rows of the signals of a cell, beside those without eviction as long as the tokens are the same: up to the
    /// generated token `differs`, or to the end.
    pub(crate) fn signals(
        &self,
        item: &Prepared<'_>,
        cell: &Planned,
        decoded: &Decoded,
        full: Option<&[EvictionSignal]>,
        differs: Option<i32>,
    ) -> Result<Vec<EvictionSignal>> {
        let key = |row: &EvictionSignal| (row.signal.clone(), row.layer, row.pos);
        let full: BTreeMap<_, _> = full.unwrap_or_default().iter().map(|row| (key(row), row.value)).collect();
        let first = column("n_prompt", item.prompt.ids.len())?;
        let mut rows = Vec::new();
        for series in &decoded.signals {
            let layer = series.layer.map(|layer| column("layer", layer)).transpose()?;
            for (at, &value) in series.values.iter().enumerate() {
                let at = column("pos", at)?;
                let mut row = EvictionSignal {
                    problem_id: item.problem.id.clone(),
                    policy: self.policy.name.clone(),
                    budget: cell.budget.map(|budget| budget.to_string()),
                    sample: sample(cell)?,
                    signal: series.name.to_owned(),
                    layer,
                    pos: first + at,
                    value,
                    full_value: None,
                };
                if differs.is_none_or(|differs| at < differs) {
                    row.full_value = full.get(&key(&row)).copied().flatten();
                }
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Grades a generation as a trace is graded.
    fn grade(&self, item: &Prepared<'_>, cell: &Planned, decoded: &Decoded) -> Result<Graded> {
        let Some(finish) = FinishReason::of(decoded.finish) else {
            let error = Some(self.model.not_numbers());
            return Ok(Graded { outcome: Outcome::Error, answer: None, finish: None, error });
        };
        let token_ids = [item.prompt.ids.as_slice(), &decoded.generated].concat();
        let sampling = Sampling {
            sample: cell.sample,
            seed: Some(self.settings.seed),
            temperature: Some(self.settings.temperature),
            top_p: Some(self.settings.top_p),
        };
        let generation = Generation {
            prompt: None,
            token_ids: &token_ids,
            n_prompt: item.prompt.ids.len(),
            finish_reason: finish,
            sampling,
        };
        let trace = build_trace(item.problem.id.clone(), item.problem, &generation, &self.model.tokenizer)?;
        let content = match decoded.finish {
            Finish::Eos => &decoded.generated[..decoded.generated.len().saturating_sub(1)],
            _ => &decoded.generated[..],
        };
        let outcome = Outcome::of(&trace, finish, content, &trace.text);
        Ok(Graded { outcome, answer: trace.answer, finish: Some(finish.name()), error: None })
    }
}

/// Where a generation first differs from the one without eviction.
fn first_difference(item: &Prepared<'_>, cell: &Planned, decoded: Option<&Decoded>) -> Option<i32> {
    let (full, own) = (item.full(cell.sample)?, &decoded?.generated);
    let common = full.iter().zip(own).take_while(|(a, b)| a == b).count();
    (common < full.len().max(own.len())).then_some(common as i32)
}

fn sample(cell: &Planned) -> Result<i32> {
    column("sample", cell.sample as usize)
}

fn column(what: &'static str, value: usize) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::TooLarge { what, got: value })
}
