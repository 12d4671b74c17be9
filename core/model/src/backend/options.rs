//! Options of opening a model: the device and the number format.

use std::str::FromStr;

use candle_core::DType;

use super::device_name::DeviceName;
use crate::error::{Error, Result};
use crate::linear::WeightFormat;

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

epikv_words::words! {
    /// How attention is computed. On the CPU both give the same bits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum AttentionKernel {
        /// The kernel gives no attention weights.
        #[default]
        Fused = "fused",
        /// The kernel gives attention weights, tile by tile.
        ///
        /// The sums over queries are made at every layer, whether a plan asks for them or not: what scoring by attention
        /// costs. On other devices the weights are materialised anyway.
        Explicit = "explicit",
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
