//! The training forward against the decoder, gradients against differences, growth, and resuming.

use super::*;
use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::config::{Architecture, ModelConfig, RopeScaling};
use epikv_model::decoder::Decoder;
use epikv_model::error::Result;
use epikv_model::linear::WeightFormat;
use epikv_model::load::{ModelRef, open};
use epikv_model::taps::ProbePlan;

/// Two layers.
const ATOL_LOGITS: f32 = 1e-4;

fn config() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Llama,
        vocab_size: 19,
        hidden_size: 16,
        n_layers: 2,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 4,
        intermediate_size: 24,
        rms_norm_eps: 1e-5,
        tie_word_embeddings: true,
        qkv_bias: false,
        out_bias: false,
        mlp_bias: false,
        qk_norm: false,
        rope_theta: 10_000.0,
        rope_scaling: RopeScaling::Default,
        max_positions: 256,
        bos_id: Some(1),
        eos_ids: vec![2],
        pad_id: Some(0),
    }
}

fn trainer() -> Result<Trainer> {
    let mut trainer = Trainer::new(config(), 3, TrainerOptions { rows_a_part: 100, ..TrainerOptions::default() })?;
    // Norms of 1 and a small embedding would hide mistakes.
    trainer.weights.iter_mut().enumerate().for_each(|(i, w)| *w = *w * 2.0 + ((i * 7 % 11) as f32 - 5.0) * 0.01);
    Ok(trainer)
}

/// Longer than a block of queries, shorter, and of one row.
fn examples() -> Vec<Example> {
    let example =
        |n: u32, seed: u32| Example::predict_from((0..n).map(|i| (i * i * 5 + i * seed + seed) % 19).collect(), 2);
    vec![example(90, 1), example(30, 2), example(2, 4), example(70, 3)]
}

fn loss(trainer: &Trainer, examples: &[Example]) -> Result<f64> {
    Ok(trainer.gradient(examples, 1.0)?.1.loss)
}

#[test]
fn logits_are_those_of_the_decoder_on_the_exported_folder() -> Result<()> {
    let trainer = trainer()?;
    let folder = tempfile::tempdir().unwrap();
    export_folder(&trainer, folder.path(), false)?;
    let (config, weights, _) = open(&ModelRef::Folder(folder.path().to_owned()))?;
    let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32)?;
    let examples = examples();
    let packed = crate::example::Packed::new(&examples);
    let ours = trainer.logits(&packed)?;
    let mut first = 0;
    for example in &examples {
        let n = example.tokens.len() - 1;
        let mut cache = decoder.cache(Scope::Global, Capacity::Growing)?;
        let row = RowInput::next(&cache, example.tokens[..n].to_vec(), LogitsOf::LastN(n));
        let theirs = decoder.forward(&[row], &mut [&mut cache], &ProbePlan::default())?.logits.expect("wanted");
        let worst = (ours.narrow(0, first, n)? - theirs)?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
        assert!(worst < ATOL_LOGITS, "{worst:e}");
        first += n;
    }
    Ok(())
}

/// Along a direction that touches every weight, and along one parameter at a time.
#[test]
fn gradients_are_those_of_differences() -> Result<()> {
    let mut trainer = trainer()?;
    let examples = examples();
    let (gradient, _) = trainer.gradient(&examples, 1.0)?;
    let start = trainer.weights.clone();
    for parameter in trainer.layout.parameters().to_vec() {
        let range = parameter.offset..parameter.offset + parameter.len();
        let norm = gradient[range.clone()].iter().map(|g| g * g).sum::<f32>().sqrt();
        let along = |trainer: &mut Trainer, step: f32| {
            trainer.weights.copy_from_slice(&start);
            for i in range.clone() {
                trainer.weights[i] += step * gradient[i] / norm;
            }
            loss(trainer, &examples)
        };
        // Long enough to stand above rounding, short enough for a straight line.
        let h = (0.2 / norm).min(2e-3);
        let slope = (along(&mut trainer, h)? - along(&mut trainer, -h)?) / f64::from(2.0 * h);
        let relative = (slope / f64::from(norm) - 1.0).abs();
        assert!(relative < 0.02, "{}: slope {slope}, gradient {norm}", parameter.name);
    }
    Ok(())
}

#[test]
fn a_step_does_not_depend_on_threads_and_training_learns() -> Result<()> {
    let run = |n_threads: usize| -> Result<(Trainer, f64)> {
        let options = TrainerOptions { n_threads, rows_a_part: 100, ..TrainerOptions::default() };
        let mut trainer = Trainer::new(config(), 3, options)?;
        let mut last = f64::NAN;
        for _ in 0..30 {
            last = trainer.step(&examples(), 1e-2)?.score.mean_loss().expect("weights");
        }
        Ok((trainer, last))
    };
    let ((one, last), (three, _)) = (run(1)?, run(3)?);
    assert_eq!(one.weights, three.weights);
    assert!(last < 2.0, "{last}");
    Ok(())
}

#[test]
fn growing_nearly_keeps_the_function_and_all_layers_learn() -> Result<()> {
    let mut trainer = trainer()?;
    let examples = examples();
    let before = loss(&trainer, &examples)?;
    trainer.grow(5)?;
    let grown = loss(&trainer, &examples)?;
    assert!((grown - before).abs() < 0.05 * before, "{before} became {grown}");
    let (gradient, _) = trainer.gradient(&examples, 1.0)?;
    for parameter in trainer.layout.parameters().iter().filter(|p| p.name.ends_with("out") || p.name.ends_with("down"))
    {
        assert!(parameter.of(&gradient).iter().any(|g| *g != 0.0), "{}", parameter.name);
    }
    assert!(trainer.grow(4).is_err());
    Ok(())
}

#[test]
fn a_resumed_run_gives_the_same_bits() -> Result<()> {
    let mut trainer = trainer()?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.safetensors");
    trainer.grow(3)?;
    trainer.step(&examples(), 1e-3)?;
    Checkpoint::save(&trainer, &path, true)?;
    let options = TrainerOptions { rows_a_part: 100, ..TrainerOptions::default() };
    let mut resumed = Checkpoint::load(&path, &config(), options)?;
    assert_eq!((resumed.n_steps(), resumed.config().n_layers), (1, 3));
    trainer.step(&examples(), 1e-3)?;
    resumed.step(&examples(), 1e-3)?;
    assert_eq!(trainer.weights, resumed.weights);

    Checkpoint::save(&trainer, &path, false)?;
    assert_eq!(Checkpoint::load(&path, &config(), options)?.weights, trainer.weights);
    let wider = ModelConfig { hidden_size: 32, ..config() };
    assert!(Checkpoint::load(&path, &wider, options).is_err());
    Ok(())
}
