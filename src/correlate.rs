//! `epikv correlate`: correlates signals with labels, and writes coefficients, a figure and a table.

mod decisions;
mod files;
mod plan;
mod recorded;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::Result;
use epikv_analyzer::between::{self, Between};
use epikv_analyzer::compare::{self, Comparison};
use epikv_analyzer::enrichment::{self, Enrichment};
use epikv_analyzer::figure::{About, Chart, gallery};
use epikv_analyzer::groups::Group;
use epikv_analyzer::predictable::{self, GivenSurprisal};
use epikv_analyzer::{
    AtBudget, DatasetFindings, LabelSet, Page, Pool, Reference, Sample, Summary, TokenClass, decide, n_columns, study,
};
use epikv_model::Model;
use serde_json::json;

use self::plan::Plan;
use self::recorded::{Recorded, record_all};
use crate::cli::CorrelateArgs;
use crate::job::Job;
use crate::output::Done;
use crate::{inputs, progress, setup};

/// Correlates a file of traces with a folder of labels.
pub(crate) fn run(args: &CorrelateArgs) -> Result<Done> {
    let plan = Plan::new(args)?;
    let names = files::files();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let job = Job::open("correlate", &args.out, &names, args.model.fresh)?;
    let reference = args.reference.as_deref().map(Reference::read).transpose()?;
    if !args.recorded.is_empty() {
        return stored::run(args, &plan, job, reference.as_ref());
    }
    let ready = Prepared::new(args, &plan)?;
    let analysis = Analysis::new(args, &plan, &ready, reference.as_ref())?;
    let Prepared { model, recorded, notes, .. } = &ready;
    let report = analysis.page(args, &plan, &ready, reference.as_ref());
    files::write(job, args, &plan, model, recorded, &analysis.results(&report))?;
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
        let (traces, made_by) = inputs::traces(&args.traces, args.model.limit)?;
        Pool::check(&plan.settings.pools, &traces)?;
        let others = between::other_groups(&args.against)?;
        let levels = args.difficulty.as_deref().map(between::levels).transpose()?;
        let labels = LabelSet::read(&args.labels)?;
        if !labels.are_of(&args.traces)? {
            let (labels, traces) = (labels.path.display(), args.traces.display());
            tracing::warn!(%labels, %traces, "made from another traces file");
        }
        labels.check_any(&traces)?;
        setup::threads(args.model.threads)?;
        let model = setup::model(&args.model)?;
        inputs::check_made_by(&made_by, &model, &args.traces)?;
        inputs::check_made_by(&labels.made_by, &model, &labels.path)?;
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
            enrichment::markdown(&self.enriched, settings.surrogates),
            self.decided.markdown(),
            reference.map(epikv_analyzer::published::markdown).unwrap_or_default(),
        ];
        let page = Page {
            model: ready.model.origin.id(),
            n_samples: ready.recorded.samples.len(),
            n_unusable: ready.recorded.n_unusable,
            failures: &ready.recorded.failures,
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

/// What kind each token of the samples is.
fn token_classes(model: &Model, samples: &[Sample]) -> Result<BTreeMap<u32, TokenClass>> {
    let ids: BTreeSet<u32> = samples.iter().flat_map(|sample| sample.recording.token_ids.iter().copied()).collect();
    ids.into_iter().map(|id| Ok((id, TokenClass::of(&model.tokenizer.decode(&[id])?)))).collect()
}

/// The summary on stderr, and with `--json` its figures on stdout.
fn print(args: &CorrelateArgs, recorded: &Recorded, summary: &Summary, plan: &Plan, notes: &[String]) -> Result<()> {
    let mut err = crate::terminal::err();
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
        writeln!(crate::terminal::out(), "{figures}")?;
    }
    Ok(())
}
