//! The golden numbers of the repository pass, and a wrong one among them does not.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use epikv_model::backend::DeviceName;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::check::Outcome;
use crate::{models, read, run};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn every_golden_number_is_met() -> Result<()> {
    let outcome = run(&golden("parity"), None, DeviceName::Cpu)?;
    assert!(outcome.failures().is_empty(), "{:#?}", outcome.failures());
    let passed = |kind| outcome.n_passed(kind);
    let counts = ["models", "kvpress", "kvpress_decode", "epikv", "vase", "originals"].map(passed);
    assert_eq!(counts, COUNTS);
    Ok(())
}

/// Cases that pass, by kind: one that stops being run is noticed.
const COUNTS: [usize; 6] = [34, 40, 1, 25, 13, 12];

#[test]
fn every_model_with_reference_numbers_is_met() -> Result<()> {
    for device in [DeviceName::Cpu, DeviceName::Tensor] {
        let mut outcome = Outcome::default();
        outcome.start("models");
        models::run_all(&golden("model"), device, &mut outcome)?;
        models::run(&golden("parity"), device, &mut outcome)?;
        assert!(outcome.failures().is_empty(), "{device}: {:#?}", outcome.failures());
        assert!(outcome.n_passed("models") >= 14 * 4, "{device}: {}", outcome.n_passed("models"));
    }
    Ok(())
}

/// Files that cases need beside their own.
const BESIDE: &[&str] = &[
    "models/llama/config.json",
    "models/llama/model.safetensors",
    "kvpress_llama.safetensors",
    "vase_inputs.safetensors",
];

/// A wrong number: kind and file, what of the file is kept, so that little is run, and which number becomes another.
struct Planted {
    kind: &'static str,
    file: &'static str,
    /// A list and the index of the only member that stays, or an object and the name.
    only: &'static [(&'static str, &'static str)],
    number: &'static str,
}

const fn planted(
    kind: &'static str,
    file: &'static str,
    only: &'static [(&'static str, &'static str)],
    number: &'static str,
) -> Planted {
    Planted { kind, file, only, number }
}

const HF: &str = "models/llama/hf.json";
const KVPRESS: &str = "kvpress.json.gz";
const DECODE: &str = "kvpress_decode.json.gz";
const EPIKV: &str = "epikv.json.gz";
const VASE: &str = "vase.json.gz";
const ORIGINALS: &str = "originals.json.gz";

const WRONG: [Planted; 20] = [
    planted("models", HF, &[("/sequences", "0")], "/sequences/0/logits/1/37"),
    planted("models", HF, &[("/sequences", "0")], "/sequences/0/resid_post/3/l2"),
    planted("models", HF, &[("/sequences", "0")], "/sequences/0/key_pre_rope_last/2/1/5"),
    planted("models", HF, &[("/sequences", "0")], "/sequences/0/attn_last_row/0/2/9"),
    planted("models", HF, &[("/sequences", "0")], "/sequences/0/greedy/40"),
    planted("kvpress", KVPRESS, KNORM, "/models/llama/presses/knorm/scores/3/1/100"),
    planted("kvpress", KVPRESS, KNORM, "/models/llama/presses/knorm/ratios/0.5/kept/2/0/50"),
    planted("kvpress", KVPRESS, KNORM, "/models/llama/presses/knorm/ratios/0.25/decode/fed/11"),
    planted("kvpress", KVPRESS, TOVA, "/models/llama/presses/tova/ratios/0.5/decode/margin/7"),
    planted("kvpress", KVPRESS, TOVA, "/models/llama/presses/tova/ratios/0.25/decode/after_first/l2"),
    planted("kvpress_decode", DECODE, &[("/presses", "knorm")], "/presses/knorm/compressions/4/kept_slot_order/1/1/9"),
    planted("epikv", EPIKV, &[("/runs", "3")], "/runs/0/steps/80/score"),
    planted("epikv", EPIKV, &[("/runs", "3")], "/runs/0/steps/100/dropped/0"),
    planted("epikv", EPIKV, &[("/runs", "0")], "/runs/0/steps/20/value_range/2"),
    planted("epikv", EPIKV, &[("/runs", "0")], "/runs/0/last_logits_l2"),
    planted("epikv", EPIKV, &[("/runs", "0")], "/units/rolling_z_score/4/z/77"),
    planted("vase", VASE, &[("/cases", "0")], "/cases/0/flushes/0/topk_inputs/0/scores/1/30"),
    planted("vase", VASE, &[("/cases", "5")], "/cases/0/flushes/0/kept_sorted/0/60"),
    planted("vase", VASE, &[("/cases", "0")], "/rkv_original/1/redundancy_all_positions/0/17"),
    planted("originals", ORIGINALS, &[("/policies", "snapkv")], "/policies/snapkv/runs/4/pooled_scores/3/12"),
];

