//! Shared code of the tests.

use epikv_schemas::{LabelTrace, LabelWindow, Trace};

/// A trace of a prompt of one token and no answer.
pub(crate) fn trace(trace_id: &str, token_ids: &[i32]) -> Trace {
    let n = token_ids.len() as i32;
    Trace {
        trace_id: trace_id.to_owned(),
        dataset: "d".to_owned(),
        problem_id: trace_id.to_owned(),
        split: None,
        problem: "?".to_owned(),
        prompt: None,
        n_prompt: 1,
        n_reason: n - 1,
        n_answer: 0,
        reason_start: 1,
        boundary: n,
        boundary_kind: "think_end".to_owned(),
        n_think_end: 1,
        token_ids: token_ids.to_vec(),
        text: String::new(),
        answer: Some("4".to_owned()),
        gold: Some("4".to_owned()),
        correct: Some(true),
        verdict: "same".to_owned(),
        finish_reason: "eos".to_owned(),
        sample: 0,
        seed: Some(0),
        temperature: Some(0.0),
        top_p: Some(1.0),
        gold_spans: None,
        model: None,
    }
}

/// A window with an outcome and no flip.
pub(crate) fn window(trace: &str, start: i32, end: i32, outcome: &str) -> LabelWindow {
    LabelWindow {
        trace_id: trace.to_owned(),
        window: start,
        start,
        end,
        filler: "eos".to_owned(),
        filler_ids_sha: String::new(),
        answer: None,
        outcome: outcome.to_owned(),
        flipped: None,
        n_new: 0,
        hit_limit: false,
        min_margin: None,
        answer_text: String::new(),
        logprob_drop: None,
        readable_after: None,
    }
}

/// The row of a usable trace.
pub(crate) fn labelled(id: &str) -> LabelTrace {
    LabelTrace {
        trace_id: id.to_owned(),
        dataset: "d".to_owned(),
        problem_id: String::new(),
        gold: None,
        original_answer: None,
        control_answer: None,
        control_outcome: "same".to_owned(),
        usable: true,
        reason_unusable: None,
        n_windows: 0,
        n_flipped: 0,
        n_undefined: 0,
        n_reason: 6,
        important_share: None,
        boundary_kind: String::new(),
        control_text: String::new(),
        control_n_new: 0,
    }
}
