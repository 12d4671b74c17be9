//! Labels compared with sentence scores from another method, resampling.
//!
//! A sentence's label is the mean of `n_flip / n_cover` over its tokens. The table has Spearman's rho of label and
//! score, plain and partial given the number of the sentence, because both scores depend strongly on the position.
//! Importance scores are signed differences, so their absolute values are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use epikv_model::tokenizer::Tokenizer;
use epikv_schemas::{LabelToken, Trace, fs};
use epikv_stats::moments::mean;
use epikv_stats::partial::partial_spearman;
use epikv_stats::spearman;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::files::folder::{self, by_trace};

/// Sentence scores of a trace: a row a sentence, of which the first two cells are the character span in the generated text.
#[derive(Debug, Clone, Deserialize)]
pub struct SentenceScores {
    /// The trace.
    pub id: String,
    /// What the cells of a row are.
    pub columns: Vec<String>,
    /// A row a sentence.
    pub chunks: Vec<Vec<Value>>,
}

/// How labels and one kind of score agree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SentenceAgreement {
    /// The kind of score.
    pub score: String,
    /// Traces with a coefficient.
    pub n_traces: usize,
    /// Sentences of these.
    pub n_sentences: usize,
    /// Mean over traces of rho of label and score.
    pub rho: Option<f64>,
    /// The same given the number of the sentence.
    pub rho_given_position: Option<f64>,
}

/// The labels of the sentences of a trace, `None` where no token has one.
///
fn labels(scores: &SentenceScores, trace: Placed<'_>) -> Vec<Option<f64>> {
    let Placed { text, n_prompt, ends, tokens } = trace;
    // Byte offset of each character, and of the end.
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let byte = |cell: Option<&Value>| bytes.get(usize::try_from(cell?.as_u64()?).ok()?).copied();
    let share = |token: &LabelToken| (token.n_cover > 0).then(|| f64::from(token.n_flip) / f64::from(token.n_cover));
    let of_sentence = |row: &Vec<Value>| {
        let (start, end) = (byte(row.first())?, byte(row.get(1))?);
        let first = ends.partition_point(|&e| e <= start);
        let last = ends.partition_point(|&e| e < end);
        let span = n_prompt + first..n_prompt + last + 1;
        let shares: Vec<f64> = tokens.get(span.start..span.end.min(tokens.len()))?.iter().filter_map(share).collect();
        mean(&shares)
    };
    scores.chunks.iter().map(of_sentence).collect()
}

/// A trace with what is needed to place its sentences.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// Its generated text.
    pub text: &'a str,
    /// Tokens of its prompt.
    pub n_prompt: usize,
    /// Ends of its generated tokens in the bytes of its generated text.
    pub ends: &'a [usize],
    /// Its token labels, by position.
    pub tokens: &'a [LabelToken],
}

