//! `epikv correlate`: traces and their labels into coefficients, a figure and a table.

mod between;
mod decisions;
mod files;
mod labels;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::{Result, bail};
use epikv_analyzer::compare::{self, Comparison, Side};
use epikv_analyzer::enrichment::{self, Enrichment};
use epikv_analyzer::figure::{About, Chart, gallery};
use epikv_analyzer::groups::Group;
use epikv_analyzer::predictable::{self, GivenSurprisal};
use epikv_analyzer::{
    AtBudget, DatasetFindings, EMBEDDING, RecordOptions, Recording, Reference, Sample, Settings, Summary, TokenClass,
    WindowFrom, decide, n_columns, record, study,
};
use epikv_eviction::Budget;
use epikv_model::decoder::Decoder;
use epikv_model::load::{ModelRef, OriginKind, RandomSpec, open};
use epikv_model::{Device, Model};
use epikv_schemas::{Trace, read_table};
use epikv_signals::{SIGNALS, SignalRow, Smoother, find};
use epikv_stats::{Confidence, FisherMethod};
use serde_json::json;

use self::between::Between;
use self::labels::LabelSet;
use crate::cli::{CiName, CorrelateArgs, Kernel, WindowStart};
use crate::output::{Done, RunFolder};
use crate::{label, progress, setup};

/// Correlates a file of traces with a folder of labels.
pub(crate) fn run(args: &CorrelateArgs) -> Result<Done> {
    let plan = Plan::new(args)?;
    let names = files::files();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let folder = RunFolder::open(&args.out, &names, args.model.fresh)?;
    let reference = args.reference.as_deref().map(Reference::read).transpose()?;
    if !args.recorded.is_empty() {
        return stored::run(args, &plan, folder, reference.as_ref());
    }
    let ready = Prepared::new(args, &plan)?;
    let analysis = Analysis::new(args, &plan, &ready, reference.as_ref())?;
    let Prepared { model, recorded, notes, .. } = &ready;
    let report = analysis.page(args, &plan, &ready, reference.as_ref());
    files::write(folder, args, &plan, model, recorded, &analysis.results(&report))?;
    print(args, recorded, &analysis.summary, &plan, notes)?;
    Ok(if recorded.failures.is_empty() { Done::All } else { Done::SomeFailed })
}

/// What is analysed: recorded traces with their labels, and what they are compared with.
struct Prepared {
    model: Model,
    recorded: Recorded,
    /// Coefficients of other runs.
    others: Vec<Group>,
    /// Level of each problem, where a file says it.
    levels: Option<BTreeMap<String, f64>>,
    /// What a reader of the results must know.
    notes: Vec<String>,
}

impl Prepared {
    /// Reads and checks the inputs, and records the traces.
    fn new(args: &CorrelateArgs, plan: &Plan) -> Result<Self> {
        let (mut traces, made_by) = read_table::<Trace>(&args.traces)?;
        label::check_unique(&traces, &args.traces)?;
        traces.truncate(args.model.limit.unwrap_or(usize::MAX));
        between::check_pools(&plan.settings.pools, &traces)?;
        let (others, levels) = (between::other_groups(args)?, between::levels(args)?);
        let labels = LabelSet::read(&args.labels)?;
        labels.check_traces(&args.traces)?;
        labels.check_any(&traces)?;
        setup::threads(args.model.threads)?;
        let model = setup::model(&args.model)?;
        label::check_made_by(&made_by, &model, &args.traces)?;
        label::check_made_by(&labels.made_by, &model, &labels.path)?;
        let n_layers = model.decoder.config().n_layers;
        plan.check_kernel(n_layers)?;
        plan.check_pairs(n_layers)?;
        let mut notes = plan.notes(&model);
        let recorded = record_all(args, plan, &model, &traces, &labels, &mut notes)?;
        Ok(Self { model, recorded, others, levels, notes })
    }

    fn n_layers(&self) -> usize {
        self.model.decoder.config().n_layers
    }

    fn about<'a>(&'a self, plan: &'a Plan, reference: Option<&'a Reference>) -> About<'a> {
        About { model: self.model.origin.id(), n_layers: self.n_layers(), settings: &plan.settings, reference }
    }
}

/// Everything that was found.
struct Analysis {
    found: Vec<DatasetFindings>,
    summary: Summary,
    between: Between,
    compared: Vec<Comparison>,
    enriched: Vec<Enrichment>,
    predictable: Vec<GivenSurprisal>,
    decided: AtBudget,
    charts: Vec<Chart>,
}

