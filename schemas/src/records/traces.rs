//! `traces`: what a model wrote, and where its parts are.

use super::BOUNDARY_KINDS;

crate::record::record! {
    /// One reasoning trace a row: prompt, reasoning and answer tokens of one problem, and where each part begins.
    pub struct Trace in "traces", version 1 1, unique by (trace_id);

    /// Name of the trace, unique in the file.
    trace_id: String => key(),
    /// Problem set that the problem comes from.
    dataset: String => key(),
    /// Name of the problem in its set.
    problem_id: String => key(),
    /// Part of the problem set, such as `test`; null where it has no parts.
    split: Option<String> => key(),
    /// The problem, as the problem set states it.
    problem: String => text(),
    /// Text of the prompt after the chat template; null for an imported trace that came without it.
    prompt: Option<String> => text(),
    /// Number of prompt tokens.
    n_prompt: i32 => number("tokens"),
    /// Number of reasoning tokens, the closing tag included.
    n_reason: i32 => number("tokens"),
    /// Number of answer tokens.
    n_answer: i32 => number("tokens"),
    /// Index of the first reasoning token.
    reason_start: i32 => position(),
    /// Index of the first answer token.
    boundary: i32 => position(),
    /// Rule that found the boundary.
    boundary_kind: String => word(BOUNDARY_KINDS),
    /// Number of closing think tags in the generated text; the last one counts.
    n_think_end: i32 => number("tags"),
    /// All tokens, from the first of the prompt to the last generated one.
    token_ids: Vec<i32> => number("token id"),
    /// The generated text.
    text: String => text(),
    /// Answer found in the generated text; null where there is none.
    answer: Option<String> => text(),
    /// Right answer; null where the problem set has none.
    gold: Option<String> => text(),
    /// Whether the answer is right; null where that cannot be said.
    correct: Option<bool> => flag(),
    /// Name of the grader's verdict on answer and gold.
    verdict: String => key(),
    /// Why the generation ended: end of sequence, limit of new tokens, end of the model's context, or imported trace.
    finish_reason: String => word(&["eos", "length", "context", "imported"]),
    /// Which of several samples of the same problem this is, from 0.
    sample: i32 => number("1"),
    /// Seed of the run; the random numbers of a trace follow from seed, problem and sample. Null for an imported trace whose
    /// file does not say.
    seed: Option<i64> => number("1"),
    /// Sampling temperature; 0 is greedy. Null for an imported trace whose file does not say.
    temperature: Option<f32> => number("1"),
    /// Share of probability that sampling draws from. Null for an imported trace whose file does not say.
    top_p: Option<f32> => number("1"),
    /// Tokens that the answer is known to need, as pairs start, end (half-open token indices); null where not known.
    gold_spans: Option<Vec<i32>> => position(),
    /// Model that wrote an imported trace, as its file names it; null where the file does not say, and for a trace that was
    /// generated here, whose model the provenance names.
    model: Option<String> => key(),
}
