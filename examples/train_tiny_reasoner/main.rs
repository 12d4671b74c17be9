//! Trains the embedded model by a recipe, from where the last run of it stopped.
//!
//! ```text
//! RAYON_NUM_THREADS=1 cargo run --release --example train_tiny_reasoner -- examples/tiny-reasoner.toml FOLDER
//! ```
//!
//! With `card MODEL_FOLDER` in place of both it prints the measured part of the model's card.
//!
//! `FOLDER` gets `state.safetensors` (weights, moments, step), `curve.csv` and, at each evaluation, `model/`, a folder
//! that every command takes as `--model`. Batch `n` is a function of seed and step alone, so a run that was stopped goes
//! on exactly where it was; phases that it has not reached yet may be changed meanwhile.

mod card;
mod recipe;
mod solve;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use epikv_model::Device;
use epikv_model::linear::WeightFormat;
use epikv_model::load::ModelRef;
use epikv_tasks::tiny::lesson::Lesson;
use epikv_tasks::tiny::{Level, TinyProblem, vocabulary, write_tokenizer};
use epikv_train::{Checkpoint, Example, Score, Trainer, export_folder};

use crate::recipe::Recipe;

/// Seed of the problems that are only ever evaluated on.
const HELD_OUT_SEED: u64 = 1_000_003;

/// Steps between lines of the curve.
const STEPS_A_LINE: usize = 20;

/// A run: the recipe, the model and the folder.
struct Run {
    recipe: Recipe,
    trainer: Trainer,
    folder: PathBuf,
}

impl Run {
    fn open(recipe: Recipe, folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let first = recipe.phase.first().context("a recipe without phases")?;
        let state = folder.join("state.safetensors");
        let config = recipe.config(first.n_layers);
        let trainer = if state.exists() {
            Checkpoint::load(&state, &config, recipe.options())?
        } else {
            Trainer::new(config, recipe.seed, recipe.options())?
        };
        Ok(Self { recipe, trainer, folder })
    }

    fn train(&mut self) -> Result<()> {
        let (mut saved, mut evaluated) = (Instant::now(), Instant::now());
        let (mut window, mut began, mut n_read) = (Score::default(), Instant::now(), 0_usize);
        while let Some((phase, within)) = self.recipe.phase(self.trainer.n_steps()) {
            if phase.n_layers > self.trainer.config().n_layers {
                Checkpoint::save(&self.trainer, &self.folder.join("before-growth.safetensors"), true)?;
                self.trainer.grow(phase.n_layers)?;
            }
            let batch = phase.batch(&self.recipe, self.trainer.n_steps())?;
            n_read += batch.iter().map(|e| e.tokens.len()).sum::<usize>();
            let report = self.trainer.step(&batch, phase.learning_rate(within))?;
            window.add(&report.score);
            let (step, level, name) = (self.trainer.n_steps(), phase.evaluate.clone(), phase.name.clone());
            let ends = within + 1 == phase.n_steps;
            if step.is_multiple_of(STEPS_A_LINE) {
                let line = [
                    step.to_string(),
                    name,
                    format!("{:.5}", window.mean_loss().unwrap_or(f64::NAN)),
                    format!("{:.5}", window.accuracy().unwrap_or(f64::NAN)),
                    format!("{:.3}", report.gradient_norm),
                    format!("{:.0}", n_read as f64 / began.elapsed().as_secs_f64()),
                ];
                self.log("curve.csv", "step,phase,loss,token_accuracy,gradient_norm,tokens_a_second", &line)?;
                (window, began, n_read) = (Score::default(), Instant::now(), 0);
            }
            if saved.elapsed() > minutes(self.recipe.minutes_a_checkpoint) || ends {
                Checkpoint::save(&self.trainer, &self.folder.join("state.safetensors"), true)?;
                saved = Instant::now();
            }
            if let Some(level) = level
                && (evaluated.elapsed() > minutes(self.recipe.minutes_an_evaluation) || ends)
            {
                self.evaluate(&level)?;
                evaluated = Instant::now();
                began = Instant::now();
                n_read = 0;
            }
        }
        Ok(())
    }