impl Analysis {
    fn new(args: &CorrelateArgs, plan: &Plan, ready: &Prepared, reference: Option<&Reference>) -> Result<Self> {
        let (samples, settings, n_layers) = (&ready.recorded.samples, &plan.settings, ready.n_layers());
        let bar = progress::bar("columns", n_columns(samples, settings), args.model.quiet);
        let found = study(samples, settings, &|| bar.inc(1))?;
        bar.finish_and_clear();
        let limits = decisions::limits(samples, plan.budget);
        let decided = decide(samples, &plan.budget.to_string(), &limits, args.pick, settings)?;
        let classes = token_classes(&ready.model, samples)?;
        let usual = || compare::usual_pairs(samples, settings.window);
        let pairs = if plan.pairs.is_empty() { usual() } else { plan.pairs.clone() };
        let about = ready.about(plan, reference);
        let (others, levels) = (ready.others.clone(), ready.levels.as_ref());
        Ok(Self {
            summary: Summary::new(&found, n_layers, settings),
            between: Between::new(about.model, &found, samples, others, levels, settings),
            compared: compare::compare(samples, &pairs, settings)?,
            enriched: enrichment::enrichment(samples, &limits, n_layers, settings, &|id| classes[&id]),
            predictable: predictable::given_surprisal(samples, n_layers, settings)?,
            charts: gallery(&found, &decided, &about),
            decided,
            found,
        })
    }

    /// The page of the run.
    fn page(&self, args: &CorrelateArgs, plan: &Plan, ready: &Prepared, reference: Option<&Reference>) -> String {
        let settings = &plan.settings;
        let [of_difficulty, of_groups] = self.between.markdown(settings);
        let sections = [
            epikv_analyzer::notes(&self.found, settings),
            compare::markdown(&self.compared),
            predictable::markdown(&self.predictable, ready.n_layers(), settings),
            of_difficulty,
            of_groups,
            enrichment::markdown(&self.enriched),
            self.decided.markdown(),
            reference.map(epikv_analyzer::published::markdown).unwrap_or_default(),
        ];
        let page = files::Page {
            model: ready.model.origin.id(),
            recorded: &ready.recorded,
            summary: &self.summary,
            settings,
            charts: &self.charts,
            sections: &sections,
            notes: &ready.notes,
        };
        page.markdown(&args.traces)
    }

    /// What goes into files.
    fn results<'r>(&'r self, report: &'r str) -> files::Results<'r> {
        files::Results {
            found: &self.found,
            between: &self.between,
            replayed: Some(files::Replayed {
                compared: &self.compared,
                enriched: &self.enriched,
                predictable: &self.predictable,
                decided: &self.decided,
            }),
            charts: &self.charts,
            report,
        }
    }
}

/// What was typed, checked.
struct Plan {
    /// Signals by name; `None` for all that the model is deep enough for.
    signals: Option<Vec<&'static SignalRow>>,
    /// Whether signals of attention weights may be recorded.
    kernel: Kernel,
    /// How they are compared with labels.
    settings: Settings,
    /// Columns that are compared with each other; none for the usual ones.
    pairs: Vec<[Side; 2]>,
    /// Budget under which scores are replayed.
    budget: Budget,
}

impl Plan {
    /// Checks what was typed.
    fn new(args: &CorrelateArgs) -> Result<Self> {
        let named = |text: &str| -> Vec<String> { text.split(',').map(|name| name.trim().to_owned()).collect() };
        let signals = match args.signals.trim() {
            "all" => None,
            names => Some(unique(named(names).iter().map(|name| Ok(find(name)?)), |row| row.spec.name)?),
        };
        let window = args.smooth_window;
        let smoothers = match args.smooth.trim() {
            "all" => Smoother::ALL.to_vec(),
            names => unique(named(names).iter().map(|name| Ok(Smoother::parse(name, window)?)), |s| *s)?,
        };
        let settings = Settings {
            smoothers,
            window,
            window_from: match args.window_from {
                WindowStart::Decode => WindowFrom::Decode,
                WindowStart::Prompt => WindowFrom::Prompt,
            },
            confidence: Confidence::P95,
            fisher: match args.ci {
                CiName::Fisher => FisherMethod::Plain,
                CiName::Fieller => FisherMethod::Fieller,
                CiName::BonettWright => FisherMethod::BonettWright,
            },
            replicates: args.bootstrap as usize,
            surrogates: args.surrogates as usize,
            seed: args.model.seed,
            max_lag: args.max_lag as usize,
            pools: between::pools(args)?,
        };
        let pairs = unique(args.compare.iter().map(|typed| pair(typed, window)), |pair| *pair)?;
        Ok(Self { signals, kernel: args.kernel, settings, pairs, budget: args.budget.trim().parse()? })
    }

