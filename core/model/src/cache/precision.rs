//! Precision of stored keys and values.
//!
//! A precision says how a number is rounded when it is stored. Storage keeps the number format of the back-end and is
//! counted so: no memory is saved. This separates the effect of a cache of fewer bits from the effect of eviction.
//!
//! A precision belongs to a group of slots: those of all new tokens, or those of some tokens held.

use std::fmt;
use std::str::FromStr;

use super::store::Part;
use super::{Pos, RowCache};
use crate::error::{Error, Result};

/// What happens to a key or value when it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Nothing.
    #[default]
    F32,
    /// It is rounded to the nearest number with 8 bits of mantissa (`bfloat16`), ties to even.
    Bf16,
    /// It is rounded to the nearest number with 11 bits of mantissa (`float16`), ties to even.
    F16,
    /// It is moved by up to so many units in its last place, at least 1, both ways alike: what another order of sums would
    /// do. Which random numbers are drawn is said by the seed of the cache.
    Jitter(u32),
}

impl Precision {
    /// Copies values of one head of a layer as they are stored.
    ///
    /// A jitter depends on seed, layer, head, channel and the value itself: not on batch, order or slot.
    pub(super) fn store(self, seed: u64, values: &[f32], (layer, head): (usize, usize), stored: &mut [f32]) {
        match self {
            Self::F32 => stored.copy_from_slice(values),
            Self::Bf16 => each(values, stored, |_, x| half::bf16::from_f32(x).to_f32()),
            Self::F16 => each(values, stored, |_, x| half::f16::from_f32(x).to_f32()),
            Self::Jitter(ulps) => {
                let key = mixed(seed ^ mixed((layer as u64) << 32 | head as u64));
                each(values, stored, |channel, x| {
                    moved(x, ulps, mixed(key ^ (channel as u64) << 32 ^ u64::from(x.to_bits())))
                });
            }
        }
    }
}

fn each(values: &[f32], stored: &mut [f32], of: impl Fn(usize, f32) -> f32) {
    for (channel, (stored, &x)) in stored.iter_mut().zip(values).enumerate() {
        *stored = of(channel, x);
    }
}

/// Moves a number by a drawn count of units in the last place; zero and what is not finite stay.
fn moved(x: f32, ulps: u32, drawn: u64) -> f32 {
    const SIGN: u32 = 1 << 31;
    const LARGEST: i64 = f32::MAX.to_bits() as i64;
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let by = (drawn % (2 * u64::from(ulps) + 1)) as i64 - i64::from(ulps);
    let magnitude = (i64::from(x.to_bits() & !SIGN) + by).clamp(1, LARGEST) as u32;
    f32::from_bits(x.to_bits() & SIGN | magnitude)
}

/// The finaliser of `SplitMix64` (Steele, Lea & Flood 2014): every bit of the result depends on every bit of the input.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F32 => f.write_str("f32"),
            Self::Bf16 => f.write_str("bf16"),
            Self::F16 => f.write_str("f16"),
            Self::Jitter(ulps) => write!(f, "jitter({ulps})"),
        }
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let ulps = || text.strip_prefix("jitter(")?.strip_suffix(')')?.parse().ok();
        match text {
            "f32" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            "f16" => Ok(Self::F16),
            _ => ulps().filter(|n| (1..=1 << 20).contains(n)).map(Self::Jitter).ok_or_else(|| Error::Request {
                what: "precision",
                expected: "f32, bf16, f16 or jitter(N) with N from 1 to 1048576".to_owned(),
                got: text.to_owned(),
            }),
        }
    }
}

impl RowCache {
    /// The same cache, in which the tokens to come are stored in another precision; a jitter draws by `seed`. What is held
    /// stays as it is.
    ///
    /// # Errors
    /// If keys are to be rotated again: they are made from originals in f32.
    pub fn with_precision(mut self, precision: Precision, seed: u64) -> Result<Self> {
        self.check_precision(precision)?;
        self.store.seed = seed;
        self.new_group = self.store.group(precision);
        Ok(self)
    }

    /// Stores the tokens of one kept set for which `of` is true in another precision; returns how many. Bits that were lost
    /// before do not come back.
    ///
    /// # Errors
    /// As [`RowCache::with_precision`], or if the device fails.
    pub fn round(&mut self, set: usize, precision: Precision, of: impl Fn(Pos) -> bool) -> Result<usize> {
        self.check_precision(precision)?;
        let group = self.store.group(precision);
        let slots = self.maps[set].regroup(group, of);
        let index: Vec<u32> = slots.iter().map(|slot| slot.0 as u32).collect();
        let heads: Vec<_> = self.heads().filter(|at| self.set_index(at.0, at.1) == set).collect();
        for at in heads {
            let (keys, values) = self.store.tensors(at.0, at.1, &index)?;
            self.store.write_tensor(Part::Keys, at, &slots, precision, &keys)?;
            self.store.write_tensor(Part::Values, at, &slots, precision, &values)?;
        }
        Ok(slots.len())
    }

