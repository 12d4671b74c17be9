//! The measured part of the model's card: accuracy on fresh problems, and what each layer adds to the residual stream.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::linear::WeightFormat;
use epikv_model::load::ModelRef;
use epikv_model::taps::{ProbePlan, Reduce, TapPoint};
use epikv_model::{Device, Model, Tensor};
use epikv_tasks::tiny::{Level, TinyProblem};

use crate::{HELD_OUT_SEED, solve};

/// Problems of each level that are decoded greedily.
const N_PROBLEMS: u64 = 200;
/// Traces that the layers' shares are measured on.
const N_TRACES: u64 = 20;

/// Prints accuracy by level and the layers' shares, as Markdown.
pub(crate) fn print(folder: &Path) -> Result<()> {
    let reference = ModelRef::Folder(folder.to_owned());
    let model = Model::open(&reference, &Device::Cpu, WeightFormat::F32)?;
    let mut page = format!(
        "Greedy decoding of {N_PROBLEMS} problems a level that were never trained on (seed {HELD_OUT_SEED}):\n\n\
         | level | right | trace equal to the worked solution |\n| --- | --- | --- |\n"
    );
    for level in Level::ALL {
        let (right, exact) = accuracy(&model, level)?;
        writeln!(page, "| {} | {right} of {N_PROBLEMS} | {exact} of {N_PROBLEMS} |", level.name())?;
    }
    writeln!(
        page,
        "\nShare of each layer in the residual updates of {N_TRACES} default traces: mean over tokens of the norm of what \
         the layer\nadds, over the sum of these means.\n\n| layer | share |\n| --- | --- |"
    )?;
    for (layer, share) in shares(&model)?.into_iter().enumerate() {
        writeln!(page, "| {layer} | {share:.4} |")?;
    }
    std::io::Write::write_all(&mut std::io::stdout(), page.as_bytes())?;
    Ok(())
}

/// Problems whose box is filled rightly, and whose whole trace is the worked solution.
fn accuracy(model: &Model, level: Level) -> Result<(usize, usize)> {
    let problems: Vec<TinyProblem> =
        (0..N_PROBLEMS).map(|index| TinyProblem::generate(level, HELD_OUT_SEED, index)).collect();
    let (mut right, mut exact) = (0, 0);
    solve::greedily(model, &problems, |problem, generated| {
        right += usize::from(solve::is_right(problem, generated));
        exact += usize::from(generated == problem.solution());
    })?;
    Ok((right, exact))
}

fn shares(model: &Model) -> Result<Vec<f64>> {
    let n_layers = model.decoder.config().n_layers;
    let points: Vec<TapPoint> =
        std::iter::once(TapPoint::Embed).chain((0..n_layers).map(TapPoint::ResidPost)).collect();
    let plan = points.iter().fold(ProbePlan::default(), |plan, &point| plan.tap(point, Reduce::Full));
    let mut sums = vec![0.0; n_layers];
    for index in 0..N_TRACES {
        let problem = TinyProblem::generate(Level::Default, HELD_OUT_SEED, index);
        let mut cache = model.decoder.cache(Scope::Global, Capacity::Growing)?;
        let input = RowInput::next(&cache, [problem.prompt(), problem.solution()].concat(), LogitsOf::None);
        let output = model.decoder.forward(&[input], &mut [&mut cache], &plan)?;
        let states = points.iter().map(|&point| output.taps.get(point, Reduce::Full).context("a tap of the plan"));
        let states: Vec<&Tensor> = states.collect::<Result<_>>()?;
        for (sum, pair) in sums.iter_mut().zip(states.windows(2)) {
            let norms = (pair[1] - pair[0])?.sqr()?.sum(1)?.sqrt()?;
            *sum += f64::from(norms.mean_all()?.to_scalar::<f32>()?);
        }
    }
    let total: f64 = sums.iter().sum();
    Ok(sums.into_iter().map(|sum| sum / total).collect())
}
