//! Flags of every command that opens a model: the device and the number format.

use clap::Args;
use epikv_model::backend::{DeviceName, Dtype, OpenOptions};

use super::word::word;

/// `--device` and `--dtype`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DeviceArgs {
    /// Device that the model runs on: `cpu`, or `cuda:N` in a build with the feature `cuda`.
    #[arg(long, default_value_t, value_name = "cpu|cuda:N")]
    pub(crate) device: DeviceName,
    /// Number format of weights, activations, keys and values. The CPU computes in f32 only.
    #[arg(long, value_parser = word::<Dtype>(), default_value_t)]
    pub(crate) dtype: Dtype,
}

impl DeviceArgs {
    /// How a model is opened there.
    ///
    /// # Errors
    /// If this build does not have the device, or the device not the numbers.
    pub(crate) fn options(self) -> epikv_model::Result<OpenOptions> {
        let options = OpenOptions { device: self.device, dtype: self.dtype, ..OpenOptions::default() };
        options.check()?;
        Ok(options)
    }
}
