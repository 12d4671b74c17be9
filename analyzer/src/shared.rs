//! A small model and a trace for the tests of this crate.

use epikv_model::Device;
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_schemas::{LabelToken, Trace};

/// A seeded random decoder of four layers.
pub(crate) fn decoder() -> Decoder {
    let (config, weights, _) =
        open(&"random:3,layers=4,vocab=512,context=4096".parse().expect("a spec")).expect("a model");
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit")
}

/// Trace `t` of `n` tokens, the first `n_prompt` of them its prompt.
pub(crate) fn trace(n: usize, n_prompt: i32) -> Trace {
    Trace {
        trace_id: "t".to_owned(),
        dataset: "made".to_owned(),
        problem_id: "p".to_owned(),
        split: None,
        problem: String::new(),
        prompt: None,
        n_prompt,
        n_reason: n as i32 - n_prompt,
        n_answer: 0,
        reason_start: n_prompt,
        boundary: n as i32,
        boundary_kind: "last64".to_owned(),
        n_think_end: 0,
        token_ids: (0..n as i32).map(|i| 3 + (i * i * 7 + i * 13) % 500).collect(),
        text: String::new(),
        answer: None,
        gold: None,
        correct: None,
        verdict: "no_gold".to_owned(),
        finish_reason: "imported".to_owned(),
        sample: 0,
        seed: Some(0),
        temperature: Some(0.0),
        top_p: Some(1.0),
        gold_spans: None,
        model: None,
    }
}

/// The label of a token of trace `t`.
pub(crate) fn label(pos: i32, token_id: i32, tested: bool, important: Option<bool>) -> LabelToken {
    LabelToken {
        trace_id: "t".to_owned(),
        pos,
        token_id,
        region: "reason".to_owned(),
        tested,
        important,
        n_cover: i16::from(tested),
        n_flip: i16::from(important == Some(true)),
    }
}
