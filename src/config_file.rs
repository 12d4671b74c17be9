//! `--config FILE.toml`: keys are flag names; flags on the command line win; unknown keys are errors.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A configuration file is a page of flags; more is a mistake.
const LIMIT: u64 = 1 << 20;

/// Puts the flags of a configuration file right after the subcommand, before those that were typed.
///
/// So the parser treats them alike: a later flag replaces an earlier one, and an unknown key is an unknown flag.
pub(crate) fn with_config_file(args: Vec<OsString>) -> Result<Vec<OsString>> {
    let Some(path) = config_path(&args) else { return Ok(args) };
    let text = epikv_schemas::fs::read_text(Path::new(&path), LIMIT)?;
    let table: toml::Table = text.parse().with_context(|| format!("{} is not TOML", Path::new(&path).display()))?;
    let mut from_file = Vec::new();
    for (key, value) in table {
        let flag = format!("--{}", key.replace('_', "-"));
        match value {
            toml::Value::Boolean(true) => from_file.push(flag.into()),
            toml::Value::Boolean(false) => {}
            toml::Value::String(text) => from_file.extend([flag.into(), text.into()]),
            toml::Value::Integer(_) | toml::Value::Float(_) => {
                from_file.extend([flag.into(), value.to_string().into()]);
            }
            toml::Value::Array(items) => {
                let items: Vec<String> =
                    items.iter().map(|i| i.as_str().map_or_else(|| i.to_string(), str::to_owned)).collect();
                from_file.extend([flag.into(), items.join(",").into()]);
            }
            other => bail!(
                "{}: {key}: expected text, number, true, false or a list, got {}",
                Path::new(&path).display(),
                other.type_str()
            ),
        }
    }
    // After the subcommand, the first word that is no flag.
    let at = args.iter().skip(1).position(|a| !a.to_string_lossy().starts_with('-')).map_or(args.len(), |i| i + 2);
    Ok(args[..at].iter().cloned().chain(from_file).chain(args[at..].iter().cloned()).collect())
}

fn config_path(args: &[OsString]) -> Option<OsString> {
    let at = args.iter().position(|a| a == "--config");
    let joined = args.iter().find_map(|a| a.to_str()?.strip_prefix("--config=").map(OsString::from));
    at.and_then(|i| args.get(i + 1).cloned()).or(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn flags_of_the_file_come_before_those_typed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        std::fs::write(&path, "batch = 4\nfresh = true\nquiet = false\nmodel = 'random:1'\n").unwrap();
        let path = path.to_str().unwrap();
        let got = with_config_file(args(&["epikv", "label", "--config", path, "--batch", "8"])).unwrap();
        let want = args(&[
            "epikv", "label", "--batch", "4", "--fresh", "--model", "random:1", "--config", path, "--batch", "8",
        ]);
        assert_eq!(got, want);
    }

    #[test]
    fn no_file_no_change() {
        assert_eq!(with_config_file(args(&["epikv", "label"])).unwrap(), args(&["epikv", "label"]));
        assert!(with_config_file(args(&["epikv", "label", "--config", "no-such.toml"])).is_err());
    }
}
