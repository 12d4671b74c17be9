//! The CPU by our own kernels, in f32. The bits of a row do not depend on other rows, on chunks or on threads.

mod attention;
mod distribution;
mod elements;
mod linear;
mod ops;
mod reduce;
mod steps;

use candle_core::{DType, Device, Tensor};

use self::elements::{from_rows, with_f32};
use self::linear::Packed;
use super::device_name::DeviceName;
use super::host::Numbers;
use super::operations::{Appended, Attention, Backend, Distribution, Facts, Observations};
use super::options::Dtype;
use crate::batch::offsets;
use crate::cache::{Part, Place, RowCache};
use crate::error::Result;
use crate::linear::{Linear, WeightFormat, joined};
use crate::taps::point::Reduce;

/// Our kernels.
#[derive(Debug)]
pub(crate) struct Kernels {
    facts: Facts,
}

impl Kernels {
    pub(crate) fn new() -> Self {
        let (name, device, dtype) = (DeviceName::Cpu, Device::Cpu, Dtype::F32);
        Self { facts: Facts { name, device, dtype, takes_threads: true } }
    }
}

impl Backend for Kernels {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn place(&self, tensor: &Tensor) -> Result<Tensor> {
        Ok(tensor.to_dtype(DType::F32)?)
    }

    fn upload(&self, numbers: Vec<f32>, shape: &[usize]) -> Result<Tensor> {
        from_rows(numbers, shape)
    }

    fn linear(&self, parts: &[(Tensor, Option<Tensor>)], format: WeightFormat) -> Result<Linear> {
        let (matrix, bias) = joined(parts)?;
        Ok(Linear::of(Packed::new(&matrix, bias, format)?))
    }

    fn rows(&self, x: &Tensor, rows: &[u32]) -> Result<Tensor> {
        Ok(x.index_select(&Tensor::new(rows, &Device::Cpu)?, 0)?)
    }

    fn columns(&self, x: &Tensor, first: usize, n: usize) -> Result<Tensor> {
        ops::columns(x, first, n)
    }

    fn norm(&self, x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
        ops::rms_norm(x, weight, eps)
    }

    fn rotate(&self, x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
        ops::rotate(x, cos, sin)
    }

    fn gated(&self, gate_up: &Tensor) -> Result<Tensor> {
        ops::gated(gate_up)
    }

    fn place_of_caches(&self) -> Place {
        Place::Host
    }

    fn write(
        &self,
        part: Part,
        layer: usize,
        new: &Tensor,
        caches: &mut [&mut RowCache],
        appended: Appended<'_>,
    ) -> Result<()> {
        with_f32(new, |new| {
            let width = new.len() / appended.lengths.iter().sum::<usize>();
            let rows = caches.iter_mut().zip(appended.slots).zip(offsets(appended.lengths));
            rows.into_iter().try_for_each(|((cache, slots), (first, n))| {
                cache.write_slice(part, layer, &new[first * width..(first + n) * width], slots)
            })
        })?
    }

    fn attend(&self, q: &Tensor, caches: &[&mut RowCache], asked: &Attention<'_>) -> Result<(Tensor, Observations)> {
        attention::attend(q, caches, asked)
    }

    fn reduce(&self, x: &Tensor, how: Reduce) -> Result<Tensor> {
        reduce::reduced(x, how)
    }

    fn steps(&self, x: &Tensor, before: Option<&Tensor>, how: Reduce) -> Result<Vec<Option<f32>>> {
        steps::steps(x, before, how)
    }

    fn distributions(&self, logits: &Tensor, next: &[Option<u32>]) -> Result<Vec<Distribution>> {
        distribution::distributions(logits, next)
    }

    fn host<'t>(&self, x: &'t Tensor) -> Result<Numbers<'t>> {
        Numbers::lent(x)
    }

    fn bytes_to_host(&self) -> u64 {
        0
    }
}
