//! `epikv trace`: generates traces of problems, or imports traces made elsewhere.

mod journal;

use std::io::Write;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, bail};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::chat::RenderOptions;
use epikv_model::sampler::{RandomStream, Sampling, stream_number};
use epikv_model::session::{RowSpec, Session};
use epikv_model::{Model, TextModel};
use epikv_schemas::{Trace, TraceTiming};
use epikv_tasks::import::{ImportContext, import_traces};
use epikv_tasks::parts;
use epikv_tasks::problem::{Problem, read_problems};
use epikv_tasks::prompt::{Prompt, PromptOptions};
use epikv_tasks::trace::{FinishReason, Generation, build_trace};
use serde_json::{Value, json};

use self::journal::{Ended, Kept};
use crate::cli::{PromptArgs, SamplingArgs, TraceArgs};
use crate::job::Job;
use crate::output::{Done, NothingToDo, split};
use crate::report::Refused;
use crate::{progress, setup};

/// Makes or imports traces.
pub(crate) fn run(args: &TraceArgs) -> Result<Done> {
    check(&args.sampling)?;
    // clap waives `requires` where the flag that is missing conflicts with one that is there.
    if args.think_tags.is_some() && args.import.is_none() {
        let what = "--think-tags: expected --import beside it, got none".to_owned();
        return Err(Refused::new(what, "the tags of traces made here are those of the model's template").into());
    }
    let (folder, file) = split(&args.out)?;
    let input_path = args.problems.as_ref().or(args.import.as_ref());
    if input_path.is_some_and(|path| path.canonicalize().ok().is_some_and(|p| args.out.canonicalize().ok() == Some(p)))
    {
        bail!("--out {}: expected another file than the input", args.out.display());
    }
    let timings_file = timings_name(&file);
    let journal_file = folder.join(journal_name(&file));
    let mut job = Job::open("trace", &folder, &[&file, &timings_file], args.model.fresh).inspect_err(|error| {
        // The journal of a run that was killed after it had put its files in place.
        if error.is::<NothingToDo>() {
            let _ = std::fs::remove_file(&journal_file);
        }
    })?;
    let mut journal = None;
    let threads = setup::threads(args.model.threads)?;
    let options = prompt_options(&args.prompt);
    let (traces, failures) = match (&args.problems, &args.import) {
        (Some(path), _) => {
            let mut problems = read_problems(path)?;
            problems.truncate(args.model.limit.unwrap_or(usize::MAX));
            let model = setup::model_with_kernel(&args.model, args.kernel)?;
            let kept = journal.insert(Kept::open(&journal_file, &model, args)?);
            let made = generate(&model, &problems, &options, args, threads, kept)?;
            check_any(&made.traces, &made.failures)?;
            job.set_model(&model)?;
            job.set("run", run_settings(args, &options));
            job.set_inputs(parts(path)?)?;
            job.note("threads", json!(threads));
            job.note("batch", json!(made.timings.first().map(|timing| timing.batch)));
            job.note("bytes_to_host", json!(model.decoder.bytes_to_host()));
            job.table_as(&file, &made.traces)?;
            if !made.timings.is_empty() {
                job.table_as(&timings_file, &made.timings)?;
            }
            (made.traces, made.failures)
        }
        (None, Some(path)) => (import(args, path, &options, &mut job, &file)?, Vec::new()),
        (None, None) => bail!("expected --problems or --import"),
    };
    job.finish()?;
    journal.map_or(Ok(()), Kept::remove)?;
    summarise(args, &traces, &failures)?;
    Ok(if failures.is_empty() { Done::All } else { Done::SomeFailed })
}

/// Imports traces. What the provenance says is what is known of them: the tokenizer, and how prompts were made where rows
/// brought none.
fn import(args: &TraceArgs, path: &Path, options: &PromptOptions, job: &mut Job, file: &str) -> Result<Vec<Trace>> {
    let Some(reference) = &args.model.model else {
        let hint = "--model M names the model that wrote the traces, whose tokenizer reads them; a folder with tokenizer.json \
                    is enough";
        return Err(Refused::new("--import: expected --model, got none".to_owned(), hint).into());
    };
    let model = TextModel::open(reference)?;
    let context = ImportContext {
        tokenizer: &model.tokenizer,
        template: model.chat.as_ref(),
        prompt: options,
        vocab_size: model.vocab_size,
        tags: args.think_tags.as_ref(),
    };
    let imported = import_traces(path, &context)?;
    let mut traces = imported.traces;
    traces.truncate(args.model.limit.unwrap_or(usize::MAX));
    check_any(&traces, &[])?;
    job.set("model", model.provenance());
    let mut run = json!({
        "limit": args.model.limit,
        "grader_mode": epikv_tasks::trace::GRADER_MODE.name(),
        "think_tags": args.think_tags.as_ref().map(|tags| [&tags.open, &tags.close]),
    });
    if imported.n_prompts_made > 0 {
        run["n_prompts_made"] = json!(imported.n_prompts_made);
        run["prompt"] = prompt_settings(options);
    }
    job.set("run", run);
    job.set_inputs(parts(path)?)?;
    job.table_as(file, &traces)?;
    Ok(traces)
}

