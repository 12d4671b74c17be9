//! The house has floors: a crate uses only the crates that docs/layout.md gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// What each crate may use of ours.
const ALLOWED: &[(&str, &[&str])] = &[
    ("words", &[]),
    ("kernels", &[]),
    ("figures", &[]),
    ("schemas", &["words"]),
    ("stats", &["words"]),
    ("grader", &["words"]),
    ("model", &["words", "kernels"]),
    ("tasks", &["words", "schemas", "grader", "model"]),
    ("signals", &["words", "model", "stats"]),
    // Kernels: its operations compute their values with those of the decoder.
    ("train", &["kernels", "model", "tasks"]),
    ("labeler", &["words", "schemas", "stats", "grader", "tasks", "model"]),
    ("analyzer", &["words", "schemas", "stats", "figures", "tasks", "model", "signals"]),
    ("eviction", &["words", "schemas", "stats", "figures", "grader", "tasks", "model", "signals"]),
    ("notebooks-export", &["schemas", "stats", "figures"]),
];

/// Which crates may depend on some outside crates at all.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("candle-core", &["model", "kernels"]),
    ("candle-nn", &["model", "kernels"]),
    ("parquet", &["schemas"]),
    ("arrow", &["schemas"]),
    ("tokenizers", &["model"]),
    ("resvg", &["figures"]),
];

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn dependencies(package: &Value) -> impl Iterator<Item = (&str, bool)> {
    let all = package["dependencies"].as_array().expect("dependencies");
    all.iter().map(|d| (d["name"].as_str().expect("a name"), d["kind"].as_str() == Some("dev")))
}

#[test]
fn no_crate_uses_more_of_ours_than_its_floor_allows() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        ALLOWED.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let mut seen = BTreeSet::new();
    for package in packages() {
        let name = package["name"].as_str().expect("a name").to_owned();
        let Some(short) = name.strip_prefix("epikv-") else { continue };
        let uses = allowed.get(short).unwrap_or_else(|| panic!("{name} has no floor: add it to tests/floors.rs"));
        for (dependency, _) in dependencies(&package) {
            if let Some(other) = dependency.strip_prefix("epikv-") {
                assert!(uses.contains(other), "{name} depends on {dependency}, which its floor does not allow");
            }
        }
        seen.insert(short.to_owned());
    }
    assert_eq!(seen.len(), ALLOWED.len(), "every crate of the table exists: {seen:?}");
}

#[test]
fn heavy_outside_crates_stay_where_they_belong() {
    let mut unseen: BTreeSet<&str> = ONLY_IN.iter().map(|(guarded, _)| *guarded).collect();
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        for (dependency, dev) in dependencies(&package) {
            for (guarded, homes) in ONLY_IN {
                if dependency == *guarded && !dev {
                    unseen.remove(guarded);
                    let short = name.strip_prefix("epikv-").unwrap_or(name);
                    assert!(homes.contains(&short), "{name} depends on {dependency}, which belongs to {homes:?}");
                }
            }
        }
    }
    assert!(unseen.is_empty(), "rules for crates that nothing depends on: {unseen:?}");
}

#[test]
fn unsafe_code_lives_in_one_crate() {
    for package in packages() {
        let manifest = package["manifest_path"].as_str().expect("a path");
        let text = std::fs::read_to_string(manifest).expect("a manifest");
        let inherits = text.contains("[lints]\nworkspace = true");
        assert_eq!(inherits, package["name"] != "epikv-kernels", "{manifest}: workspace lints forbid unsafe code");
    }
}
