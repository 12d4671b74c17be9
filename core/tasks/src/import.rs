//! Traces that were generated elsewhere, from JSON lines, Parquet or CSV with text or token ids.
//!
//! | form | trace | prompt | problem, gold |
//! | --- | --- | --- | --- |
//! | text | `trace`, `text`, `generated_text`, `response`, `output` or `completion` | `prompt`, else made from the problem | `problem` or `question`; `gold`, `ground_truth`, `gt` or `reward_model.ground_truth` |
//! | ids | `token_ids` and `prompt_len` or `n_prompt` | in the ids | the same |
//!
//! Where a row has both, the ids count. `prompt` may be a conversation, whose last turn is then the problem. Prompt and
//! trace are tokenised separately, so that the number of prompt tokens is exact. Answer and correctness are found and graded
//! here; the file's own fields for them (`answer`, `correct`) are not read. `model`, `temperature`, `top_p`, `seed` and
//! `sample` are what the row says, null where it does not (`sample`: 0).

use std::collections::HashMap;
use std::path::Path;

use epikv_model::chat::ChatTemplate;
use epikv_model::tokenizer::Tokenizer;
use epikv_schemas::Trace;

use crate::error::{Error, Result};
use crate::problem::{Problem, rewarded, statement};
use crate::prompt::{Prompt, PromptOptions};
use crate::rows::{self, Row};
use crate::span::Tags;
use crate::trace::{FinishReason, Generation, Sampling, build_trace_by};

/// Field names, in the order in which they are tried.
const ID: &[&str] = &["trace_id", "id", "unique_id"];
const PROBLEM_ID: &[&str] = &["problem_id", "unique_id", "id", "trace_id"];
const GOLD: &[&str] = &["gold", "ground_truth", "gt"];
const TEXT: &[&str] = &["trace", "text", "generated_text", "response", "output", "completion"];
const MODEL: &[&str] = &["model", "model_name", "generator"];

/// Share of the characters of a file that a tokenizer may lose: some write a character in another way.
const MOST_LOST: f64 = 0.01;
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
    /// The think tags; `None` for those that each text uses.
    pub tags: Option<&'a Tags>,
}

/// Traces, and whether any of their prompts was made here.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The traces.
    pub traces: Vec<Trace>,
    /// Rows that brought no prompt.
    pub n_prompts_made: usize,
}

/// What a tokenizer does not give back of the texts that it was given.
#[derive(Debug, Default)]
struct Lost {
    characters: usize,
    of: usize,
}

/// Reads the traces of a file, or of a folder of parts.
///
/// # Errors
/// Each names the file and the line: no JSON, neither text nor ids, an id outside the vocabulary, a prompt longer than
/// the trace, a trace id that comes twice; a tokenizer that loses more than a hundredth of the text.
pub fn import_traces(path: &Path, context: &ImportContext<'_>) -> Result<Imported> {
    let rows = rows::read(path, "trace")?;
    let mut lost = Lost::default();
    let mut n_prompts_made = 0;
    let mut traces = Vec::with_capacity(rows.len());
    for row in &rows {
        let (trace, made) = import(row, context, &mut lost)?;
        n_prompts_made += usize::from(made);
        traces.push(trace);
    }
    rows::check_unique(&rows, traces.iter().map(|trace| trace.trace_id.as_str()))?;
    if lost.characters as f64 > MOST_LOST * lost.of as f64 {
        return Err(Error::LosesText {
            path: path.to_owned(),
            tokenizer: context.tokenizer.place().to_owned(),
            lost: lost.characters,
            of: lost.of,
        });
    }
    Ok(Imported { traces, n_prompts_made })
}