/// Compares labels with scores: one row a kind of score, over the traces that both know.
pub fn compare_sentences(traces: &BTreeMap<&str, Placed<'_>>, all: &[SentenceScores]) -> Vec<SentenceAgreement> {
    let mut kinds: Vec<&String> = all.iter().flat_map(|scores| scores.columns.iter().skip(2)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of_kind = |kind: &&String| {
        let (mut rhos, mut partials, mut n_sentences) = (Vec::new(), Vec::new(), 0);
        for scores in all {
            let Some(trace) = traces.get(scores.id.as_str()) else { continue };
            let Some(column) = scores.columns.iter().position(|name| name == *kind) else { continue };
            let labels = labels(scores, *trace);
            let (mut own, mut other, mut place) = (Vec::new(), Vec::new(), Vec::new());
            for (at, (row, label)) in scores.chunks.iter().zip(labels).enumerate() {
                if let (Some(label), Some(score)) = (label, row.get(column).and_then(Value::as_f64)) {
                    own.push(label);
                    other.push(if kind.contains("importance") { score.abs() } else { score });
                    place.push(at as f64);
                }
            }
            if let Some(rho) = spearman(&own, &other) {
                rhos.push(rho);
                n_sentences += own.len();
                partials.extend(partial_spearman(&own, &other, &[&place]).map(|partial| partial.r));
            }
        }
        let (rho, rho_given_position) = (mean(&rhos), mean(&partials));
        SentenceAgreement { score: (*kind).clone(), n_traces: rhos.len(), n_sentences, rho, rho_given_position }
    };
    // Words such as tags have no coefficient.
    kinds.iter().map(of_kind).filter(|row| row.n_traces > 0).collect()
}

/// A file of sentence scores.
///
/// # Errors
/// If it cannot be read, or has no line.
pub fn read_scores(path: &Path) -> Result<Vec<SentenceScores>> {
    let lines = fs::json_lines::<SentenceScores>(path, "id, columns and chunks")?;
    let scored = lines.map(|line| Ok(line?.1)).collect::<Result<Vec<_>>>()?;
    if scored.is_empty() {
        return Err(Error::NoScores { path: path.to_owned() });
    }
    Ok(scored)
}

/// The labels of a folder against scores of sentences, with what was left out.
#[derive(Debug)]
pub struct Compared {
    /// One row a kind of score.
    pub rows: Vec<SentenceAgreement>,
    /// Lines without usable labels of a trace of their id.
    pub n_other: usize,
    /// Traces whose tokens do not decode to their text.
    pub n_other_text: usize,
}

/// Compares the labels of a folder with scores of sentences of the same traces.
///
/// # Errors
/// If the folder cannot be read, a trace contradicts itself, or the tokenizer does not know its tokens.
pub fn compare_folder(
    labels: &Path,
    traces: &[Trace],
    scored: &[SentenceScores],
    tokenizer: &Tokenizer,
) -> Result<Compared> {
    let tokens = by_trace(folder::tokens(labels)?, |token| &token.trace_id);
    let usable = folder::traces(labels)?;
    let usable: BTreeSet<&str> =
        usable.iter().filter(|trace| trace.usable).map(|trace| trace.trace_id.as_str()).collect();
    let mut ends: BTreeMap<&str, (usize, Vec<usize>)> = BTreeMap::new();
    let mut n_other_text = 0;
    for trace in traces.iter().filter(|trace| usable.contains(trace.trace_id.as_str())) {
        let checked = trace.checked()?;
        let text = tokenizer.byte_offsets(&checked.token_ids[checked.n_prompt..])?;
        if text.bytes.starts_with(trace.text.as_bytes()) {
            ends.insert(&trace.trace_id, (checked.n_prompt, text.ends));
        } else {
            n_other_text += 1;
        }
    }
    let placed = traces.iter().filter_map(|trace| {
        let id = trace.trace_id.as_str();
        let (n_prompt, ends) = ends.get(id)?;
        Some((id, Placed { text: &trace.text, n_prompt: *n_prompt, ends, tokens: tokens.get(id)? }))
    });
    let placed: BTreeMap<&str, Placed<'_>> = placed.collect();
    let rows = compare_sentences(&placed, scored);
    let n_other = scored.iter().filter(|scores| !placed.contains_key(scores.id.as_str())).count();
    Ok(Compared { rows, n_other, n_other_text })
}

/// The rows as a table.
pub fn markdown(rows: &[SentenceAgreement]) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:+.3}"));
    let mut text = String::from(
        "| score | traces | sentences | rho | rho given position |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for row in rows {
        let (rho, partial) = (number(row.rho), number(row.rho_given_position));
        // Writing into a string does not fail.
        let _ = writeln!(text, "| {} | {} | {} | {rho} | {partial} |", row.score, row.n_traces, row.n_sentences);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sentences_find_their_tokens() {
        let scores: SentenceScores = serde_json::from_value(json!({
            "id": "t",
            "columns": ["char_start", "char_end", "tags", "accuracy", "x_importance"],
            "chunks": [[0, 3, ["a"], 0.1, -0.9], [4, 7, [], 0.5, 0.5], [8, 10, [], 0.9, 0.1], [90, 99, [], 1, 1]],
        }))
        .expect("scores");
        // Tokens "é. " "b " "cd" " e" "f" after a prompt of two.
        let ends = [4, 6, 8, 10, 11];
        let label = |pos: i32, n_flip| LabelToken {
            trace_id: "t".to_owned(),
            pos,
            token_id: 1,
            region: "reason".to_owned(),
            tested: pos > 1,
            important: Some(n_flip > 0),
            n_cover: if pos > 1 { 2 } else { 0 },
            n_flip,
        };
        let tokens: Vec<_> = [0, 0, 2, 0, 1, 0, 0].into_iter().enumerate().map(|(i, n)| label(i as i32, n)).collect();
        let placed = Placed { text: "é. b cd ef", n_prompt: 2, ends: &ends, tokens: &tokens };
        assert_eq!(labels(&scores, placed), [Some(1.0), Some(0.25), Some(0.0), None]);
        let rows = compare_sentences(&[("t", placed)].into(), std::slice::from_ref(&scores));
        let rhos: Vec<_> = rows.iter().map(|row| (row.score.as_str(), row.n_sentences, row.rho)).collect();
        assert_eq!(rhos, [("accuracy", 3, Some(-1.0)), ("x_importance", 3, Some(1.0))]);
        assert!(compare_sentences(&BTreeMap::new(), &[scores]).is_empty());
    }
}
