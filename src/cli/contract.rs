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
    for command in Cli::command().get_subcommands() {
        let is_count = |arg: &&clap::Arg| {
            let own = arg.get_value_parser().type_id();
            arg.get_action().takes_values() && counts.iter().any(|id| own == *id)
        };
        for flag in command.get_arguments().filter(is_count).filter_map(clap::Arg::get_long) {
            n += 1;
            let typed = |value: &str| {
                let words = ["epikv".to_owned(), command.get_name().to_owned(), format!("--{flag}={value}")];
                Cli::try_parse_from(words).err()
            };
            for value in ["18446744073709551615", "1099511627776"] {
                // A seed is no count: any is as good as another.
                if flag == "seed" && value == "1099511627776" {
                    continue;
                }
                let error = typed(value).unwrap_or_else(|| panic!("{} --{flag} {value}", command.get_name()));
                assert_eq!(
                    error.kind(),
                    ErrorKind::ValueValidation,
                    "{} --{flag} {value}: {error}",
                    command.get_name()
                );
                assert_eq!(error.exit_code(), 2);
            }
            // Others may be missing then, but this one is as it should be.
            assert!(typed("1").is_none_or(|error| error.kind() != ErrorKind::ValueValidation), "--{flag} 1");
        }
    }
    assert!(n >= 30, "{n} flags were found");
}