fn check_any(traces: &[Trace], failures: &[String]) -> Result<()> {
    if traces.is_empty() {
        bail!("no trace could be made: {}", failures.first().map_or("the input is empty", String::as_str));
    }
    Ok(())
}

/// Checks what was typed of sampling.
pub(crate) fn check(args: &SamplingArgs) -> Result<()> {
    if args.temperature < 0.0 || !args.temperature.is_finite() || !(args.top_p > 0.0 && args.top_p <= 1.0) {
        bail!(
            "sampling: expected --temperature of at least 0 and --top-p in (0, 1], got {} and {}",
            args.temperature,
            args.top_p
        );
    }
    Ok(())
}

/// `traces.parquet` -> `trace_timings.parquet`, `x.parquet` -> `x_timings.parquet`.
fn timings_name(file: &str) -> String {
    let stem = file.strip_suffix(".parquet").unwrap_or(file);
    format!("{}_timings.parquet", stem.strip_suffix("traces").map_or(stem.to_owned(), |s| format!("{s}trace")))
}

/// `traces.parquet` -> `traces_journal.jsonl`.
fn journal_name(file: &str) -> String {
    format!("{}_journal.jsonl", file.strip_suffix(".parquet").unwrap_or(file))
}

/// How problems become prompts.
pub(crate) fn prompt_options(args: &PromptArgs) -> PromptOptions {
    let defaults = PromptOptions::default();
    PromptOptions {
        style: args.prompt_style,
        system: args.system.clone(),
        instruction: args.instruction.clone().unwrap_or(defaults.instruction),
        render: RenderOptions {
            variables: args.template_variables.clone().unwrap_or_default(),
            date: args.template_date.clone(),
            ..defaults.render
        },
    }
}

/// What determines the traces.
fn run_settings(args: &TraceArgs, options: &PromptOptions) -> Value {
    let mut settings = json!({
        "max_new": args.max_new,
        "samples": args.samples,
        "temperature": args.sampling.temperature,
        "top_p": args.sampling.top_p,
        "seed": args.model.seed,
        "limit": args.model.limit,
        "kernel": args.kernel.name(),
        "grader_mode": epikv_tasks::trace::GRADER_MODE.name(),
    });
    if let (Value::Object(settings), Value::Object(prompt)) = (&mut settings, prompt_settings(options)) {
        settings.extend(prompt);
    }
    settings
}

/// What determines a prompt besides problem and model.
fn prompt_settings(options: &PromptOptions) -> Value {
    json!({
        "prompt_style": options.style.name(),
        "system": options.system,
        "instruction": options.instruction,
        "template_date": options.render.date,
        "template_variables": options.render.variables,
    })
}

/// Traces and what went wrong.
#[derive(Debug, Default)]
struct Made {
    traces: Vec<Trace>,
    timings: Vec<TraceTiming>,
    failures: Vec<String>,
}

/// One generation to make.
struct Planned<'p> {
    problem: &'p Problem,
    prompt: Rc<Prompt>,
    sample: u32,
}

