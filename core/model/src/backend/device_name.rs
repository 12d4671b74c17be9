//! Devices by name.

use std::fmt;

/// A device by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceName {
    /// Our own kernels on the CPU: the same bits in any batch.
    #[default]
    Cpu,
    /// The tensor library on the CPU, as it would run on another device. For tests.
    Tensor,
    /// A CUDA device by its number.
    Cuda(usize),
}

impl DeviceName {
    /// The kind of device, without its number. It identifies a computation; the number does not.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Tensor => "tensor",
            Self::Cuda(_) => "cuda",
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            other => f.write_str(other.kind()),
        }
    }
}
