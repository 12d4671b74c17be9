//! Traces that were generated elsewhere, from JSON lines with text or token ids.
//!
//! | form | trace | prompt | problem, gold |
//! | --- | --- | --- | --- |
//! | text | `trace`, `text`, `generated_text` or `response` | `prompt`, else made from the problem | `problem`, `gold` |
//! | ids | `token_ids` and `prompt_len` or `n_prompt` | in the ids | `problem`, `ground_truth` |
//!
//! Where a row has both, the ids count. Prompt and trace are tokenised separately, so that the number of prompt tokens
//! is exact. Answer and correctness are found and graded here; the file's own fields for them are not read.

use std::path::Path;

use epikv_model::chat::ChatTemplate;
use epikv_model::tokenizer::Tokenizer;
use epikv_schemas::Trace;

use crate::error::Result;
use crate::problem::Problem;
use crate::prompt::{Prompt, PromptOptions};
use crate::rows::{self, Row};
use crate::trace::{FinishReason, Generation, Sampling, build_trace};

/// Field names, in the order in which they are tried.
const ID: &[&str] = &["trace_id", "id", "unique_id"];
const PROBLEM_ID: &[&str] = &["problem_id", "unique_id", "id", "trace_id"];
const PROBLEM: &[&str] = &["problem", "question"];
const GOLD: &[&str] = &["gold", "ground_truth"];
const TEXT: &[&str] = &["trace", "text", "generated_text", "response"];
const IDS: &[&str] = &["token_ids"];
const N_PROMPT: &[&str] = &["prompt_len", "n_prompt"];

/// The model that the traces are to be read with.
#[derive(Debug, Clone, Copy)]
pub struct ImportContext<'a> {
    /// Its tokenizer.
    pub tokenizer: &'a Tokenizer,
    /// Its chat template, for rows that bring no prompt.
    pub template: Option<&'a ChatTemplate>,
    /// How such prompts are made.
    pub prompt: &'a PromptOptions,
    /// Rows of its embedding: ids must be below.
    pub vocab_size: usize,
}

/// Reads the traces of a JSON lines file.
///
/// # Errors
/// Each names the file and the line: no JSON, neither text nor ids, an id outside the vocabulary, a prompt longer than
/// the trace, a trace id that comes twice.
pub fn import_traces(path: &Path, context: &ImportContext<'_>) -> Result<Vec<Trace>> {
    let rows = rows::read(path, "trace")?;
    let traces = rows.iter().map(|row| import(row, context)).collect::<Result<Vec<_>>>()?;
    rows::check_unique(&rows, traces.iter().map(|trace| trace.trace_id.as_str()))?;
    Ok(traces)
}

fn import(row: &Row, context: &ImportContext<'_>) -> Result<Trace> {
    let trace_id = row.text(ID)?.unwrap_or_else(|| row.name());
    let problem = Problem {
        id: row.text(PROBLEM_ID)?.unwrap_or_else(|| trace_id.clone()),
        dataset: row.text(&["dataset", "source"])?.unwrap_or_else(|| row.stem()),
        problem: row.required_text(PROBLEM)?,
        gold: row.text(GOLD)?.filter(|gold| !gold.trim().is_empty()),
        level: row.text(&["level"])?,
        subject: row.text(&["subject"])?,
        gold_spans: None,
    };
    let (prompt, token_ids, n_prompt) = tokens(row, &problem, context)?;
    let generation = Generation {
        prompt: prompt.as_deref(),
        token_ids: &token_ids,
        n_prompt,
        finish_reason: FinishReason::Imported,
        sampling: sampling(row)?,
    };
    build_trace(trace_id, &problem, &generation, context.tokenizer)
}

/// Prompt text where known, all tokens, and how many are the prompt.
fn tokens(row: &Row, problem: &Problem, context: &ImportContext<'_>) -> Result<(Option<String>, Vec<u32>, usize)> {
    let given = row.text(&["prompt"])?;
    if let Some(ids) = row.token_ids(IDS, context.vocab_size)? {
        let n_prompt = row.count(N_PROMPT)?.ok_or_else(|| row.missing(N_PROMPT))?;
        if n_prompt > ids.len() {
            return Err(row.error(format!("a prompt of at most {} tokens", ids.len()), n_prompt.to_string()));
        }
        return Ok((given, ids, n_prompt));
    }
    let names: Vec<&str> = TEXT.iter().chain(IDS).copied().collect();
    let text = row.text(TEXT)?.ok_or_else(|| row.missing(&names))?;
    let prompt = match given {
        Some(prompt) => Prompt::of_text(prompt, context.tokenizer)?,
        None => Prompt::of_problem(&problem.problem, context.tokenizer, context.template, context.prompt)?,
    };
    let n_prompt = prompt.ids.len();
    let mut ids = prompt.ids;
    ids.extend(context.tokenizer.encode(&text, false)?);
    Ok((Some(prompt.text), ids, n_prompt))
}

fn sampling(row: &Row) -> Result<Sampling> {
    let absent = Sampling::default();
    Ok(Sampling {
        sample: match row.count(&["sample"])? {
            Some(sample) => u32::try_from(sample)
                .map_err(|_| row.error(format!("a sample of at most {}", u32::MAX), sample.to_string()))?,
            None => absent.sample,
        },
        seed: row.count(&["seed"])?.map_or(absent.seed, |seed| seed as u64),
        temperature: match row.number(&["temperature"])? {
            Some(t) if t < 0.0 => return Err(row.error("a temperature of at least 0".to_owned(), t.to_string())),
            given => given.map_or(absent.temperature, |value| value as f32),
        },
        top_p: row.number(&["top_p"])?.map_or(absent.top_p, |value| value as f32),
    })
}

#[cfg(test)]
mod tests;
