//! Problems of the usual benchmarks, from JSON lines, Parquet, CSV or a folder of such parts, under the field names that each of them uses.
//!
//! | set | problem | answer | id |
//! | --- | --- | --- | --- |
//! | ours, MATH-500 | `problem` | `answer` | `id`, `unique_id` |
//! | MATH | `problem` | last box of `solution`, with the boxes joined to it; so too where `answer` is empty | - |
//! | AIME | `problem`, `Problem` | `answer`, `Answer`, number or text | `id`, `ID` |
//! | GSM8K | `question` | `answer`, after `####` | - |
//! | SVAMP | `Body` + `Question` | `Answer`, a number | `ID` |
//! | MAWPS | `sQuestion` | `lSolutions`, a list | `iIndex` |
//! | `OlympiadBench` | `question` | `final_answer`, a list | `id` |
//! | MGSM | `question` | `answer_number` (its `answer` is an explanation) | - |
//! | sets for reinforcement learning | `problem`, or the last turn of `prompt` | `reward_model.ground_truth` | - |
//! | others | `problem`, `question` | `gold`, `ground_truth`, `gt` | `problem_id` |
//!
//! Ours may also say what the answer needs (`gold_spans`, see [`GoldSpan`]).
//!
//! An answer stays text: `025` keeps its zero and `70,000` its comma, since only the grader knows what they mean. A
//! problem without an id is named after its file and line.

use std::ops::Range;
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::rows::{self, Row};

/// Field names, in the order in which they are tried.
const ID: &[&str] = &["id", "unique_id", "ID", "problem_id", "iIndex"];
const PROBLEM: &[&str] = &["problem", "Problem", "question", "sQuestion"];
const ANSWER: &[&str] = &["answer", "Answer", "gold", "ground_truth", "gt"];
/// These hold several answers, or come before the explanation that is called `answer` beside them.
const LISTS: &[&str] = &["lSolutions", "final_answer", "answer_number"];
const DATASET: &[&str] = &["dataset", "source"];

/// What GSM8K puts before the answer.
const HASHES: &str = "####";

/// Bytes of a problem at most: far more than any model reads. A longer one is another kind of file.
const LONGEST_STATEMENT: usize = 1 << 20;

/// A value that the answer is known to need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoldSpan {
    /// How the reasoning states it: `e 5`. A trace mentions the value where its reasoning holds the tokens of this text.
    pub text: String,
    /// Where the worked solution states it: tokens, counted from the first of the prompt.
    pub mentions: Vec<Range<usize>>,
}

/// A problem and, where the set has one, its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Unique in its file.
    pub id: String,
    /// The set: as the file says, else the file's name.
    pub dataset: String,
    /// The statement.
    pub problem: String,
    /// The right answer.
    #[serde(rename = "answer")]
    pub gold: Option<String>,
    /// Difficulty, as the set words it.
    pub level: Option<String>,
    /// Area.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What the answer needs, value by value; `None` where the set does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gold_spans: Option<Vec<GoldSpan>>,
}

/// Writes problems as JSON lines that [`read_problems`] reads, whole or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn write_problems(path: &Path, problems: &[Problem]) -> Result<()> {
    epikv_schemas::fs::write_atomic(path, problem_lines(path, problems)?.as_bytes())?;
    Ok(())
}

/// The lines that [`write_problems`] writes.
///
/// # Errors
/// If a problem cannot be written as JSON; the error names the file.
pub fn problem_lines(path: &Path, problems: &[Problem]) -> Result<String> {
    let mut lines = String::new();
    for problem in problems {
        let line = serde_json::to_string(problem).map_err(std::io::Error::from);
        lines.push_str(&line.map_err(|source| Error::Io { path: path.to_owned(), source })?);
        lines.push('\n');
    }
    Ok(lines)
}

/// Reads the problems of a file: Parquet and CSV by the ends of their names, else JSON lines; or those of a folder of parts.
///
/// # Errors
/// Each names the file and the line: a line that is no JSON object, a row without a statement, an answer of another
/// kind, an id that comes twice; a file without problems.
pub fn read_problems(path: &Path) -> Result<Vec<Problem>> {
    let rows = rows::read(path, "problem")?;
    let problems = rows.iter().map(problem).collect::<Result<Vec<_>>>()?;
    rows::check_unique(&rows, problems.iter().map(|problem| problem.id.as_str()))?;
    Ok(problems)
}

