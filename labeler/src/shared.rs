//! What several tests need.

use epikv_schemas::Trace;

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
        seed: 0,
        temperature: 0.0,
        top_p: 1.0,
        gold_spans: None,
    }
}
