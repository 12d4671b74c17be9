//! Labels in the form of the published ones: JSON lines with one number a token.
//!
//! | field | |
//! | --- | --- |
//! | `token_ids`, `prompt_len` | all tokens, and how many are the prompt |
//! | `importance` | 1 important, 0 not, -1 not tested; the prompt counts as 1 |
//! | `label_stats` | `answer_start`, `windows_tested`, `windows_flipped`, `flip_rate`, `important_frac` (ones by all tokens) |
//!
//! An imported label counts as one window over the token: `n_cover` is 1 where there is a label. There is no control.
//! The trace's own answer takes its place, and a trace is usable if that answer is right.

use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Trace};
use serde_json::{Value, json};

use crate::error::Result;
use crate::run::rows::count;
use crate::windows::token_labels::{TokenLabel, important_share};

/// A trace with its labels as one JSON object.
pub fn export(trace: &Trace, tokens: &[LabelToken], windows: &[LabelWindow]) -> Value {
    let importance = |token: &LabelToken| match (token.region.as_str(), token.important) {
        ("prompt", _) => 1,
        (_, Some(important)) => i32::from(important),
        (_, None) => -1,
    };
    let importance: Vec<i32> = tokens.iter().map(importance).collect();
    let share = |part: usize, of: usize| (of > 0).then(|| part as f64 / of as f64);
    let n_flipped = windows.iter().filter(|window| window.flipped == Some(true)).count();
    json!({
        "trace_id": trace.trace_id,
        "dataset": trace.dataset,
        "problem": trace.problem,
        "ground_truth": trace.gold,
        "generated_text": trace.text,
        "pred_answer": trace.answer,
        "correct": trace.correct,
        "token_ids": trace.token_ids,
        "prompt_len": trace.n_prompt,
        "importance": importance,
        "label_stats": {
            "answer_start": trace.boundary,
            "windows_tested": windows.len(),
            "windows_flipped": n_flipped,
            "flip_rate": share(n_flipped, windows.len()),
            "important_frac": share(importance.iter().filter(|one| **one == 1).count(), importance.len()),
        },
    })
}

/// The rows of a trace from its `importance`, `[n]`, one number a token.
///
/// # Errors
/// If the numbers are not as many as the tokens, or another than -1, 0 and 1.
pub fn import(trace: &Trace, importance: &[i64]) -> Result<(Vec<LabelToken>, LabelTrace)> {
    let checked = trace.checked()?;
    let broken = |expected: String, got: String| checked.broken("importance", expected, got);
    let n = checked.token_ids.len();
    if importance.len() != n {
        return Err(broken(format!("{n} numbers, one a token"), importance.len().to_string()).into());
    }
    let reasoning = checked.n_prompt..checked.boundary;
    let mut labels = Vec::with_capacity(n);
    for (pos, &one) in importance.iter().enumerate() {
        let important = match one {
            -1 => None,
            0 | 1 if reasoning.contains(&pos) => Some(one == 1),
            // The prompt is counted as important without a test.
            0 | 1 => None,
            other => return Err(broken("-1, 0 or 1".to_owned(), format!("{other} at token {pos}")).into()),
        };
        let n_cover = u32::from(important.is_some());
        labels.push(TokenLabel { n_cover, n_flip: u32::from(important == Some(true)), important });
    }
    let tokens = labels.iter().enumerate().map(|(pos, label)| LabelToken {
        trace_id: trace.trace_id.clone(),
        pos: pos as i32,
        token_id: trace.token_ids[pos],
        region: match pos {
            pos if pos < reasoning.start => "prompt",
            pos if pos < reasoning.end => "reason",
            _ => "answer",
        }
        .to_owned(),
        tested: label.n_cover > 0,
        important: label.important,
        n_cover: count(label.n_cover),
        n_flip: count(label.n_flip),
    });
    let right = trace.correct == Some(true);
    let row = LabelTrace {
        trace_id: trace.trace_id.clone(),
        dataset: trace.dataset.clone(),
        problem_id: trace.problem_id.clone(),
        gold: trace.gold.clone(),
        original_answer: trace.answer.clone(),
        control_answer: trace.answer.clone(),
        control_outcome: if right { "same" } else { "unsure" }.to_owned(),
        usable: right,
        reason_unusable: (!right).then(|| "control_unsure".to_owned()),
        n_windows: 0,
        n_flipped: 0,
        n_undefined: 0,
        n_reason: trace.boundary - trace.n_prompt,
        important_share: important_share(&labels[reasoning.clone()]),
        boundary_kind: trace.boundary_kind.clone(),
        control_text: String::new(),
        control_n_new: 0,
    };
    Ok((tokens.collect(), row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_as_they_went() {
        let mut trace = crate::analysis::shared::trace("t", &[5, 6, 7, 8, 9]);
        (trace.n_prompt, trace.reason_start, trace.boundary) = (2, 2, 4);
        let (tokens, row) = import(&trace, &[1, 1, 1, 0, -1]).expect("one a token");
        let important: Vec<_> = tokens.iter().map(|token| token.important).collect();
        assert_eq!(important, [None, None, Some(true), Some(false), None]);
        assert_eq!((row.usable, row.important_share), (true, Some(0.5)));
        let line = export(&trace, &tokens, &[]);
        assert_eq!(line["importance"], json!([1, 1, 1, 0, -1]));
        assert_eq!(line["label_stats"]["important_frac"], json!(0.6), "the prompt is counted, as published");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let trace = crate::analysis::shared::trace("t", &[5, 6, 7]);
        let message = |importance: &[i64]| import(&trace, importance).expect_err("refused").to_string();
        assert_eq!(message(&[1, 1]), "trace t: importance: expected 3 numbers, one a token, got 2");
        assert_eq!(message(&[1, 2, 0]), "trace t: importance: expected -1, 0 or 1, got 2 at token 1");
        for (n_prompt, boundary, column) in
            [(-1, 3, "n_prompt"), (4, 3, "n_prompt"), (1, 9, "boundary"), (1, -9, "boundary")]
        {
            let mut trace = trace.clone();
            (trace.n_prompt, trace.boundary) = (n_prompt, boundary);
            let text = import(&trace, &[1, 1, 0]).expect_err("refused").to_string();
            assert!(text.starts_with(&format!("trace t: {column}: expected")), "{text}");
        }
    }
}