    /// The precision that a token is stored in; `None` if the kept set does not hold it in a slot of its own.
    pub fn precision_of(&self, set: usize, pos: Pos) -> Option<Precision> {
        self.maps[set].group_of(pos).map(|group| self.store.precision(group))
    }

    fn check_precision(&self, precision: Precision) -> Result<()> {
        if precision == Precision::F32 || self.compacted.is_none() {
            return Ok(());
        }
        Err(Error::Request {
            what: "precision of a cache",
            expected: "f32 where keys are rotated anew by their places among the tokens held".to_owned(),
            got: precision.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candle_core::{Device, Tensor};

    use super::*;
    use crate::backend::cpu::Kernels;
    use crate::backend::operations::{Appended, Backend};
    use crate::backend::tensor::Tensors;
    use crate::backend::{DeviceName, Dtype};
    use crate::cache::{Capacity, Scope};

    fn stored(precision: Precision, seed: u64, values: &[f32]) -> Vec<f32> {
        let mut out = vec![f32::NAN; values.len()];
        precision.store(seed, values, (1, 2), &mut out);
        out
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        let values = [1.0, 1.0 + 1.0 / 512.0, -3.3, 0.0];
        assert_eq!(stored(Precision::F32, 0, &values), values);
        assert_eq!(stored(Precision::Bf16, 0, &values), [1.0, 1.0, -3.296_875, 0.0]);
        assert_eq!(stored(Precision::F16, 0, &values), [1.0, 1.001_953_1, -3.300_781_3, 0.0]);
    }

    #[test]
    fn a_jitter_is_small_keyed_and_both_ways() {
        let values: Vec<f32> = (1..2000).map(|i| (i as f32).sin()).collect();
        let with = |seed| stored(Precision::Jitter(3), seed, &values);
        let by = |seed: u64| -> Vec<i64> {
            with(seed).iter().zip(&values).map(|(a, b)| i64::from(a.to_bits()) - i64::from(b.to_bits())).collect()
        };
        let moves = by(1);
        assert_eq!((moves.iter().min(), moves.iter().max()), (Some(&-3), Some(&3)));
        let mean = moves.iter().sum::<i64>() as f64 / moves.len() as f64;
        assert!(mean.abs() < 0.2, "{mean}: seven equal moves have a standard error of 0.045");
        assert_eq!(by(1), moves);
        assert_ne!(by(2), moves);
        let edges = [0.0, -0.0, f32::INFINITY, f32::MAX, f32::from_bits(1)];
        let got = stored(Precision::Jitter(9), 4, &edges);
        assert!(got[0] == 0.0 && got[1] == 0.0 && got[2].is_infinite() && got[3].is_finite() && got[4] > 0.0);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for precision in [Precision::F32, Precision::Bf16, Precision::F16, Precision::Jitter(16)] {
            assert_eq!(precision.to_string().parse::<Precision>().expect("its own name"), precision);
        }
        for text in ["f64", "jitter(0)", "jitter(1048577)", "jitter"] {
            let error = text.parse::<Precision>().expect_err("no precision").to_string();
            assert!(error.contains("jitter(N)") && error.ends_with(text), "{error}");
        }
    }

    #[test]
    fn a_group_of_tokens_has_a_precision_of_its_own() -> Result<()> {
        let config = "random:1,heads=2,kv_heads=1,layers=1,hidden=16".parse::<crate::load::RandomSpec>()?.config();
        let backends: [Arc<dyn Backend>; 2] =
            [Arc::new(Kernels::new()), Arc::new(Tensors::new(DeviceName::Tensor, Device::Cpu, Dtype::F32))];
        for backend in backends {
            let mut cache = RowCache::at(backend.place_of_caches(), &config, Scope::Global, Capacity::Fixed(3))?;
            let third = Tensor::full(1.0_f32 / 3.0, (3, 1, config.head_dim), &Device::Cpu)?;
            let slots = [cache.reserve(&[Pos(0), Pos(1), Pos(2)])?];
            for part in [Part::Keys, Part::Values] {
                backend.write(part, 0, &third, &mut [&mut cache], Appended { lengths: &[3], slots: &slots })?;
            }
            assert_eq!(cache.round(0, Precision::Bf16, |pos| pos.0 > 0)?, 2);
            let of = |pos| cache.precision_of(0, Pos(pos));
            assert_eq!([of(0), of(2), of(3)], [Some(Precision::F32), Some(Precision::Bf16), None]);
            let view = cache.view()?;
            let (plain, rounded) = (1.0_f32 / 3.0, half::bf16::from_f32(1.0 / 3.0).to_f32());
            let held = view.head(0, 0);
            assert_eq!((held.key(0)[0], held.key(1)[0], held.value(2)[0]), (plain, rounded, rounded));
            cache.remove(0, Pos(2));
            cache.reserve(&[Pos(3)])?;
            cache.compact(|_| 3)?;
            let of = |pos| cache.precision_of(0, Pos(pos));
            assert_eq!([of(0), of(1), of(3)], [Some(Precision::F32), Some(Precision::Bf16), Some(Precision::F32)]);
        }
        Ok(())
    }
}
