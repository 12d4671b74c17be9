//! Tests that hold for every flag.

use std::any::TypeId;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::Cli;
use crate::batch::Batch;

#[test]
fn no_count_is_larger_than_a_run_can_be() {
    let counts = [
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<Batch>(),
    ];
    let mut n = 0;
    let cli = Cli::command();
    let alone = cli.get_subcommands().map(|command| (vec![command.get_name()], command));
    let nested = cli.get_subcommands().flat_map(|group| {
        group.get_subcommands().map(move |command| (vec![group.get_name(), command.get_name()], command))
    });
    for (words, command) in alone.chain(nested) {
        let name = words.join(" ");
        let is_count = |arg: &&clap::Arg| {
            let own = arg.get_value_parser().type_id();
            arg.get_action().takes_values() && counts.iter().any(|id| own == *id)
        };
        for flag in command.get_arguments().filter(is_count).filter_map(clap::Arg::get_long) {
            n += 1;
            let typed = |value: &str| {
                let flag = format!("--{flag}={value}");
                let words = [&["epikv"], &words[..], &[flag.as_str()]].concat();
                Cli::try_parse_from(words).err()
            };
            for value in ["18446744073709551615", "1099511627776"] {
                // A seed is no count: any is as good as another.
                if flag == "seed" && value == "1099511627776" {
                    continue;
                }
                let error = typed(value).unwrap_or_else(|| panic!("{name} --{flag} {value}"));
                assert_eq!(error.kind(), ErrorKind::ValueValidation, "{name} --{flag} {value}: {error}");
                assert_eq!(error.exit_code(), 2);
            }
            // Others may be missing then, but this one is as it should be.
            assert!(typed("1").is_none_or(|error| error.kind() != ErrorKind::ValueValidation), "--{flag} 1");
        }
    }
    assert!(n >= 30, "{n} flags were found");
}
