//! `epikv doctor`: describes this machine and this build, and checks the model and the grader.

use std::io::Write;

use anyhow::Result;
use epikv_model::Model;
use epikv_model::backend::OpenOptions;
use epikv_model::load::ModelRef;
use epikv_tasks::problem::read_problems;
use epikv_tasks::tiny::{Level, TinyProblem};
use serde_json::{Value, json};

use crate::check::Check;
use crate::cli::DoctorArgs;
use crate::golds;
use crate::output::Done;

/// Prints the checks.
pub(crate) fn run(args: &DoctorArgs) -> Result<Done> {
    let options = args.device.options()?;
    let mut checks = machine(&options);
    checks.push(model(&options));
    let built_in = golds::built_in();
    checks.push(golds::reflexive("built-in golds that are themselves in a box", &built_in));
    checks.push(golds::distinct(&built_in));
    let mut unlike = Vec::new();
    for path in &args.problems {
        let golds: Vec<String> = read_problems(path)?.into_iter().filter_map(|problem| problem.gold).collect();
        unlike.extend(golds.iter().filter(|gold| !golds::is_itself(gold)).cloned());
        checks.push(golds::reflexive("golds of a problem file that are themselves in a box", &golds));
    }
    let good = checks.iter().all(|check| check.good);
    let mut out = crate::terminal::out();
    if args.json {
        let checks: Vec<Value> = checks.iter().map(Check::json).collect();
        writeln!(out, "{}", json!({ "checks": checks, "checks_ok": good, "golds_unlike_themselves": unlike }))?;
    } else {
        let lines: String = checks.iter().map(Check::line).collect();
        write!(out, "{lines}")?;
        for gold in unlike {
            writeln!(out, "  not itself in a box: {gold:?}")?;
        }
    }
    Ok(if good { Done::All } else { Done::SomeFailed })
}

/// Facts that speed depends on, and results do not.
fn machine(options: &OpenOptions) -> Vec<Check> {
    let cores = std::thread::available_parallelism();
    vec![
        Check::fact("epikv", env!("CARGO_PKG_VERSION")),
        Check::fact("grader", epikv_grader::VERSION),
        Check::fact("system", format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH)),
        Check::fact("instruction set", epikv_kernels::instruction_set().name()),
        Check::fact("threads", cores.map_or_else(|error| error.to_string(), |n| n.to_string())),
        Check::fact("device", options.device.to_string()),
    ]
}

/// The built-in model loads, and its tokenizer gives back what it is given.
fn model(options: &OpenOptions) -> Check {
    let what = "the built-in model loads and its tokenizer is exact";
    let loaded = Model::open_with(&ModelRef::Tiny, options).and_then(|model| {
        let text = TinyProblem::generate(Level::Default, 0, 0).to_problem().problem;
        let exact = model.tokenizer.decode(&model.tokenizer.encode(&text, false)?)? == text;
        Ok((exact, format!("{}, {} layers", model.origin.id(), model.decoder.config().n_layers)))
    });
    match loaded {
        Ok((good, figure)) => Check { good, what, figure },
        Err(error) => Check { good: false, what, figure: error.to_string() },
    }
}
