//! One teacher-forced pass over a trace, recording signals at all layers.
//!
//! The trace is fed in chunks that bound the memory. Signals are streaming, so the chunk size changes no value. Rolling
//! windows start empty where decoding began, as they do at run time, or at the prompt's first token, as in the authors'
//! study.

use std::num::NonZeroUsize;

use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::taps::ProbePlan;
use epikv_schemas::Trace;
use epikv_signals::{Chunk, ScoreSignal, Signal, SignalRow, Step};

use crate::error::Result;

epikv_words::words! {
    /// Where rolling windows start.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum WindowFrom {
        /// The first decoded token.
        ///
        /// What a policy sees at run time.
        #[default]
        Decode = "decode",
        /// The prompt's first token.
        ///
        /// What the published correlations used.
        Prompt = "prompt",
    }
}

/// How a trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOptions {
    /// Tokens of a pass at most. Changes no value.
    pub chunk: NonZeroUsize,
    /// Where rolling windows start.
    pub window_from: WindowFrom,
}

impl Default for RecordOptions {
    /// Passes of 512 tokens, windows from the first decoded token.
    fn default() -> Self {
        const CHUNK: NonZeroUsize = NonZeroUsize::new(512).expect("512 is not zero");
        Self { chunk: CHUNK, window_from: WindowFrom::Decode }
    }
}

/// A signal's values over a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name of the signal.
    pub signal: &'static str,
    /// Its layer, 0-based; `None` for a signal of the whole model.
    pub layer: Option<usize>,
    /// One value a token, `[n]`, prompt included; null where undefined.
    pub values: Vec<Option<f32>>,
}

/// What was recorded of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Name of the trace.
    pub trace_id: String,
    /// Its tokens, `[n]`.
    pub token_ids: Vec<u32>,
    /// Tokens of its prompt.
    pub n_prompt: usize,
    /// Columns, in the order of the rows asked for and then of the layers; those known late come last, and scores of policies after them.
    pub columns: Vec<Column>,
}

/// Records signals of a trace at all layers.
///
/// # Errors
/// If the trace does not fit the model, a signal cannot be built for it, or the model fails.
pub fn record(decoder: &Decoder, trace: &Trace, signals: &[&SignalRow], options: RecordOptions) -> Result<Recording> {
    let (checked, config) = (trace.checked()?, decoder.config());
    checked.check_model(checked.token_ids.len(), config.vocab_size, config.max_positions)?;
    let (token_ids, n_prompt) = (checked.token_ids, checked.n_prompt);
    let (n, n_layers) = (token_ids.len(), config.n_layers);
    let (mut columns, mut running) = build(signals, n_layers, n)?;
    let late = signals.iter().filter_map(|row| row.late(n_layers).transpose());
    let mut late = late.collect::<std::result::Result<Vec<_>, _>>()?;
    let plan = running.iter().fold(ProbePlan::default(), |plan, signal| plan.union(&signal.plan()));
    let plan = late.iter().fold(plan, |plan, signal| plan.union(&signal.plan()));
    let mut cache = decoder.cache(Scope::Global, Capacity::Fixed(n))?;
    let mut from = 0;
    while from < n {
        let mut to = n.min(from + options.chunk.get());
        if options.window_from == WindowFrom::Decode {
            if from == n_prompt {
                for signal in &mut running {
                    signal.reset();
                }
            } else if from < n_prompt {
                to = to.min(n_prompt);
            }
        }
        let input = RowInput::next(&cache, token_ids[from..to].to_vec(), LogitsOf::None);
        let output = decoder.forward(&[input], &mut [&mut cache], &plan)?;
        let chunk = Chunk::new(&output.taps, 0..to - from);
        for (column, signal) in columns.iter_mut().zip(&mut running) {
            column.values.extend(signal.push(&chunk)?);
        }
        for signal in &mut late {
            signal.push(&chunk)?;
        }
        from = to;
    }
    let late = late.iter_mut();
    columns.extend(late.map(|signal| Column { signal: signal.spec().name, layer: None, values: signal.finish() }));
    columns.extend(scores(decoder, (&trace.problem_id, &token_ids, n_prompt), signals, options)?);
    Ok(Recording { trace_id: trace.trace_id.clone(), token_ids, n_prompt, columns })
}

