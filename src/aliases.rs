//! Older spellings: flags that chose another mode of a command. Each mode is a command now, and the flag still works.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{Args, CommandFactory};

use crate::cli::{Cli, ModelArgs};

/// A flag that is a command now.
#[derive(Debug)]
pub(crate) struct Alias {
    command: &'static str,
    flag: &'static str,
    /// The words of the new command.
    words: &'static [&'static str],
    /// The flag of the new command that takes the value.
    takes: &'static str,
}

const ALIASES: &[Alias] = &[
    Alias { command: "evict", flag: "replay", words: &["replay"], takes: "traces" },
    Alias { command: "label", flag: "summary", words: &["labels", "summary"], takes: "labels" },
    Alias { command: "label", flag: "import", words: &["labels", "import"], takes: "lines" },
    Alias { command: "label", flag: "export", words: &["labels", "export"], takes: "out" },
    Alias { command: "label", flag: "compare-sentences", words: &["labels", "compare"], takes: "scores" },
];

impl Alias {
    /// The alias that a flag of a command is, without its dashes.
    pub(crate) fn find(command: &str, flag: &str) -> Option<&'static Self> {
        ALIASES.iter().find(|alias| (alias.command, alias.flag) == (command, flag))
    }

    /// The flag as the new command has it, without its dashes.
    pub(crate) fn renamed<'f>(&self, flag: &'f str) -> &'f str {
        if flag == self.flag { self.takes } else { flag }
    }

    /// The arguments with the new command and its flag in place of the old; `at` is the place of the command. Flags of the
    /// model that the mode never used are left out where the new command has none.
    pub(crate) fn replace(&self, args: &[OsString], at: usize) -> Vec<OsString> {
        let (old, new) = (format!("--{}", self.flag), format!("--{}", self.takes));
        let words = self.words.iter().map(OsString::from);
        let mut replaced: Vec<OsString> = args[..at].iter().cloned().chain(words).collect();
        let unused = self.unused();
        let mut rest = args[at + 1..].iter();
        while let Some(arg) = rest.next() {
            let (flag, value) = arg.to_str().map_or(("", None), |text| match text.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (text, None),
            });
            let unused = unused.get(flag.trim_start_matches('-')).filter(|_| flag.starts_with("--"));
            match (unused, value) {
                (Some(takes_value), None) if *takes_value => drop(rest.next()),
                (Some(_), _) => {}
                (None, None) if flag == old => replaced.push(new.clone().into()),
                (None, Some(value)) if flag == old => replaced.push(format!("{new}={value}").into()),
                (None, _) => replaced.push(arg.clone()),
            }
        }
        replaced
    }

    /// Flags of every model that the new command does not have, and whether they take a value.
    fn unused(&self) -> BTreeMap<String, bool> {
        let cli = Cli::command();
        let command = self.words.iter().try_fold(&cli, |command, word| command.find_subcommand(word));
        let known = |flag: &str| command.is_some_and(|own| own.get_arguments().any(|arg| arg.get_long() == Some(flag)));
        let of_models = ModelArgs::augment_args(clap::Command::new("model"));
        let flags =
            of_models.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg.get_action().takes_values())));
        flags.filter(|(flag, _)| !known(flag)).map(|(flag, takes)| (flag.to_owned(), takes)).collect()
    }
}

/// The place of the command: the first word that is no flag.
pub(crate) fn command_at(args: &[OsString]) -> Option<usize> {
    (1..args.len()).find(|at| !args[*at].to_string_lossy().starts_with('-'))
}

/// The arguments with commands in place of flags that chose a mode.
pub(crate) fn replaced(args: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = command_at(&args) else { return args };
    let flags = args.iter().filter_map(|arg| arg.to_str()?.strip_prefix("--")?.split('=').next());
    let alias = args[at].to_str().and_then(|command| flags.into_iter().find_map(|flag| Alias::find(command, flag)));
    alias.map_or(args.clone(), |alias| alias.replace(&args, at))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn every_old_spelling_is_the_new_one() {
        for (old, new) in [
            ("evict --replay t.parquet --budgets 9 --out e", "replay --traces t.parquet --budgets 9 --out e"),
            ("-v evict --budgets 9 --out e --replay=t.parquet", "-v replay --budgets 9 --out e --traces=t.parquet"),
            ("label --summary a,b --traces t.parquet --json", "labels summary --labels a,b --traces t.parquet --json"),
            ("label --import f.jsonl --traces t --out l", "labels import --lines f.jsonl --traces t --out l"),
            ("label --import f --traces t --model m --quiet --out l", "labels import --lines f --traces t --out l"),
            ("label --export f.jsonl --traces t --labels l", "labels export --out f.jsonl --traces t --labels l"),
            ("label --compare-sentences f --traces t --labels l", "labels compare --scores f --traces t --labels l"),
            ("label --traces t --out l", "label --traces t --out l"),
        ] {
            let words = |text: &str| -> Vec<OsString> {
                ["epikv"].into_iter().chain(text.split(' ')).map(OsString::from).collect()
            };
            assert_eq!(replaced(words(old)), words(new));
            Cli::try_parse_from(words(new)).unwrap_or_else(|error| panic!("{new}: {error}"));
        }
    }
}