fn problem(row: &Row) -> Result<Problem> {
    let id = row.text(ID)?.filter(|id| !id.trim().is_empty());
    let statement = statement(row)?;
    if statement.len() > LONGEST_STATEMENT {
        return Err(row.too_long(LONGEST_STATEMENT, statement.len()));
    }
    Ok(Problem {
        id: id.unwrap_or_else(|| row.name()),
        dataset: row.text(DATASET)?.unwrap_or_else(|| row.stem()),
        problem: statement,
        gold: gold(row)?,
        level: row.text(&["level", "difficulty"])?,
        subject: row.text(&["subject", "type", "Type"])?,
        gold_spans: gold_spans(row)?,
    })
}

/// A list of `{text, mentions: [{start, end}]}`. A traces file has flat token positions in its place, which name no text.
fn gold_spans(row: &Row) -> Result<Option<Vec<GoldSpan>>> {
    let Some((value, name)) = row.get(&["gold_spans"]) else { return Ok(None) };
    let unexpected = || row.unexpected(&name, "a list of {text, mentions: [{start, end}]}", value);
    let items = value.as_array().ok_or_else(unexpected)?;
    if items.iter().all(serde_json::Value::is_number) {
        return Ok(None);
    }
    let position = |span: &serde_json::Value, end: &str| usize::try_from(span[end].as_u64()?).ok();
    let mention = |span: &serde_json::Value| {
        let (start, end) = (position(span, "start")?, position(span, "end")?);
        (start < end).then_some(start..end)
    };
    let gold_span = |item: &serde_json::Value| {
        let text = item["text"].as_str().filter(|text| !text.trim().is_empty())?.to_owned();
        let mentions = item["mentions"].as_array()?.iter().map(mention).collect::<Option<_>>()?;
        Some(GoldSpan { text, mentions })
    };
    items.iter().map(gold_span).collect::<Option<_>>().map(Some).ok_or_else(unexpected)
}

/// SVAMP splits a problem into a story and a question, and leaves out the full stop between.
pub(crate) fn statement(row: &Row) -> Result<String> {
    let Some(body) = row.text(&["Body"])? else {
        return match (row.get(PROBLEM), row.get(&["prompt"]).and_then(|(turns, _)| last_turn(turns))) {
            (None, Some(text)) => Ok(text),
            _ => row.required_text(PROBLEM),
        };
    };
    let question = row.required_text(&["Question"])?;
    let body = body.trim();
    if body.is_empty() {
        return Ok(question.trim().to_owned());
    }
    let stop = if body.ends_with(['.', '!', '?', ',', ';', ':']) { "" } else { "." };
    Ok(format!("{body}{stop} {}", question.trim()))
}

/// The text of the last turn of a conversation.
fn last_turn(turns: &serde_json::Value) -> Option<String> {
    let text = turns.as_array()?.last()?["content"].as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// `ground_truth` within `reward_model`.
pub(crate) fn rewarded(row: &Row) -> Result<Option<String>> {
    let Some((model, _)) = row.get(&["reward_model"]) else { return Ok(None) };
    match &model["ground_truth"] {
        serde_json::Value::Null => Ok(None),
        truth => Ok(Some(row.texts(truth, "reward_model.ground_truth")?.join(", "))),
    }
}

fn gold(row: &Row) -> Result<Option<String>> {
    let given = |text: &String| !text.trim().is_empty();
    if let Some((list, name)) = row.get(LISTS) {
        let items = row.texts(list, &name)?;
        if name == "lSolutions" && !items.iter().any(given) {
            return Err(row.unexpected(&name, "a list of numbers", list));
        }
        if items.iter().any(given) {
            return Ok(Some(items.join(", ")));
        }
    }
    if let Some(answer) = row.text(ANSWER)? {
        let answer = answer.rsplit_once(HASHES).map_or(answer.as_str(), |(_, after)| after).trim();
        if !answer.is_empty() {
            return Ok(Some(answer.to_owned()));
        }
    }
    if let Some(truth) = rewarded(row)?.filter(given) {
        return Ok(Some(truth));
    }
    // MATH as first published has no answer but the box of its solution.
    let solution = row.get(&["solution"]).and_then(|(value, _)| value.as_str());
    Ok(solution.and_then(|text| epikv_grader::boxed(text).map(std::borrow::Cow::into_owned)))
}

/// For tests: one problem from one object.
#[cfg(test)]
fn one(value: &serde_json::Value) -> Result<Problem> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.jsonl");
    std::fs::write(&path, value.to_string()).unwrap();
    read_problems(&path).map(|mut problems| problems.remove(0))
}

#[cfg(test)]
mod tests;
