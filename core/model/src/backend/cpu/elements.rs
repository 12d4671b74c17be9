//! Elements of tensors on the CPU.

use candle_core::{CpuStorage, Storage, Tensor};

use crate::error::{Error, Result};

/// Lends the elements of a contiguous f32 tensor on the CPU.
pub(crate) fn with_f32<R>(tensor: &Tensor, f: impl FnOnce(&[f32]) -> R) -> Result<R> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(CpuStorage::F32(all)) => {
            let from = layout.start_offset();
            Ok(f(&all[from..from + layout.shape().elem_count()]))
        }
        _ => Err(Error::Request {
            what: "tensor for a CPU kernel",
            expected: "f32 on the CPU".to_owned(),
            got: format!("{:?} on {:?}", tensor.dtype(), tensor.device().location()),
        }),
    }
}

/// A CPU tensor from its elements.
pub(crate) fn from_rows(elements: Vec<f32>, shape: &[usize]) -> Result<Tensor> {
    Ok(Tensor::from_vec(elements, shape, &candle_core::Device::Cpu)?)
}