    /// Held-out problems: each token given the right ones before it, and the whole trace written by the model.
    fn evaluate(&self, level: &str) -> Result<()> {
        let level = Level::from_name(level).with_context(|| format!("unknown level {level}"))?;
        let problem = |i: usize| TinyProblem::generate(level, HELD_OUT_SEED, i as u64);
        let examples: Vec<Example> = (0..self.recipe.n_scored)
            .map(|i| {
                let (tokens, weights) = Lesson::Problem(level).sequence(HELD_OUT_SEED, i as u64, 1.0);
                Example { tokens, weights }
            })
            .collect();
        let predicted = self.trainer.predicted(&examples)?;
        let (mut right, mut known, mut answers, mut answers_right, mut whole) = (0, 0, 0, 0, 0);
        for (example, row) in examples.iter().zip(&predicted) {
            let boundary = example.tokens.iter().position(|id| *id == vocabulary::THINK_END).unwrap_or(0);
            let count =
                |row: &[Option<bool>]| (row.iter().flatten().filter(|r| **r).count(), row.iter().flatten().count());
            let ((r, n), (answer_r, answer_n)) = (count(row), count(&row[boundary..]));
            right += r;
            known += n;
            answers_right += answer_r;
            answers += answer_n;
            whole += usize::from(r == n);
        }
        let problems: Vec<TinyProblem> = (0..self.recipe.n_generated).map(problem).collect();
        let generated = self.generate(&problems)?;
        let share = |n: usize, of: usize| format!("{:.4}", n as f64 / of.max(1) as f64);
        let line = [
            self.trainer.n_steps().to_string(),
            level.name().to_owned(),
            self.trainer.config().n_layers.to_string(),
            share(right, known),
            share(answers_right, answers),
            share(whole, examples.len()),
            share(generated, problems.len()),
        ];
        let head = "step,level,layers,token_accuracy,answer_token_accuracy,trace_exact,greedy_answer_right";
        self.log("evaluations.csv", head, &line)
    }

    /// Exports the model and counts the problems whose box it fills rightly, decoding greedily.
    fn generate(&self, problems: &[TinyProblem]) -> Result<usize> {
        let folder = self.folder.join("model");
        export_folder(&self.trainer, &folder, true)?;
        write_tokenizer(&folder)?;
        let model = epikv_model::Model::open(&ModelRef::Folder(folder), &Device::Cpu, WeightFormat::F32)?;
        let mut n_right = 0;
        solve::greedily(&model, problems, |problem, generated| {
            n_right += usize::from(solve::is_right(problem, generated));
        })?;
        Ok(n_right)
    }

    /// Adds a line to a table and to the log.
    fn log(&self, file: &str, head: &str, line: &[String]) -> Result<()> {
        let path = self.folder.join(file);
        let is_new = !path.exists();
        let mut out = OpenOptions::new().create(true).append(true).open(&path)?;
        if is_new {
            writeln!(out, "{head}")?;
        }
        writeln!(out, "{}", line.join(","))?;
        writeln!(std::io::stderr(), "{file}: {}", line.join(" "))?;
        Ok(())
    }
}

fn minutes(n: f64) -> Duration {
    Duration::from_secs_f64(60.0 * n)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [recipe, folder] = arguments.as_slice() else {
        bail!("usage: train_tiny_reasoner RECIPE.toml FOLDER | card MODEL_FOLDER")
    };
    if recipe == "card" {
        return card::print(Path::new(folder));
    }
    let text = fs::read_to_string(recipe).with_context(|| format!("reading {recipe}"))?;
    let recipe: Recipe = toml::from_str(&text).with_context(|| format!("reading {recipe}"))?;
    Run::open(recipe, Path::new(folder).to_owned())?.train()
}
