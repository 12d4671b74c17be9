//! The `epikv` command line. Parsing and printing only: the work is in the library crates.

mod aliases;
mod batch;
mod check;
mod claims;
mod cli;
mod config_file;
mod correlate;
mod demo;
mod doctor;
mod evict;
mod export;
mod golds;
mod grade;
mod inputs;
mod job;
mod label;
mod labels;
mod output;
mod pages;
mod plan;
mod policies;
mod problems;
mod progress;
mod replay;
mod report;
mod schema;
mod setup;
mod shell;
mod signals;
mod terminal;
mod trace;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let args = match config_file::with_config_file(aliases::replaced(std::env::args_os().collect())) {
        Ok(args) => args,
        Err(error) => return report::failed(&error),
    };
    setup::set_arguments(&args);
    let cli = Cli::parse_from(args);
    setup::logging(cli.verbose);
    setup::fail_at_file_size_limit();
    let done = match cli.command {
        Command::Problems(args) => problems::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Label(args) => label::run(&args),
        Command::Correlate(args) => correlate::run(&args),
        Command::Evict(args) => evict::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Labels(command) => labels::run(&command),
        Command::Grade(args) => grade::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Claims(args) => claims::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Signals(args) => signals::run(&args),
        Command::Completions(args) => shell::completions(args),
        Command::Man(args) => shell::man(&args),
    };
    match done {
        Ok(output::Done::All) => ExitCode::SUCCESS,
        Ok(output::Done::SomeFailed) => ExitCode::from(1),
        Err(error) => report::failed(&error),
    }
}
