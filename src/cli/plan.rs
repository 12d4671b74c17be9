//! Flags of `epikv plan`.

use std::path::PathBuf;

use clap::Args;
use epikv_model::load::ModelRef;

use super::DeviceArgs;

/// `epikv plan`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArgs {
    /// Model whose shape is used. Without this flag: the shape of Llama 3.1 8B, with weights of 16 GiB.
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<ModelRef>,
    /// Tokens that a request holds, separated by commas.
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "2048,32768",
          value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub(crate) tokens: Vec<u64>,
    /// Memory of the device.
    #[arg(long, value_name = "GIB", default_value_t = 80.0)]
    pub(crate) device_gib: f64,
    /// Share of the device's memory that may be used.
    #[arg(long, default_value_t = 0.9)]
    pub(crate) share: f64,
    /// Bytes of a weight, key, value or attention weight: 2 for 16-bit numbers.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) value_bytes: u8,
    /// Requests that run together, for the memory of activations.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) batch: u64,
    /// Prompt lengths at which the model is run and its memory is counted, separated by commas. Needs `--model`.
    #[arg(long, value_name = "N,..", value_delimiter = ',', requires = "model",
          value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
    pub(crate) measure: Vec<u64>,
    /// Where the model is run for `--measure`.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Folder for two figures and their numbers: concurrent requests, and memory of explicit attention.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace figures that are already there.
    #[arg(long, requires = "out")]
    pub(crate) fresh: bool,
    /// JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
