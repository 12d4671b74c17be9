//! `epikv completions` and `epikv man`: what a shell and `man` know of the command line, made from the same definitions.

use std::io::Write;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::output::Done;

/// Prints the completions of a shell.
pub(crate) fn completions(args: CompletionsArgs) -> Result<Done> {
    // Into memory first: the library panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "epikv", &mut script);
    crate::terminal::out().write_all(&script)?;
    Ok(Done::All)
}

/// Writes a page for `epikv` and one for each command: `epikv.1`, `epikv-trace.1`, ..
pub(crate) fn man(args: &ManArgs) -> Result<Done> {
    epikv_schemas::fs::create_folder(&args.out)?;
    clap_mangen::generate_to(Cli::command(), &args.out)
        .with_context(|| format!("cannot write man pages into {}", args.out.display()))?;
    writeln!(crate::terminal::err(), "man pages of all commands -> {}", args.out.display())?;
    Ok(Done::All)
}