/// Scores of policies over a trace, in passes of their own: other columns keep their bits whatever scores are asked for.
fn scores(
    decoder: &Decoder,
    (problem, token_ids, n_prompt): (&str, &[u32], usize),
    signals: &[&SignalRow],
    options: RecordOptions,
) -> Result<Vec<Column>> {
    let n_layers = decoder.config().n_layers;
    let all = signals.iter().filter_map(|row| row.score(n_layers, problem).transpose());
    let (single, chunked): (Vec<_>, Vec<_>) =
        all.collect::<std::result::Result<Vec<_>, _>>()?.into_iter().partition(ScoreSignal::by_single_tokens);
    let mut columns = Vec::new();
    for (mut scores, most) in [(chunked, options.chunk.get()), (single, 1)] {
        if scores.is_empty() {
            continue;
        }
        let plan = scores.iter().fold(ProbePlan::default(), |plan, score| plan.union(&score.plan()));
        let mut cache = decoder.cache(Scope::Global, Capacity::Fixed(token_ids.len()))?;
        let (prompt, rest) = token_ids.split_at(n_prompt);
        let parts = std::iter::once((prompt, true)).chain(rest.chunks(most).map(|part| (part, false)));
        for (part, prompt) in parts.filter(|(part, _)| !part.is_empty()) {
            let input = RowInput::next(&cache, part.to_vec(), LogitsOf::None);
            let output = decoder.forward(&[input], &mut [&mut cache], &plan)?;
            let chunk = Chunk::new(&output.taps, 0..part.len());
            let step = Step { chunk: &chunk, cache: &cache, prompt };
            scores.iter_mut().try_for_each(|score| score.push(&step))?;
        }
        for score in &mut scores {
            columns.push(Column { signal: score.spec().name, layer: None, values: score.finish(&cache)? });
        }
    }
    Ok(columns)
}

/// Signals under way, one a column.
type Running = Vec<Box<dyn Signal>>;

/// An empty column and a fresh signal for each signal and layer.
fn build(signals: &[&SignalRow], n_layers: usize, n: usize) -> Result<(Vec<Column>, Running)> {
    let (mut columns, mut running) = (Vec::new(), Vec::new());
    for row in signals {
        for (layer, signal) in row.all(n_layers)? {
            columns.push(Column { signal: row.spec.name, layer, values: Vec::with_capacity(n) });
            running.push(signal);
        }
    }
    Ok((columns, running))
}

#[cfg(test)]
mod tests {
    use epikv_signals::{SCORES, SIGNALS, find};

    use super::*;
    use crate::shared::{decoder, trace};

    fn recorded(chunk: usize, window_from: WindowFrom) -> Recording {
        let rows: Vec<&SignalRow> = SIGNALS.iter().collect();
        let options = RecordOptions { chunk: NonZeroUsize::new(chunk).expect("not zero"), window_from };
        record(&decoder(), &trace(80, 20), &rows, options).expect("fits")
    }

    #[test]
    fn every_layer_has_a_column_and_the_chunk_size_changes_nothing() {
        let whole = recorded(512, WindowFrom::Decode);
        let names: Vec<_> = whole.columns.iter().map(|c| (c.signal, c.layer)).collect();
        let known = SIGNALS.iter().flat_map(|row| {
            let layers = row.all(4).expect("deep enough").into_iter();
            layers.map(|(layer, _)| (row.spec.name, layer))
        });
        let late = SIGNALS.iter().filter(|row| row.late(4).expect("layers").is_some()).map(|row| (row.spec.name, None));
        let want = known.chain(late);
        assert_eq!(names, want.collect::<Vec<_>>());
        // Steps and surprisals need a predecessor, what a token has by itself does not.
        let needs_one =
            ["hs_l2", "hs_cos", "embed_l2", "surprisal", "epikv", "epikv_raw", "epikv_a", "epikv_b", "band_adaptive"];
        for column in &whole.columns {
            assert_eq!(column.values.len(), 80);
            if column.signal == "lag_next" {
                assert!(column.values.iter().all(Option::is_none), "two chunks of 128 are never full");
                continue;
            }
            assert_eq!(column.values[0].is_none(), needs_one.contains(&column.signal), "{}", column.signal);
            assert!(column.values[1..].iter().all(Option::is_some), "{}", column.signal);
        }
        // Attention is summed over the tokens of a pass, so that sums are rounded in the order of passes.
        let is_late = |c: &Column| ["h2o_attn", "h2o_attn@age=64"].contains(&c.signal);
        let from_prompt = recorded(512, WindowFrom::Prompt);
        for (chunk, from, whole) in [1, 7, 20, 33]
            .map(|chunk| (chunk, WindowFrom::Decode, &whole))
            .into_iter()
            .chain([(7, WindowFrom::Prompt, &from_prompt)])
        {
            for (column, want) in recorded(chunk, from).columns.iter().zip(&whole.columns) {
                let worst = column.values.iter().flatten().zip(want.values.iter().flatten());
                let worst = worst.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(column == want || (is_late(want) && worst < 1e-5), "{} in chunks of {chunk}", want.signal);
            }
        }
    }

