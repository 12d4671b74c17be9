//! Records for the tests of this crate.

use epikv_schemas::{LabelWindow, Trace};

/// Trace `t` of 160 tokens: 20 of prompt, 120 of reasoning, 20 of answer.
pub(crate) fn trace() -> Trace {
    Trace {
        trace_id: "t".to_owned(),
        dataset: "made".to_owned(),
        problem_id: "p1".to_owned(),
        split: None,
        problem: "c 8 ; d 7 ; what is c + d ?".to_owned(),
        prompt: None,
        n_prompt: 20,
        n_reason: 120,
        n_answer: 20,
        reason_start: 20,
        boundary: 140,
        boundary_kind: "think_end".to_owned(),
        n_think_end: 1,
        token_ids: (0..160).collect(),
        text: "c + d = 8 + 7 so 15 .".to_owned(),
        answer: Some("15".to_owned()),
        gold: Some("15".to_owned()),
        correct: Some(true),
        verdict: "same".to_owned(),
        finish_reason: "eos".to_owned(),
        sample: 0,
        seed: Some(0),
        temperature: Some(0.0),
        top_p: Some(1.0),
        gold_spans: Some(vec![30, 32, 60, 62]),
        model: None,
    }
}

/// A window of 32 tokens of trace `t`.
pub(crate) fn window(window: i32, start: i32, outcome: &str) -> LabelWindow {
    let flipped = match outcome {
        "changed" | "no_answer" => Some(true),
        "same" | "same_value_other_form" => Some(false),
        _ => None,
    };
    LabelWindow {
        trace_id: "t".to_owned(),
        window,
        start,
        end: start + 32,
        filler: "eos".to_owned(),
        filler_ids_sha: "00".to_owned(),
        answer: Some("14".to_owned()),
        outcome: outcome.to_owned(),
        flipped,
        n_new: 9,
        hit_limit: false,
        min_margin: Some(0.25),
        answer_text: "so 14".to_owned(),
        logprob_drop: None,
        readable_after: None,
    }
}

/// A trace and a window with a script in every text that is free.
pub(crate) fn hostile() -> (Trace, Vec<LabelWindow>) {
    let script = || "\"'></pre></title><script>alert('x')</script>".to_owned();
    let trace = Trace {
        trace_id: script(),
        dataset: script(),
        problem_id: script(),
        split: Some(script()),
        problem: script(),
        prompt: Some(script()),
        boundary_kind: script(),
        text: script(),
        answer: Some(script()),
        gold: Some(script()),
        verdict: script(),
        finish_reason: script(),
        ..trace()
    };
    let window = LabelWindow {
        trace_id: script(),
        filler: script(),
        filler_ids_sha: script(),
        answer: Some(script()),
        answer_text: script(),
        ..window(0, 20, "changed")
    };
    (trace, vec![window])
}