    /// The signals of a model: those asked for, or all that can be built for it and that the kernel shows.
    fn rows(&self, n_layers: usize) -> Vec<&'static SignalRow> {
        let fits = |row: &&SignalRow| match row.needs_attention(n_layers) {
            Ok(needs_attention) => self.kernel == Kernel::Explicit || !needs_attention,
            Err(_) => false,
        };
        let mut rows = self.signals.clone().unwrap_or_else(|| SIGNALS.iter().filter(fits).collect());
        // A baseline that stands in every table.
        if !rows.iter().any(|row| row.spec.name == EMBEDDING) {
            rows.extend(SIGNALS.iter().filter(|row| row.spec.name == EMBEDDING));
        }
        rows
    }

    /// Refuses a signal of attention weights that was asked for by name and that the kernel hides.
    fn check_kernel(&self, n_layers: usize) -> Result<()> {
        for row in self.signals.iter().flatten() {
            if self.kernel == Kernel::Fused && row.needs_attention(n_layers)? {
                return Err(HiddenByKernel { signal: row.spec.name }.into());
            }
        }
        Ok(())
    }

    /// Refuses to compare what will not be recorded.
    fn check_pairs(&self, n_layers: usize) -> Result<()> {
        let rows = self.rows(n_layers);
        for side in self.pairs.iter().flatten() {
            let row = rows.iter().find(|row| row.spec.name == side.signal);
            if !row.is_some_and(|row| row.has_value(side.layer, n_layers)) {
                return Err(side.missing().into());
            }
        }
        Ok(())
    }

    fn notes(&self, model: &Model) -> Vec<String> {
        let n_layers = model.decoder.config().n_layers;
        let rows = self.rows(n_layers);
        let mut notes = Vec::new();
        let mut hidden = Vec::new();
        for row in SIGNALS.iter().filter(|row| self.signals.is_none() && !rows.iter().any(|r| r.spec == row.spec)) {
            let name = row.spec.name;
            if row.needs_attention(n_layers).is_ok() {
                hidden.push(name);
            } else {
                notes.push(format!("{name} needs a deeper model than {n_layers} layers and is left out"));
            }
        }
        if !hidden.is_empty() {
            notes.push(format!(
                "signals of attention weights are recorded with --kernel explicit: {}",
                hidden.join(", ")
            ));
        }
        notes
    }
}

/// Two columns, separated by a comma.
fn pair(typed: &str, window: usize) -> Result<[Side; 2]> {
    let sides = typed.split(',').map(|side| Side::parse(side, window)).collect::<Result<Vec<_>, _>>()?;
    match sides[..] {
        [a, b] if a != b => Ok([a, b]),
        _ => bail!("--compare {typed}: expected two different signals, separated by a comma"),
    }
}

/// A signal that the chosen kernel never shows.
#[derive(Debug, thiserror::Error)]
#[error("signal {signal}: expected --kernel explicit, got fused")]
pub(crate) struct HiddenByKernel {
    signal: &'static str,
}

impl HiddenByKernel {
    /// What the reader can try.
    pub(crate) const HINT: &'static str =
        "a fused kernel never writes attention weights down; --kernel explicit reduces them while they exist";
}

/// Items in their order, a repeated one once.
fn unique<T, K: PartialEq>(items: impl Iterator<Item = Result<T>>, key: impl Fn(&T) -> K) -> Result<Vec<T>> {
    let mut all: Vec<T> = Vec::new();
    for item in items {
        let item = item?;
        if !all.iter().any(|known| key(known) == key(&item)) {
            all.push(item);
        }
    }
    Ok(all)
}

/// Traces with labels, recorded, and those that could not be.
struct Recorded {
    samples: Vec<Sample>,
    /// What could not be recorded and why.
    failures: Vec<String>,
    /// Traces of the file without usable labels.
    n_unusable: usize,
    /// Random weights that were recorded as well.
    random: Option<String>,
    /// Problems that the recorded traces solve: what was chosen on them must not be judged on them.
    problem_ids: BTreeSet<String>,
}

/// Records every trace that has usable labels, with the model and with random weights.
fn record_all(
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

/// What kind each token of the samples is.
fn token_classes(model: &Model, samples: &[Sample]) -> Result<BTreeMap<u32, TokenClass>> {
    let ids: BTreeSet<u32> = samples.iter().flat_map(|sample| sample.recording.token_ids.iter().copied()).collect();
    ids.into_iter().map(|id| Ok((id, TokenClass::of(&model.tokenizer.decode(&[id])?)))).collect()
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
    let decoder = Decoder::load(config, &*weights, &Device::Cpu, args.model.weights.into())?;
    Ok(Some((origin.id().to_owned(), decoder)))
}

/// The summary on stderr, and with `--json` its figures on stdout.
fn print(args: &CorrelateArgs, recorded: &Recorded, summary: &Summary, plan: &Plan, notes: &[String]) -> Result<()> {
    let mut err = std::io::stderr();
    for failure in &recorded.failures {
        writeln!(err, "failed: {failure}")?;
    }
    write!(err, "{}", epikv_analyzer::markdown(summary, &plan.settings))?;
    for note in notes {
        writeln!(err, "- {note}")?;
    }
    writeln!(
        err,
        "{} traces recorded, {} without usable labels, {} failed -> {}",
        recorded.samples.len(),
        recorded.n_unusable,
        recorded.failures.len(),
        args.out.display()
    )?;
    if args.model.json {
        let figures = json!({
            "n_recorded": recorded.samples.len(), "n_unusable": recorded.n_unusable, "failures": recorded.failures,
            "notes": notes, "summary": summary, "out": args.out.display().to_string(),
        });
        writeln!(std::io::stdout(), "{figures}")?;
    }
    Ok(())
}

/// The recordings of the model.
fn recordings(recorded: &Recorded) -> Vec<&Recording> {
    recorded.samples.iter().map(|sample| &sample.recording).collect()
}
