//! Options of opening a model: the device and the number format.

use std::fmt;
use std::str::FromStr;

use candle_core::DType;

use crate::decoder::AttentionKernel;
use crate::error::{Error, Result};
use crate::linear::WeightFormat;

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

impl FromStr for DeviceName {
    type Err = Error;

    /// `cpu`, `cuda` (the first one) or `cuda:N`.
    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::UnknownDevice { given: text.to_owned() };
        match text {
            "cpu" => Ok(Self::Cpu),
            "tensor" => Ok(Self::Tensor),
            "cuda" => Ok(Self::Cuda(0)),
            _ => {
                let number = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                let plain = number.bytes().all(|byte| byte.is_ascii_digit());
                number.parse().ok().filter(|_| plain).map(Self::Cuda).ok_or_else(unknown)
            }
        }
    }
}

epikv_words::words! {
    /// Numbers of weights, activations, keys and values. The residual stream is f32 whatever is chosen.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Dtype {
        /// Four bytes.
        #[default]
        F32 = "f32",
        /// Two bytes, 8 bits of mantissa (`bfloat16`).
        Bf16 = "bf16",
        /// Two bytes, 11 bits of mantissa (`float16`).
        F16 = "f16",
    }
}

impl Dtype {
    /// The same in the tensor library.
    pub(crate) fn of_tensors(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::Bf16 => DType::BF16,
            Self::F16 => DType::F16,
        }
    }

    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        self.of_tensors().size_in_bytes()
    }
}

/// How a model is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Where it computes.
    pub device: DeviceName,
    /// In which numbers.
    pub dtype: Dtype,
    /// How its weights are held on the CPU.
    pub weights: WeightFormat,
    /// How it computes attention on the CPU.
    pub kernel: AttentionKernel,
}

impl OpenOptions {
    /// Whether this build has the device, and the device the numbers.
    ///
    /// # Errors
    /// If not; the hint says what to change or what to build.
    pub fn check(&self) -> Result<()> {
        let refused = |what, expected: &str, got: String| {
            Err(Error::Unsupported { what, device: self.device, expected: expected.to_owned(), got })
        };
        match self.device {
            DeviceName::Cuda(_) if cfg!(not(feature = "cuda")) => Err(Error::DeviceNotBuilt { device: self.device }),
            DeviceName::Cpu if self.dtype != Dtype::F32 => refused("--dtype", "f32", self.dtype.to_string()),
            DeviceName::Tensor | DeviceName::Cuda(_) if self.weights != WeightFormat::F32 => {
                refused("--weights", "f32", self.weights.name().to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use epikv_words::Hint;

    use super::*;

    #[test]
    fn devices_are_written_as_they_are_read() {
        for device in [DeviceName::Cpu, DeviceName::Tensor, DeviceName::Cuda(0), DeviceName::Cuda(7)] {
            assert_eq!(device.to_string().parse::<DeviceName>().expect("known"), device);
        }
        assert_eq!("cuda".parse::<DeviceName>().expect("known"), DeviceName::Cuda(0));
        for unknown in ["", "gpu", "metal", "CPU", "cuda:", "cuda:+1", "cuda:x", "cuda:99999999999999999999"] {
            let error = unknown.parse::<DeviceName>().expect_err(unknown);
            assert!(error.to_string().contains(&format!("{unknown:?}")), "{error}");
        }
    }

    #[test]
    fn what_a_device_lacks_is_refused_with_a_hint() {
        let cpu = OpenOptions { dtype: Dtype::Bf16, ..OpenOptions::default() };
        let error = cpu.check().expect_err("f32 alone");
        assert_eq!(error.to_string(), "--dtype: expected f32 on the device cpu, got bf16");
        assert!(error.hint().is_some());
        let packed = OpenOptions { device: DeviceName::Tensor, weights: WeightFormat::Q8_0, ..OpenOptions::default() };
        assert!(packed.check().is_err());
        if cfg!(not(feature = "cuda")) {
            let cuda = OpenOptions { device: DeviceName::Cuda(1), ..OpenOptions::default() };
            let error = cuda.check().expect_err("not built");
            assert!(error.to_string().contains("cuda:1"), "{error}");
            assert!(error.hint().expect("what to build").contains("--features cuda"));
        }
    }
}
