//! Any device of the tensor library, in any number format that it can multiply.
//!
//! On the CPU in f32 it is the reference for our kernels, and its tests run without another device.

mod attention;
mod linear;
pub(crate) mod ops;
mod taps;

use candle_core::{DType, Device, Tensor};

use self::linear::Matrix;
use super::device_name::DeviceName;
use super::host::{Numbers, ToHost};
use super::operations::{Appended, Attention, Backend, Distribution, Facts, Observations};
use super::options::Dtype;
use crate::batch::offsets;
use crate::cache::{Part, Place, RowCache};
use crate::error::{Error, Result};
use crate::linear::{Linear, WeightFormat, joined};
use crate::taps::point::Reduce;

/// The tensor library on one device.
#[derive(Debug)]
pub(crate) struct Tensors {
    facts: Facts,
    to_host: ToHost,
}

impl Tensors {
    pub(crate) fn new(name: DeviceName, device: Device, dtype: Dtype) -> Self {
        Self { facts: Facts { name, device, dtype, takes_threads: false }, to_host: ToHost::default() }
    }

    fn dtype(&self) -> DType {
        self.facts.dtype.of_tensors()
    }
}

impl Backend for Tensors {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn place(&self, tensor: &Tensor) -> Result<Tensor> {
        Ok(tensor.to_dtype(self.dtype())?.to_device(&self.facts.device)?)
    }

    fn upload(&self, numbers: Vec<f32>, shape: &[usize]) -> Result<Tensor> {
        Ok(Tensor::from_vec(numbers, shape, &self.facts.device)?)
    }

    fn linear(&self, parts: &[(Tensor, Option<Tensor>)], format: WeightFormat) -> Result<Linear> {
        if format != WeightFormat::F32 {
            return Err(Error::Unsupported {
                what: "--weights",
                device: self.facts.name,
                expected: WeightFormat::F32.name().to_owned(),
                got: format.name().to_owned(),
            });
        }
        let (matrix, bias) = joined(parts)?;
        Ok(Linear::of(Matrix::new(matrix, bias.as_ref())?))
    }

    fn rows(&self, x: &Tensor, rows: &[u32]) -> Result<Tensor> {
        Ok(x.index_select(&Tensor::new(rows, &self.facts.device)?, 0)?)
    }

    fn columns(&self, x: &Tensor, first: usize, n: usize) -> Result<Tensor> {
        Ok(x.narrow(1, first, n)?.contiguous()?)
    }

    fn norm(&self, x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
        Ok(ops::rms_norm(x, weight, eps)?.to_dtype(self.dtype())?)
    }

    fn rotate(&self, x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
        ops::rotate(x, cos, sin)
    }

    fn gated(&self, gate_up: &Tensor) -> Result<Tensor> {
        ops::gated(gate_up)
    }

    fn place_of_caches(&self) -> Place {
        Place::Tensors { device: self.facts.device.clone(), dtype: self.dtype(), to_host: self.to_host.clone() }
    }

    fn write(
        &self,
        part: Part,
        layer: usize,
        new: &Tensor,
        caches: &mut [&mut RowCache],
        appended: Appended<'_>,
    ) -> Result<()> {
        for ((cache, slots), (first, n)) in caches.iter_mut().zip(appended.slots).zip(offsets(appended.lengths)) {
            cache.write_tensor(part, layer, &new.narrow(0, first, n)?, slots)?;
        }
        Ok(())
    }

    fn attend(&self, q: &Tensor, caches: &[&mut RowCache], asked: &Attention<'_>) -> Result<(Tensor, Observations)> {
        attention::attend(self, q, caches, asked)
    }

    fn reduce(&self, x: &Tensor, how: Reduce) -> Result<Tensor> {
        taps::reduced(x, how)
    }

    fn steps(&self, x: &Tensor, before: Option<&Tensor>, how: Reduce) -> Result<Vec<Option<f32>>> {
        let x = x.to_dtype(DType::F32)?;
        let (x, first) = match before {
            Some(before) => (Tensor::cat(&[before, &x], 0)?, None),
            None => (x, Some(None)),
        };
        let steps = taps::steps(&x, how)?;
        let steps = self.host(&steps)?;
        Ok(first.into_iter().chain(steps.iter().map(|&step| Some(step))).collect())
    }

    fn distributions(&self, logits: &Tensor, next: &[Option<u32>]) -> Result<Vec<Distribution>> {
        let (n, vocab) = logits.dims2()?;
        let known = |next: &Option<u32>| next.filter(|&id| (id as usize) < vocab);
        let asked: Vec<u32> = next.iter().map(|next| known(next).unwrap_or(0)).collect();
        let found = taps::distributions(logits, &asked)?;
        let found = self.host(&found)?;
        let of = |(i, next): (usize, &Option<u32>)| Distribution {
            entropy: found[i],
            margin: found[n + i],
            surprisal: known(next).map(|_| found[2 * n + i]),
        };
        Ok(next.iter().enumerate().map(of).collect())
    }

    fn host<'t>(&self, x: &'t Tensor) -> Result<Numbers<'t>> {
        Ok(Numbers::Copied(self.to_host.copy(x)?))
    }

    fn bytes_to_host(&self) -> u64 {
        self.to_host.bytes()
    }
}