/// Generates a trace for each problem and sample.
fn generate(
    model: &Model,
    problems: &[Problem],
    options: &PromptOptions,
    args: &TraceArgs,
    threads: usize,
    kept: &mut Kept,
) -> Result<Made> {
    let mut made = Made::default();
    let mut plans = Vec::new();
    let max_positions = model.decoder.config().max_positions;
    for problem in problems {
        let prompt = Rc::new(Prompt::of_problem(&problem.problem, &model.tokenizer, model.chat.as_ref(), options)?);
        if let Some(refusal) = prompt.refusal(&problem.id, max_positions) {
            made.failures.push(refusal);
            continue;
        }
        plans.extend((0..args.samples).map(|sample| Planned { problem, prompt: prompt.clone(), sample }));
    }
    let bar = progress::bar("traces", plans.len(), args.model.quiet);
    let longest = plans.iter().map(|plan| plan.prompt.ids.len()).max().unwrap_or(0) + args.max_new;
    let batch = args.batch.rows(model, longest);
    let mut end = |plan: &Planned<'_>, ended: &Ended| -> Result<()> {
        bar.inc(1);
        match FinishReason::of(ended.finish) {
            None => made.failures.push(format!("{}: {}", plan.problem.id, model.not_numbers())),
            Some(finish) => {
                let trace = trace_of(model, plan, &ended.generated, finish, args)?;
                made.timings.push(timing(&trace, ended, batch, threads));
                made.traces.push(trace);
            }
        }
        Ok(())
    };
    let mut open = Vec::new();
    for (key, plan) in plans.iter().enumerate() {
        match kept.find(&plan.problem.id, plan.sample, &plan.prompt.ids) {
            Some(ended) => end(plan, &ended)?,
            None => open.push((key, plan)),
        }
    }
    let specs = open.iter().map(|(key, plan)| {
        Ok(RowSpec {
            key: *key,
            context: plan.prompt.ids.clone(),
            cache: model.decoder.cache(Scope::Global, Capacity::Growing)?,
            max_new: args.max_new,
            stop_ids: model.stop_ids(),
            sampling: sampling(args, plan),
            draft: [].into(),
        })
    });
    let mut session = Session::new(&model.decoder);
    session.run(specs, batch, |row| -> Result<()> {
        let ended = Ended {
            generated: row.generated,
            finish: row.finish,
            n_forwarded: row.n_forwarded,
            wall_s: row.wall.as_secs_f64(),
        };
        let plan = &plans[row.key];
        kept.add(&plan.problem.id, plan.sample, &plan.prompt.ids, &ended)?;
        end(plan, &ended)
    })?;
    bar.finish_and_clear();
    Ok(made)
}

fn sampling(args: &TraceArgs, plan: &Planned<'_>) -> Sampling {
    let problem = stream_number(&plan.problem.id);
    let stream = RandomStream { seed: args.model.seed, problem, sample: plan.sample };
    Sampling::of(args.sampling.temperature, args.sampling.top_p, stream)
}

fn trace_of(
    model: &Model,
    plan: &Planned<'_>,
    generated: &[u32],
    finish: FinishReason,
    args: &TraceArgs,
) -> Result<Trace> {
    let token_ids = [plan.prompt.ids.as_slice(), generated].concat();
    let trace_id = match args.samples {
        1 => plan.problem.id.clone(),
        _ => format!("{}#{}", plan.problem.id, plan.sample),
    };
    let generation = Generation {
        prompt: Some(&plan.prompt.text),
        token_ids: &token_ids,
        n_prompt: plan.prompt.ids.len(),
        finish_reason: finish,
        sampling: epikv_tasks::trace::Sampling {
            sample: plan.sample,
            seed: Some(args.model.seed),
            temperature: Some(args.sampling.temperature),
            top_p: Some(args.sampling.top_p),
        },
    };
    Ok(build_trace(trace_id, plan.problem, &generation, &model.tokenizer)?)
}

fn timing(trace: &Trace, ended: &Ended, batch: usize, threads: usize) -> TraceTiming {
    TraceTiming {
        trace_id: trace.trace_id.clone(),
        wall_s: ended.wall_s,
        n_forwarded: ended.n_forwarded as i64,
        n_decoded: ended.generated.len() as i64,
        batch: batch as i32,
        threads: threads as i32,
    }
}

fn summarise(args: &TraceArgs, traces: &[Trace], failures: &[String]) -> Result<()> {
    let graded = traces.iter().filter(|t| t.correct.is_some()).count();
    let correct = traces.iter().filter(|t| t.correct == Some(true)).count();
    let cut = traces.iter().filter(|t| matches!(t.finish_reason.as_str(), "length" | "context")).count();
    let answered = traces.iter().filter(|t| t.answer.is_some()).count();
    let mut err = crate::terminal::err();
    for failure in failures {
        writeln!(err, "failed: {failure}")?;
    }
    writeln!(
        err,
        "{} traces: {answered} with an answer, {correct} of {graded} graded are right, {cut} cut off, {} failed -> {}",
        traces.len(),
        failures.len(),
        args.out.display()
    )?;
    if args.model.json {
        let figures = json!({
            "n_traces": traces.len(), "n_answered": answered, "n_graded": graded, "n_correct": correct,
            "n_cut": cut, "n_failed": failures.len(), "out": args.out.display().to_string(),
        });
        writeln!(crate::terminal::out(), "{figures}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_lie_beside_the_traces() {
        assert_eq!(timings_name("traces.parquet"), "trace_timings.parquet");
        assert_eq!(timings_name("svamp.parquet"), "svamp_timings.parquet");
    }
}