fn import(row: &Row, context: &ImportContext<'_>, lost: &mut Lost) -> Result<(Trace, bool)> {
    let trace_id = row.text(ID)?.unwrap_or_else(|| row.name());
    let gold = match row.text(GOLD)? {
        Some(gold) => Some(gold),
        None => rewarded(row)?,
    };
    let problem = Problem {
        id: row.text(PROBLEM_ID)?.unwrap_or_else(|| trace_id.clone()),
        dataset: row.text(&["dataset", "source"])?.unwrap_or_else(|| row.stem()),
        problem: statement(row)?,
        gold: gold.filter(|gold| !gold.trim().is_empty()),
        level: row.text(&["level"])?,
        subject: row.text(&["subject"])?,
        gold_spans: None,
    };
    let Tokens { prompt, ids, n_prompt, made } = tokens(row, &problem, context, lost)?;
    let generation = Generation {
        prompt: prompt.as_deref(),
        token_ids: &ids,
        n_prompt,
        finish_reason: FinishReason::Imported,
        sampling: sampling(row)?,
    };
    let trace = build_trace_by(trace_id, &problem, &generation, context.tokenizer, context.tags)?;
    Ok((Trace { model: row.text(MODEL)?, ..trace }, made))
}

/// The tokens of a row.
struct Tokens {
    /// Text of the prompt, where known.
    prompt: Option<String>,
    /// Prompt and trace.
    ids: Vec<u32>,
    n_prompt: usize,
    /// The prompt was made here.
    made: bool,
}

fn tokens(row: &Row, problem: &Problem, context: &ImportContext<'_>, lost: &mut Lost) -> Result<Tokens> {
    // A conversation is the problem, not the text that the model was given.
    let given = match row.get(&["prompt"]) {
        Some((value, _)) if value.is_array() => None,
        _ => row.text(&["prompt"])?,
    };
    if let Some(ids) = row.token_ids(IDS, context.vocab_size)? {
        let n_prompt = row.count(N_PROMPT)?.ok_or_else(|| row.missing(N_PROMPT))?;
        if n_prompt > ids.len() {
            return Err(row.error(format!("a prompt of at most {} tokens", ids.len()), n_prompt.to_string()));
        }
        return Ok(Tokens { prompt: given, ids, n_prompt, made: false });
    }
    let names: Vec<&str> = TEXT.iter().chain(IDS).copied().collect();
    let text = row.text(TEXT)?.ok_or_else(|| row.missing(&names))?;
    let made = given.is_none();
    let prompt = match given {
        Some(prompt) => Prompt::of_text(prompt, context.tokenizer)?,
        None => Prompt::of_problem(&problem.problem, context.tokenizer, context.template, context.prompt)?,
    };
    let n_prompt = prompt.ids.len();
    let generated = context.tokenizer.encode(&text, false)?;
    lost.count(&text, &context.tokenizer.decode(&generated)?);
    let ids = [prompt.ids, generated].concat();
    Ok(Tokens { prompt: Some(prompt.text), ids, n_prompt, made })
}

impl Lost {
    /// Characters of a text that stand less often in what was given back; white space is not counted.
    fn count(&mut self, given: &str, back: &str) {
        let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>();
        let given_chars = visible(given);
        self.of += given_chars.len();
        if given == back {
            return;
        }
        let mut counts: HashMap<char, i64> = HashMap::new();
        for c in given_chars {
            *counts.entry(c).or_default() += 1;
        }
        for c in visible(back) {
            *counts.entry(c).or_default() -= 1;
        }
        self.characters += counts.values().filter_map(|count| usize::try_from(*count).ok()).sum::<usize>();
    }
}

fn sampling(row: &Row) -> Result<Sampling> {
    Ok(Sampling {
        sample: match row.count(&["sample"])? {
            Some(sample) => u32::try_from(sample)
                .map_err(|_| row.error(format!("a sample of at most {}", u32::MAX), sample.to_string()))?,
            None => 0,
        },
        seed: row.count(&["seed"])?.map(|seed| seed as u64),
        temperature: match row.number(&["temperature"])? {
            Some(t) if t < 0.0 => return Err(row.error("a temperature of at least 0".to_owned(), t.to_string())),
            given => given.map(|value| value as f32),
        },
        top_p: row.number(&["top_p"])?.map(|value| value as f32),
    })
}

#[cfg(test)]
mod tests;
