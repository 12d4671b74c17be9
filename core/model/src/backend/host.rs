//! Elements of a tensor on the host.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use candle_core::{CpuStorage, DType, Device, Storage, Tensor};

use crate::error::Result;

/// The elements of a tensor, row-major: lent where they lie on the host as f32, copied otherwise.
pub(crate) enum Numbers<'t> {
    /// Part of a storage that is locked for reading.
    Lent(Box<dyn Deref<Target = Storage> + 't>, Range<usize>),
    /// A copy.
    Copied(Vec<f32>),
}

impl<'t> Numbers<'t> {
    /// Lends a contiguous f32 tensor on the CPU, and copies any other.
    pub(crate) fn lent(x: &'t Tensor) -> Result<Self> {
        let (storage, layout) = x.storage_and_layout();
        let own = layout.start_offset()..layout.start_offset() + layout.shape().elem_count();
        if layout.is_contiguous() && matches!(&*storage, Storage::Cpu(CpuStorage::F32(_))) {
            return Ok(Self::Lent(Box::new(storage), own));
        }
        drop(storage);
        Ok(Self::Copied(copied(x)?))
    }
}

/// Counts what is copied from a device to the host; clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToHost(Arc<AtomicU64>);

impl ToHost {
    /// Copies a tensor of any dtype, row-major.
    pub(crate) fn copy(&self, x: &Tensor) -> Result<Vec<f32>> {
        self.0.fetch_add((x.elem_count() * x.dtype().size_in_bytes()) as u64, Ordering::Relaxed);
        copied(x)
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn copied(x: &Tensor) -> Result<Vec<f32>> {
    Ok(x.flatten_all()?.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.to_vec1()?)
}

impl Deref for Numbers<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Self::Copied(all) => all,
            Self::Lent(storage, own) => match &***storage {
                Storage::Cpu(CpuStorage::F32(all)) => &all[own.clone()],
                _ => &[],
            },
        }
    }
}
