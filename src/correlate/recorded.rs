//! Traces with their labels, recorded.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use epikv_analyzer::{LabelSet, RecordOptions, Recording, Sample, record};
use epikv_model::Model;
use epikv_model::decoder::Decoder;
use epikv_model::load::{ModelRef, OriginKind, RandomSpec, open};
use epikv_schemas::Trace;

use super::plan::Plan;
use crate::cli::CorrelateArgs;
use crate::{progress, setup};

/// Traces with labels, recorded, and those that could not be.
pub(super) struct Recorded {
    pub(super) samples: Vec<Sample>,
    /// What could not be recorded and why.
    pub(super) failures: Vec<String>,
    /// Traces of the file without usable labels.
    pub(super) n_unusable: usize,
    /// Random weights that were recorded as well.
    pub(super) random: Option<String>,
    /// Problems that the recorded traces solve: what was chosen on them must not be judged on them.
    pub(super) problem_ids: BTreeSet<String>,
}

impl Recorded {
    /// The recordings of the model.
    pub(super) fn recordings(&self) -> Vec<&Recording> {
        self.samples.iter().map(|sample| &sample.recording).collect()
    }
}

/// Records every trace that has usable labels, with the model and with random weights.
pub(super) fn record_all(
    args: &CorrelateArgs,
    plan: &Plan,
    model: &Model,
    traces: &[Trace],
    labels: &LabelSet,
    notes: &mut Vec<String>,
) -> Result<Recorded> {
    let usable: Vec<&Trace> = traces.iter().filter(|trace| labels.is_usable(&trace.trace_id)).collect();
    let rows = plan.rows(model.decoder.config().n_layers);
    let random = if args.no_random_weights { None } else { random_decoder(args, model, notes)? };
    let options = RecordOptions { window_from: plan.settings.window_from, ..RecordOptions::default() };
    let bar = progress::bar("recording", usable.len(), args.model.quiet);
    let (mut samples, mut failures) = (Vec::new(), Vec::new());
    for trace in &usable {
        let recorded = record(&model.decoder, trace, &rows, options).and_then(|recording| {
            let twin = random.as_ref().map(|(_, decoder)| record(decoder, trace, &rows, options)).transpose()?;
            Ok((recording, twin))
        });
        match recorded {
            Ok((recording, twin)) => {
                let sample = Sample::new(trace, recording, twin, labels.of(&trace.trace_id))?;
                samples.push(match labels.windows_of(&trace.trace_id) {
                    Some(windows) => sample.with_windows(windows)?,
                    None => sample,
                });
            }
            Err(error @ (epikv_analyzer::Error::Model(_) | epikv_analyzer::Error::Signals(_))) => {
                return Err(error.into());
            }
            Err(error) => failures.push(error.to_string()),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let (true, Some(first)) = (samples.is_empty(), failures.first()) {
        bail!("no trace could be recorded: {first}");
    }
    let n_unusable = traces.len() - usable.len();
    let problem_ids = usable.iter().map(|trace| trace.problem_id.clone()).collect();
    Ok(Recorded { problem_ids, samples, failures, n_unusable, random: random.map(|(name, _)| name) })
}

/// Random weights of the model's shape; of another seed where the model itself is random.
fn random_decoder(args: &CorrelateArgs, model: &Model, notes: &mut Vec<String>) -> Result<Option<(String, Decoder)>> {
    let seed = match model.origin.kind() {
        OriginKind::Random(spec) if spec.seed == args.model.seed => args.model.seed.wrapping_add(1),
        _ => args.model.seed,
    };
    let spec = match RandomSpec::like(model.decoder.config(), seed) {
        Ok(spec) => spec,
        Err(error) => {
            notes.push(format!("no rows of random weights: {error}"));
            return Ok(None);
        }
    };
    let (config, weights, origin) = open(&ModelRef::Random(spec))?;
    let decoder = Decoder::open(config, &*weights, &setup::open_options(&args.model)?)?;
    Ok(Some((origin.id().to_owned(), decoder)))
}
