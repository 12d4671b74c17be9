//! Trains the embedded model by a recipe, from where the last run of it stopped.
//!
//! ```text
//! RAYON_NUM_THREADS=1 cargo run --release --example train_tiny_reasoner -- examples/tiny-reasoner.toml FOLDER
//! ```
//!
//! `FOLDER` gets `state.safetensors` (weights, moments, step), `curve.csv` and, at each evaluation, `model/`, a folder
//! that every command takes as `--model`. Batch `n` is a function of seed and step alone, so a run that was stopped goes
//! on exactly where it was; phases that it has not reached yet may be changed meanwhile.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use epikv_model::Device;
use epikv_model::cache::{Capacity, Scope};
use epikv_model::config::{Architecture, ModelConfig, RopeScaling};
use epikv_model::linear::WeightFormat;
use epikv_model::load::ModelRef;
use epikv_model::sampler::{RandomStream, Sampling};
use epikv_model::session::{RowSpec, Session};
use epikv_model::train::{AdamWOptions, Checkpoint, Example, Score, Trainer, TrainerOptions, export_folder};
use epikv_tasks::tiny::lesson::Lesson;
use epikv_tasks::tiny::{Level, TinyProblem, vocabulary, write_tokenizer};
use serde::Deserialize;

/// Seed of the problems that are only ever evaluated on.
const HELD_OUT_SEED: u64 = 1_000_003;

/// Steps between lines of the curve.
const STEPS_A_LINE: usize = 20;

/// The whole recipe.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    seed: u64,
    n_threads: usize,
    rows_a_part: usize,
    answer_weight: f32,
    weight_decay: f32,
    minutes_a_checkpoint: f64,
    /// Held-out problems of each kind of evaluation: teacher-forced, and written by the model itself.
    n_scored: usize,
    n_generated: usize,
    minutes_an_evaluation: f64,
    model: Shape,
    phase: Vec<Phase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    hidden_size: usize,
    intermediate_size: usize,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    rope_theta: f64,
    max_positions: usize,
}

/// A stretch of training with one depth and one mixture of lessons.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Phase {
    name: String,
    n_layers: usize,
    n_steps: usize,
    /// Tokens of a batch, about.
    batch_tokens: usize,
    /// Lessons and their shares of the sequences.
    lessons: Vec<(String, f64)>,
    /// Learning rate at its beginning and at its end, joined by half a cosine.
    rates: (f64, f64),
    warm_up: usize,
    /// Level that is evaluated.
    evaluate: Option<String>,
}

impl Phase {
    fn learning_rate(&self, step: usize) -> f64 {
        let (from, to) = self.rates;
        let through = step as f64 / self.n_steps.max(1) as f64;
        let rate = to + (from - to) * 0.5 * (1.0 + (std::f64::consts::PI * through).cos());
        rate * ((step + 1) as f64 / self.warm_up.max(1) as f64).min(1.0)
    }

    /// Sequences of step `step`, until there are enough tokens.
    fn batch(&self, recipe: &Recipe, step: usize) -> Result<Vec<Example>> {
        const MOST_SEQUENCES: u64 = 1 << 12;
        let total: f64 = self.lessons.iter().map(|(_, share)| share).sum();
        let (mut batch, mut n_tokens, mut n) = (Vec::new(), 0, 0);
        while n_tokens < self.batch_tokens {
            let index = step as u64 * MOST_SEQUENCES + n;
            let mut u = RandomStream { seed: recipe.seed, problem: index, sample: 200 }.uniform(0) * total;
            let lesson = self.lessons.iter().find(|(_, share)| {
                u -= share;
                u < 0.0
            });
            let (name, _) = lesson.or(self.lessons.last()).context("a phase without lessons")?;
            let lesson = Lesson::from_name(name).with_context(|| format!("unknown lesson {name}"))?;
            let (tokens, weights) = lesson.sequence(recipe.seed, index, recipe.answer_weight);
            n_tokens += tokens.len();
            batch.push(Example { tokens, weights });
            n += 1;
        }
        Ok(batch)
    }
}

impl Recipe {
    fn config(&self, n_layers: usize) -> ModelConfig {
        let shape = &self.model;
        ModelConfig {
            architecture: Architecture::Llama,
            vocab_size: vocabulary::TOKENS.len(),
            hidden_size: shape.hidden_size,
            n_layers,
            n_heads: shape.n_heads,
            n_kv_heads: shape.n_kv_heads,
            head_dim: shape.head_dim,
            intermediate_size: shape.intermediate_size,
            rms_norm_eps: 1e-5,
            tie_word_embeddings: true,
            qkv_bias: false,
            out_bias: false,
            mlp_bias: false,
            qk_norm: false,
            rope_theta: shape.rope_theta,
            rope_scaling: RopeScaling::Default,
            max_positions: shape.max_positions,
            bos_id: Some(vocabulary::BOS),
            eos_ids: vec![vocabulary::EOS],
            pad_id: Some(vocabulary::PAD),
        }
    }

    fn options(&self) -> TrainerOptions {
        let optimiser = AdamWOptions { weight_decay: self.weight_decay, ..AdamWOptions::default() };
        TrainerOptions { n_threads: self.n_threads, rows_a_part: self.rows_a_part, optimiser }
    }

    /// The phase that a step belongs to, and how many steps of it came before.
    fn phase(&self, step: usize) -> Option<(&Phase, usize)> {
        let mut first = 0;
        self.phase.iter().find_map(|phase| {
            let within = step - first;
            first += phase.n_steps;
            (step < first).then_some((phase, within))
        })
    }
}

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
        let specs = problems.iter().enumerate().map(|(key, problem)| {
            Ok(RowSpec {
                key,
                context: problem.prompt(),
                cache: model.decoder.cache(Scope::Global, Capacity::Growing)?,
                max_new: problem.solution().len() + 64,
                stop_ids: model.stop_ids(),
                sampling: Sampling::Greedy,
            })
        });
        let mut n_right = 0;
        Session::new(&model.decoder).run(specs, 32, |row| {
            let problem = &problems[row.key];
            let ending =
                [vocabulary::BOX_START, vocabulary::digit(problem.gold()), vocabulary::BOX_END, vocabulary::EOS];
            n_right += usize::from(row.generated.ends_with(&ending));
            Ok::<(), epikv_model::Error>(())
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
    let [recipe, folder] = arguments.as_slice() else { bail!("usage: train_tiny_reasoner RECIPE.toml FOLDER") };
    let text = fs::read_to_string(recipe).with_context(|| format!("reading {recipe}"))?;
    let recipe: Recipe = toml::from_str(&text).with_context(|| format!("reading {recipe}"))?;
    Run::open(recipe, Path::new(folder).to_owned())?.train()
}
