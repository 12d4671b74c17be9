//! `--config FILE.toml`: keys are flag names; flags on the command line win; unknown keys are errors.
//!
//! A list is a flag's values, and a table is what a flag takes as `part=value;part=value`, so that policies can be written
//! part by part:
//!
//! ```toml
//! problems = "problems.jsonl"
//! budgets = [128, "prompt+25%"]
//! policies = ["epikv", { name = "h2o", protect = "sinks(4)+recency", trigger = "every(64)" }]
//!
//! [hold]
//! trigger = "buffer(32)"
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::CommandFactory;

use crate::cli::Cli;

/// A configuration file is a page of flags; more is a mistake.
const LIMIT: u64 = 1 << 20;

/// A key that is no flag of the command.
#[derive(Debug, thiserror::Error)]
#[error("{}: unknown key {key:?}: expected a flag of `epikv {command}` without its dashes", path.display())]
pub(crate) struct UnknownKey {
    path: PathBuf,
    key: String,
    command: String,
    /// The flag that was probably meant.
    meant: Option<String>,
}

impl UnknownKey {
    /// What the reader can try.
    pub(crate) fn hint(&self) -> String {
        let list = format!("`epikv {} --help` lists them all", self.command);
        self.meant.as_ref().map_or(list.clone(), |meant| format!("did you mean {meant:?}? {list}"))
    }
}

/// Puts the flags of a configuration file right after the subcommand, before those that were typed.
///
/// So the parser treats them alike: a later flag replaces an earlier one.
pub(crate) fn with_config_file(args: Vec<OsString>) -> Result<Vec<OsString>> {
    let Some(path) = config_path(&args) else { return Ok(args) };
    let path = Path::new(&path);
    let text = epikv_schemas::fs::read_text(path, LIMIT)?;
    let table: toml::Table = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
    // The subcommand is the first word that is no flag.
    let at = args.iter().skip(1).position(|a| !a.to_string_lossy().starts_with('-')).map_or(args.len(), |i| i + 2);
    check(path, &table, &args[..at])?;
    let mut from_file = Vec::new();
    for (key, value) in &table {
        let flag = format!("--{}", key.replace('_', "-"));
        match value {
            toml::Value::Boolean(true) => from_file.push(flag.into()),
            toml::Value::Boolean(false) => {}
            value => {
                let words = words(value).with_context(|| format!("{}: {key}", path.display()))?;
                from_file.extend([flag.into(), words.into()]);
            }
        }
    }
    Ok(args[..at].iter().cloned().chain(from_file).chain(args[at..].iter().cloned()).collect())
}

/// A value as it would be typed.
fn words(value: &toml::Value) -> Result<String> {
    Ok(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => value.to_string(),
        toml::Value::Array(items) => items.iter().map(words).collect::<Result<Vec<_>>>()?.join(","),
        toml::Value::Table(parts) => {
            // The name of a policy stands first and alone.
            let name = parts.get("name").map(words).transpose()?;
            let others = parts.iter().filter(|(key, _)| *key != "name");
            let others = others.map(|(part, value)| Ok(format!("{part}={}", words(value)?)));
            name.map(Ok).into_iter().chain(others).collect::<Result<Vec<_>>>()?.join(";")
        }
        other @ toml::Value::Datetime(_) => {
            bail!("expected text, number, true, false, a list or a table of parts, got {}", other.type_str())
        }
    })
}

/// Refuses keys that are no flags of the subcommand, which `words` end with.
fn check(path: &Path, table: &toml::Table, words: &[OsString]) -> Result<()> {
    let cli = Cli::command();
    let name = words.last().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    // What is no subcommand is told by the parser.
    let Some(command) = cli.find_subcommand(&name) else { return Ok(()) };
    let flags = || command.get_arguments().chain(cli.get_arguments()).filter_map(clap::Arg::get_long);
    for key in table.keys() {
        let flag = key.replace('_', "-");
        if flags().all(|known| known != flag) {
            let meant = epikv_eviction::nearest(&flag, flags()).map(str::to_owned);
            return Err(UnknownKey { path: path.to_owned(), key: key.clone(), command: name, meant }.into());
        }
    }
    Ok(())
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

    fn with(text: &str, words: &[&str]) -> Result<Vec<OsString>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        std::fs::write(&path, text).unwrap();
        let got = with_config_file(args(&[words, &["--config", path.to_str().unwrap()]].concat()))?;
        Ok(got[..got.len() - 2].to_vec())
    }

    #[test]
    fn flags_of_the_file_come_before_those_typed() {
        let text = "batch = 4\nfresh = true\nquiet = false\nmodel = 'random:1'\n";
        let got = with(text, &["epikv", "label", "--batch", "8"]).unwrap();
        let want = args(&["epikv", "label", "--batch", "4", "--fresh", "--model", "random:1", "--batch", "8"]);
        assert_eq!(got, want);
    }

    #[test]
    fn policies_can_be_written_part_by_part() {
        let text = "policies = ['epikv', { trigger = 'every(64)', name = 'h2o' }]\nbudgets = [128, 'prompt+25%']\n\
                    [swap]\nscore = ['epikv', 'random']\n[hold]\nprotect = 'prompt+recency'\ntrigger = 'each'\n";
        let got = with(text, &["epikv", "evict"]).unwrap();
        let flag = |name: &str| got.iter().position(|word| word == name).map(|at| got[at + 1].to_str().unwrap());
        assert_eq!(flag("--policies"), Some("epikv,h2o;trigger=every(64)"));
        assert_eq!(flag("--budgets"), Some("128,prompt+25%"));
        assert_eq!(flag("--swap"), Some("score=epikv,random"));
        assert_eq!(flag("--hold"), Some("protect=prompt+recency;trigger=each"));
    }

    #[test]
    fn an_unknown_key_names_the_near_one() {
        let error = with("max_nwe = 3", &["epikv", "evict"]).unwrap_err();
        let unknown = error.downcast_ref::<UnknownKey>().expect("an unknown key");
        assert!(unknown.hint().starts_with("did you mean \"max-new\"?"), "{}", unknown.hint());
        let error = with("batch = 1979-05-27", &["epikv", "evict"]).unwrap_err();
        assert!(format!("{error:#}").contains("batch: expected text, number"), "{error:#}");
        assert!(with("verbose = true", &["epikv", "evict"]).is_ok());
    }

    #[test]
    fn no_file_no_change() {
        assert_eq!(with_config_file(args(&["epikv", "label"])).unwrap(), args(&["epikv", "label"]));
        assert!(with_config_file(args(&["epikv", "label", "--config", "no-such.toml"])).is_err());
    }
}