const KNORM: &[(&str, &str)] = &[("/models/llama/presses", "knorm")];
const TOVA: &[(&str, &str)] = &[("/models/llama/presses", "tova")];

/// Keeps one member of a list or object.
fn keep_only(value: &mut Value, at: &str, member: &str) -> Result<()> {
    match value.pointer_mut(at).with_context(|| at.to_owned())? {
        Value::Array(items) => {
            let one = items.swap_remove(member.parse()?);
            *items = vec![one];
        }
        Value::Object(members) => members.retain(|name, _| name == member),
        other => *other = Value::Null,
    }
    Ok(())
}

/// A folder with a smaller copy of one file, in which one number is wrong where asked for.
fn copy_with(wrong: &Planted, plant: bool) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for name in BESIDE {
        let to = folder.path().join(name);
        fs::create_dir_all(to.parent().context("a folder")?)?;
        fs::copy(golden("parity").join(name), to)?;
    }
    let mut value = read::json(&golden("parity").join(wrong.file))?;
    for (at, member) in wrong.only {
        keep_only(&mut value, at, member)?;
    }
    // It needs a case that may be left out.
    value.as_object_mut().context("an object")?.remove("inclusion");
    if plant {
        let number = value.pointer_mut(wrong.number).with_context(|| wrong.number.to_owned())?;
        // Another token or position, or a value that is off by a thousandth of 1.
        *number = match number.as_u64() {
            Some(count) => Value::from(if count > 0 { count - 1 } else { 1 }),
            None => Value::from(number.as_f64().with_context(|| wrong.number.to_owned())? + 1e-3),
        };
    }
    let file = File::create(folder.path().join(wrong.file))?;
    if Path::new(wrong.file).extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(file, Compression::fast());
        serde_json::to_writer(&mut packed, &value)?;
        packed.finish()?.flush()?;
    } else {
        serde_json::to_writer(file, &value)?;
    }
    Ok(folder)
}

#[test]
fn each_of_twenty_wrong_numbers_is_noticed() -> Result<()> {
    for wrong in &WRONG {
        let kind = Some(wrong.kind);
        let right = run(copy_with(wrong, false)?.path(), kind, DeviceName::Cpu)?;
        assert!(right.failures().is_empty(), "{}: {:?}", wrong.number, right.failures());
        assert!(right.n_passed(wrong.kind) > 0, "{}", wrong.number);
        let outcome = run(copy_with(wrong, true)?.path(), kind, DeviceName::Cpu)?;
        let failures = outcome.failures();
        assert!(failures.first().is_some_and(|failure| failure.contains("expected")), "{}: {failures:?}", wrong.number);
    }
    Ok(())
}

#[test]
fn what_the_toolkit_lacks_is_neither_passed_nor_failed() -> Result<()> {
    let lacking = planted("kvpress", KVPRESS, &[("/models/llama/presses", "expected_attention")], "");
    let outcome = run(copy_with(&lacking, false)?.path(), Some("kvpress"), DeviceName::Cpu)?;
    let mut printed = Vec::new();
    outcome.print(&mut printed)?;
    let printed = String::from_utf8(printed)?;
    assert!(printed.ends_with("0 passed, 0 failed, 4 not implemented\n"), "{printed}");
    Ok(())
}

#[test]
fn a_folder_without_cases_is_an_error() -> Result<()> {
    let empty = tempfile::tempdir()?;
    let run = |folder: &Path, kind| run(folder, kind, DeviceName::Cpu);
    assert!(run(empty.path(), None).is_err() && run(&golden("parity"), Some("kv-press")).is_err());
    Ok(())
}
