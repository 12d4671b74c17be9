//! The first steps of every command: threads, logging, the model.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use epikv_model::Model;
use epikv_model::backend::OpenOptions;
use epikv_model::decoder::AttentionKernel;
use epikv_model::load::ModelRef;
use serde_json::{Value, json};

use crate::cli::ModelArgs;

/// Logging to stderr: warnings by default, more with `-v`, or as `RUST_LOG` says.
pub(crate) fn logging(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| default.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(crate::terminal::log)
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .init();
}

static ARGUMENTS: OnceLock<Vec<String>> = OnceLock::new();

/// Flags that change no result, and whether a value follows.
const NO_RESULT: &[(&str, bool)] = &[
    ("--threads", true),
    ("--batch", true),
    ("--quiet", false),
    ("--json", false),
    ("--verbose", false),
    ("-v", false),
    ("-vv", false),
    ("--fresh", false),
];

/// Keeps what was typed, short of what changes no result.
pub(crate) fn set_arguments(typed: &[OsString]) {
    let mut kept = Vec::new();
    let mut rest = typed.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = rest.next() {
        let name = argument.split_once('=').map_or(argument.as_str(), |(name, _)| name);
        match NO_RESULT.iter().find(|(flag, _)| *flag == name) {
            Some((_, true)) if !argument.contains('=') => drop(rest.next()),
            Some(_) => {}
            None => kept.push(argument),
        }
    }
    // Set once: a process runs one command.
    let _ = ARGUMENTS.set(kept);
}

/// What was typed, short of what changes no result.
pub(crate) fn arguments() -> Value {
    json!(ARGUMENTS.get().map_or(&[][..], Vec::as_slice))
}

/// The value of a flag that was typed.
pub(crate) fn argument(flag: &str) -> Option<&'static str> {
    let typed = ARGUMENTS.get()?;
    let value = |(at, argument): (usize, &'static String)| match argument.strip_prefix(flag)? {
        "" => typed.get(at + 1).map(String::as_str),
        rest => rest.strip_prefix('='),
    };
    typed.iter().enumerate().find_map(value)
}

/// Fixes the number of threads before any starts; returns it.
/// The tensor library counts the cores at each product unless the number is set, so it is set here.
pub(crate) fn threads(wanted: Option<u16>) -> Result<usize> {
    /// The demo runs several commands in one process; the first has fixed it for all.
    static FIXED: OnceLock<usize> = OnceLock::new();
    if let Some(n) = FIXED.get() {
        return Ok(*n);
    }
    let n = match wanted {
        Some(n) => usize::from(n),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    rayon::ThreadPoolBuilder::new().num_threads(n).build_global()?;
    Ok(*FIXED.get_or_init(|| n))
}

/// Set once the process was told to end (SIGINT, SIGTERM): what is under way is finished then, and nothing else begun. A
/// second signal ends it at once.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = FLAG.get() {
        return Ok(flag.clone());
    }
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: the first signal finds the flag unset.
        signal_hook::flag::register_conditional_default(signal, flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(FLAG.get_or_init(|| flag).clone())
}

/// Lets a write beyond the limit on file sizes fail as any other write does, in place of ending the process.
pub(crate) fn fail_at_file_size_limit() {
    /// SIGXFSZ, which the signal library does not name.
    const FILE_SIZE_EXCEEDED: i32 = 25;
    if cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        // Where it cannot be registered the process ends as before.
        let _ = signal_hook::flag::register(FILE_SIZE_EXCEEDED, Arc::new(AtomicBool::new(false)));
    }
}

/// Opens the model of a command.
pub(crate) fn model(args: &ModelArgs) -> Result<Model> {
    Ok(Model::open_with(args.model.as_ref().unwrap_or(&ModelRef::Tiny), &open_options(args)?)?)
}

/// How the models of a command are opened.
///
/// # Errors
/// If this build does not have the device, or the device not what is asked of it.
pub(crate) fn open_options(args: &ModelArgs) -> epikv_model::Result<OpenOptions> {
    Ok(OpenOptions { weights: args.weights, ..args.device.options()? })
}

/// Opens the model of a command that can choose its attention kernel.
pub(crate) fn model_with_kernel(args: &ModelArgs, kernel: AttentionKernel) -> Result<Model> {
    Ok(model(args)?.with_kernel(kernel))
}

/// Processor and system, by which times may be compared.
pub(crate) fn machine() -> String {
    let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let described = epikv_schemas::fs::read_text(std::path::Path::new("/proc/cpuinfo"), 1 << 24).unwrap_or_default();
    let names = described.lines().filter_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let processor = names.map(|(_, name)| name.trim()).next().unwrap_or(architecture);
    format!("{processor}, {system}")
}

/// Most memory that the process held so far, as the system counts it; `None` where it does not say.
pub(crate) fn peak_bytes() -> Option<u64> {
    let status = epikv_schemas::fs::read_text(std::path::Path::new("/proc/self/status"), 1 << 20).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The program, for provenance.
pub(crate) fn tool() -> Value {
    json!({
        "name": "epikv",
        "version": env!("CARGO_PKG_VERSION"),
        "grader": epikv_grader::VERSION,
    })
}
