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
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use epikv_words::Hint;

use crate::aliases::{Alias, command_at};
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

impl Hint for UnknownKey {
    fn hint(&self) -> Option<String> {
        let list = format!("`epikv {} --help` lists them all", self.command);
        Some(self.meant.as_ref().map_or(list.clone(), |meant| format!("did you mean {meant:?}? {list}")))
    }
}

/// A value that its flag does not take.
#[derive(Debug, thiserror::Error)]
#[error("{}: {key}: {expected}, got {got}", path.display())]
pub(crate) struct BadValue {
    path: PathBuf,
    key: String,
    /// What the flag takes.
    expected: String,
    /// As the file has it.
    got: String,
    command: String,
}

impl Hint for BadValue {
    fn hint(&self) -> Option<String> {
        Some(format!("`epikv {} --help` says what --{} takes", self.command, flag_of(&self.key)))
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
    let at = command_at(&args).unwrap_or(args.len());
    let word = args.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let alias = table.keys().find_map(|key| Alias::find(word, &flag_of(key)));
    let args = alias.map_or(args.clone(), |alias| alias.replace(&args, at));
    let cli = Cli::command();
    let (command, at) = command_of(&cli, &args, at);
    let mut from_file: Vec<OsString> = Vec::new();
    for (key, value) in &table {
        let flag = flag_of(key);
        let flag = alias.map_or(flag.as_str(), |alias| alias.renamed(&flag));
        let mut typed: Vec<OsString> = Vec::new();
        match value {
            toml::Value::Boolean(false) => {}
            toml::Value::Boolean(true) => typed.push(format!("--{flag}").into()),
            value => {
                let words = words(value).with_context(|| format!("{}: {key}", path.display()))?;
                typed.extend([format!("--{flag}").into(), words.into()]);
            }
        }
        // What is no subcommand is told by the parser.
        if let Some(command) = command {
            check(path, (key, flag, value), &typed, (command, &args[1..at]))?;
        }
        from_file.extend(typed);
    }
    Ok(args[..at].iter().cloned().chain(from_file).chain(args[at..].iter().cloned()).collect())
}

/// The command that the words from `at` on name, and the place behind them.
fn command_of<'c>(cli: &'c clap::Command, args: &[OsString], mut at: usize) -> (Option<&'c clap::Command>, usize) {
    let mut command = None;
    while let Some(next) = args.get(at).and_then(|word| command.unwrap_or(cli).find_subcommand(word)) {
        command = Some(next);
        at += 1;
    }
    // A word that is no command is told by the parser.
    (command, if command.is_none() { args.len().min(at + 1) } else { at })
}

/// The flag of a key, without its dashes.
fn flag_of(key: &str) -> String {
    key.replace('_', "-")
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

/// Refuses a key that is no flag of the subcommand, and a value that the flag does not take.
fn check(
    path: &Path,
    (key, flag, value): (&str, &str, &toml::Value),
    typed: &[OsString],
    (command, words): (&clap::Command, &[OsString]),
) -> Result<()> {
    let cli = Cli::command();
    // Flags of the whole program may stand before the command.
    let words: Vec<OsString> = words.iter().filter(|word| !word.to_string_lossy().starts_with('-')).cloned().collect();
    let name = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let flags = || command.get_arguments().chain(cli.get_arguments());
    let Some(known) = flags().find(|arg| arg.get_long() == Some(flag)) else {
        let meant = epikv_eviction::nearest(flag, flags().filter_map(clap::Arg::get_long)).map(str::to_owned);
        return Err(UnknownKey { path: path.to_owned(), key: key.to_owned(), command: name, meant }.into());
    };
    let expected = match (known.get_action().takes_values(), value.is_bool()) {
        (false, true) => None,
        (false, false) => Some("expected true or false".to_owned()),
        (true, true) => Some("expected a value".to_owned()),
        (true, false) => {
            let words = [OsString::from("epikv")].into_iter().chain(words).chain(typed.iter().cloned());
            Cli::try_parse_from(words).err().and_then(|error| wrong_value(&error))
        }
    };
    let refused = |expected| BadValue {
        path: path.to_owned(),
        key: key.to_owned(),
        expected,
        got: value.to_string(),
        command: name,
    };
    expected.map_or(Ok(()), |expected| Err(refused(expected).into()))
}

/// What the parser says of a value; nothing where it misses other flags, which are not there yet.
fn wrong_value(error: &clap::Error) -> Option<String> {
    if !matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue | ErrorKind::UnknownArgument) {
        return None;
    }
    let known = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(known)) if !known.is_empty() => {
            Some(format!("expected one of {}", known.join(", ")))
        }
        _ => None,
    };
    let said = std::error::Error::source(error).map(ToString::to_string);
    Some(said.or(known).unwrap_or_else(|| "expected another value".to_owned()))
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
    fn a_key_that_chose_a_mode_is_a_command() {
        let got = with("replay = 't.parquet'\nbudgets = [9]", &["epikv", "evict", "--out", "e"]).unwrap();
        assert_eq!(got, args(&["epikv", "replay", "--budgets", "9", "--traces", "t.parquet", "--out", "e"]));
        let got = with("traces = 't.parquet'", &["epikv", "labels", "summary", "--labels", "l"]).unwrap();
        assert_eq!(got, args(&["epikv", "labels", "summary", "--traces", "t.parquet", "--labels", "l"]));
    }

    #[test]
    fn an_unknown_key_names_the_near_one() {
        let error = with("max_nwe = 3", &["epikv", "evict"]).unwrap_err();
        let unknown = error.downcast_ref::<UnknownKey>().expect("an unknown key");
        assert!(unknown.hint().is_some_and(|hint| hint.starts_with("did you mean \"max-new\"?")), "{unknown:?}");
        let error = with("batch = 1979-05-27", &["epikv", "evict"]).unwrap_err();
        assert!(format!("{error:#}").contains("batch: expected text, number"), "{error:#}");
        assert!(with("verbose = true", &["epikv", "evict"]).is_ok());
    }

    #[test]
    fn a_value_that_a_flag_does_not_take_names_file_key_and_value() {
        for (text, said) in [
            ("limit = 'x'", "limit: expected a whole number from 1 to 1000000, got \"x\""),
            ("limit = 1.5", "limit: expected a whole number from 1 to 1000000, got 1.5"),
            ("limit = true", "limit: expected a value, got true"),
            ("fresh = 'yes'", "fresh: expected true or false, got \"yes\""),
            ("fresh = 1", "fresh: expected true or false, got 1"),
            ("weights = 'q4'", "weights: expected one of f32, q8_0, got \"q4\""),
            ("budgets = [128, 0]", "from 1 to 16777216"),
            ("model = 'no/such'", "model: "),
        ] {
            let error = with(text, &["epikv", "evict"]).unwrap_err();
            let bad = error.downcast_ref::<BadValue>().unwrap_or_else(|| panic!("{text}: {error}"));
            assert!(bad.to_string().contains(said) && bad.to_string().contains("run.toml: "), "{bad}");
            assert!(bad.hint().is_some_and(|hint| hint.starts_with("`epikv evict --help`")), "{bad:?}");
        }
    }

    #[test]
    fn no_file_no_change() {
        assert_eq!(with_config_file(args(&["epikv", "label"])).unwrap(), args(&["epikv", "label"]));
        assert!(with_config_file(args(&["epikv", "label", "--config", "no-such.toml"])).is_err());
    }
}