    /// The column of a signal over the first `n` tokens of a trace whose prompt has 20.
    fn alone(signal: &str, n: usize) -> Vec<Option<f32>> {
        let row = find(signal).expect("a score");
        let recording = record(&decoder(), &trace(n, 20), &[row], RecordOptions::default()).expect("fits");
        assert_eq!((recording.columns.len(), recording.columns[0].signal), (1, row.spec.name));
        recording.columns[0].values.clone()
    }

    #[test]
    fn every_score_of_policies_is_a_signal() {
        for row in SCORES.iter().filter(|row| row.spec.name != "labels") {
            let name = if row.spec.name == "layer" { "layer(1)" } else { row.spec.name };
            let values = alone(name, 80);
            assert_eq!(values.len(), 80, "{name}");
            let is_signal = SIGNALS.iter().any(|row| row.spec.name == name);
            assert!(is_signal || values[..20].iter().all(Option::is_none), "{name}: the prompt has none");
            // The tokens of an observation window have none, and the longest window is 64.
            let n_window = if name == "vase" { 64 } else { 32 };
            assert!((20..80 - n_window).all(|at| values[at].is_some()), "{name}: {values:?}");
            assert!(values.iter().flatten().all(|v| v.is_finite()), "{name}");
        }
        assert!(find("labels").is_err() && find("kv-key@age=3").is_err() && find("snapkv@age=03").is_err());
        assert_eq!(find("snapkv(window32)@age=3").expect("one name").spec.name, "snapkv@age=3");
    }

    #[test]
    fn the_score_at_an_age_is_that_of_the_trace_cut_there() {
        for score in ["tova", "raas", "snapkv(window4+mean3)", "r-kv(window4)", "k-norm", "lag-kv(8)"] {
            let aged = alone(&format!("{score}@age=16"), 80);
            for at in [20, 33, 63] {
                assert_eq!(aged[at], alone(score, at + 17)[at], "{score} at {at}");
            }
            let end = alone(score, 80);
            assert_eq!(aged[64..], end[64..], "{score}: at the end of the trace where that comes before");
        }
    }

    #[test]
    fn windows_start_where_they_are_told_to() {
        let (decode, prompt) = (recorded(512, WindowFrom::Decode), recorded(512, WindowFrom::Prompt));
        let column = |recording: &Recording, signal: &str| -> Vec<Option<f32>> {
            recording.columns.iter().find(|c| c.signal == signal).expect("recorded").values.clone()
        };
        assert_eq!(column(&decode, "hs_l2"), column(&prompt, "hs_l2"), "what is recorded has no window");
        let (decode, prompt) = (column(&decode, "epikv"), column(&prompt, "epikv"));
        assert_eq!(decode[..20], prompt[..20]);
        assert_eq!(decode[20], Some(0.0), "one value in the window");
        assert_ne!(prompt[20], Some(0.0));
    }

    #[test]
    fn a_trace_that_does_not_fit_is_named() {
        let (decoder, rows) = (decoder(), [find("hs_l2").expect("a row")]);
        let message = |trace: &Trace| {
            let error = record(&decoder, trace, &rows, RecordOptions::default()).expect_err("does not fit");
            error.to_string()
        };
        let mut broken = trace(10, 4);
        broken.token_ids[3] = 512;
        assert_eq!(message(&broken), "trace t: token 512 at position 3 is outside the model's vocabulary of 512");
        assert_eq!(message(&trace(10, 11)), "trace t: n_prompt: expected 0 to 10, got 11");
        assert_eq!(message(&trace(0, 0)), "trace t: token_ids: expected at least one token, got none");
        assert_eq!(message(&trace(5000, 4)), "trace t: 5000 tokens, the model's context is 4096");
    }
}
