//! Back-ends: the operations that the decoder needs, implemented once for each kind of device.
//!
//! A back-end is chosen when a model is opened ([`OpenOptions`]). `cpu` has our own kernels, whose bits do not depend
//! on batch, chunks or threads. `tensor` has the operations of the tensor library, on any device that the library
//! supports.
//!
//! Shapes are those of packed rows: `T` tokens, `d` channels, `H` query heads, `H_kv` KV heads, `D` channels of a head.

pub(crate) mod cpu;
pub(crate) mod device_name;
pub(crate) mod host;
pub(crate) mod operations;
mod options;
pub(crate) mod tensor;

use std::sync::Arc;

use candle_core::{Device, Tensor};

use self::cpu::Kernels;
pub use self::device_name::DeviceName;
use self::operations::Backend;
pub use self::options::{AttentionKernel, Dtype, OpenOptions};
use self::tensor::Tensors;
use crate::cache::{Capacity, RowCache, Scope};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::linear::{Linear, WeightFormat};

/// The back-end that a model asks for.
///
/// # Errors
/// If this build does not have the device, or the device does not have the numbers.
pub(crate) fn open(options: &OpenOptions) -> Result<Arc<dyn Backend>> {
    options.check()?;
    Ok(match options.device {
        DeviceName::Cpu => Arc::new(Kernels::new()),
        DeviceName::Tensor => Arc::new(Tensors::new(options.device, Device::Cpu, options.dtype)),
        DeviceName::Cuda(number) => {
            Arc::new(Tensors::new(options.device, Device::new_cuda_with_stream(number)?, options.dtype))
        }
    })
}

/// The back-end of a device of the tensor library: our kernels on the CPU, the library elsewhere, in f32.
pub(crate) fn of_device(device: &Device) -> Arc<dyn Backend> {
    match device.location() {
        candle_core::DeviceLocation::Cuda { gpu_id } => {
            Arc::new(Tensors::new(DeviceName::Cuda(gpu_id), device.clone(), Dtype::F32))
        }
        candle_core::DeviceLocation::Metal { .. } => {
            Arc::new(Tensors::new(DeviceName::Tensor, device.clone(), Dtype::F32))
        }
        candle_core::DeviceLocation::Cpu => Arc::new(Kernels::new()),
    }
}

impl RowCache {
    /// An empty cache: on a CPU for its kernels, elsewhere in f32 tensors.
    ///
    /// # Errors
    /// If the capacities are not one a kept set, or the device has no room.
    pub fn new(config: &ModelConfig, device: &Device, scope: Scope, capacity: Capacity) -> Result<Self> {
        Self::at(of_device(device).place_of_caches(), config, scope, capacity)
    }
}

impl Linear {
    /// Joins matrices `[N_i, K]` that read the same input into one layer on a device of the tensor library; biases `[N_i]`
    /// for all of them or for none.
    pub fn new(parts: &[(Tensor, Option<Tensor>)], device: &Device, format: WeightFormat) -> Result<Self> {
        let backend = of_device(device);
        let place = |(matrix, bias): &(Tensor, Option<Tensor>)| {
            Ok((backend.place(matrix)?, bias.as_ref().map(|bias| backend.place(bias)).transpose()?))
        };
        backend.linear(&parts.iter().map(place).collect::<Result<Vec<_>>>()?, format)
    }
}
