//! The gold answers of real data sets: each is the same as itself in a box, and two different ones are the same only
//! where they are on the list of pairs that were looked at. Skipped where the data folder is absent.

use std::collections::BTreeSet;
use std::path::Path;

use epikv_grader::{Mode, compare, extract};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Pairs compared per file at most.
const MOST_PAIRS: u64 = 100_000;

/// A file name and its distinct golds.
type Golds = (String, Vec<String>);

fn golds() -> Result<Vec<Golds>, Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let mut files = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(files);
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|ext| ext != "jsonl") {
            continue;
        }
        let mut set = BTreeSet::new();
        for line in std::fs::read_to_string(&path)?.lines() {
            let row: serde_json::Value = serde_json::from_str(line)?;
            // One file holds a row whose gold is empty.
            let gold = row["answer"].as_str().or_else(|| row["gold"].as_str());
            set.extend(gold.filter(|gold| !gold.trim().is_empty()).map(str::to_owned));
        }
        if !set.is_empty() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, set.into_iter().collect()));
        }
    }
    files.sort();
    Ok(files)
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn skipped(files: &[Golds]) -> bool {
    if files.is_empty() {
        eprintln!("skipped: the shared data folder is absent");
    }
    files.is_empty()
}

#[test]
fn every_gold_is_itself_in_a_box() -> Outcome {
    let files = golds()?;
    if skipped(&files) {
        return Ok(());
    }
    for (file, golds) in files {
        for gold in golds {
            let text = format!("So the answer is $\\boxed{{{gold}}}$.");
            for mode in [Mode::Strict, Mode::Lenient] {
                let found = extract(&text, mode).ok_or_else(|| format!("{file}: nothing found in {text}"))?;
                let comparison = compare(&found.answer, &gold, mode);
                assert!(comparison.verdict.is_same(), "{file}: {gold}: {}", comparison.explanation);
            }
        }
    }
    Ok(())
}

#[test]
fn different_golds_differ_unless_equal() -> Outcome {
    let files = golds()?;
    if skipped(&files) {
        return Ok(());
    }
    let listed = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/equal_golds.txt"))?;
    let listed: BTreeSet<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
    let mut unlisted = Vec::new();
    for (file, golds) in files {
        let all = (golds.len() as u64) * (golds.len() as u64).saturating_sub(1) / 2;
        let keep = MOST_PAIRS.min(all).max(1);
        let mut state = 7u64;
        for (k, a) in golds.iter().enumerate() {
            for b in &golds[..k] {
                // A fixed sample: one of every `all / keep` pairs, by a linear congruence.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if !(state >> 33).is_multiple_of(all.div_ceil(keep)) {
                    continue;
                }
                let line = format!("{} ## {}", b.trim(), a.trim()).replace('\n', " ");
                if compare(a, b, Mode::Lenient).verdict.is_same() && !listed.contains(line.as_str()) {
                    unlisted.push(format!("{file}: {line}"));
                }
            }
        }
    }
    assert!(unlisted.is_empty(), "same, and not on the list:\n{}", unlisted.join("\n"));
    Ok(())
}
