//! Problems through a model, greedily.

use epikv_model::cache::{Capacity, Scope};
use epikv_model::sampler::Sampling;
use epikv_model::session::{RowSpec, Session};
use epikv_model::{Model, Result};
use epikv_tasks::tiny::TinyProblem;

/// Rows that run together.
const BATCH: usize = 32;
/// New tokens beyond the worked solution.
const MORE_TOKENS: usize = 64;
/// `\\boxed{`, two digits, `}`, end of sequence.
const BOX_TOKENS: usize = 5;

/// Decodes each problem; `done` gets it with what was generated.
pub(crate) fn greedily(
    model: &Model,
    problems: &[TinyProblem],
    mut done: impl FnMut(&TinyProblem, &[u32]),
) -> Result<()> {
    let specs = problems.iter().enumerate().map(|(key, problem)| {
        Ok(RowSpec {
            key,
            context: problem.prompt(),
            cache: model.decoder.cache(Scope::Global, Capacity::Growing)?,
            max_new: problem.solution().len() + MORE_TOKENS,
            stop_ids: model.stop_ids(),
            sampling: Sampling::Greedy,
            draft: [].into(),
        })
    });
    Session::new(&model.decoder).run(specs, BATCH, |row| {
        done(&problems[row.key], &row.generated);
        Ok(())
    })
}

/// Whether the box is filled rightly.
pub(crate) fn is_right(problem: &TinyProblem, generated: &[u32]) -> bool {
    let solution = problem.solution();
    generated.ends_with(&solution[solution.len() - BOX_TOKENS..])
}
