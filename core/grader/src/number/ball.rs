//! A real number enclosed in `(mid ± rad) * 2^exp`, with the four operations and the square root.

use num_bigint::{BigInt, Sign};
use num_traits::{One, Signed, Zero};

use super::Fail;

/// `(mid ± rad) * 2^exp`, `rad >= 0`. Exact numbers have `rad = 0`.
#[derive(Clone, Debug)]
pub(crate) struct Ball {
    pub(super) mid: BigInt,
    pub(super) rad: BigInt,
    pub(super) exp: i64,
}

/// Exponents beyond this are "too large"; far enough from the ends of `i64` that sums of a few cannot overflow.
const EXPONENT_LIMIT: i64 = 1 << 60;

impl Ball {
    pub(crate) fn zero() -> Self {
        Self { mid: BigInt::zero(), rad: BigInt::zero(), exp: 0 }
    }

    pub(crate) fn integer(value: impl Into<BigInt>) -> Self {
        Self { mid: value.into(), rad: BigInt::zero(), exp: 0 }
    }

    pub(super) fn new(mid: BigInt, rad: BigInt, exp: i64, precision: u64) -> Result<Self, Fail> {
        Self { mid, rad, exp }.rounded(precision)
    }

    /// An exact number `mid * 2^exp`.
    pub(crate) fn dyadic(mid: i64, exp: i64) -> Self {
        Self { mid: mid.into(), rad: BigInt::zero(), exp }
    }

    /// Cuts the digits beyond the precision off and adds what they were to the radius.
    fn rounded(mut self, precision: u64) -> Result<Self, Fail> {
        let bits = self.mid.bits().max(self.rad.bits());
        if bits > precision {
            let cut = bits - precision;
            let exact = self.rad.is_zero() && self.mid.trailing_zeros().is_none_or(|zeros| zeros >= cut);
            self.mid >>= cut;
            if !exact {
                self.rad = (self.rad >> cut) + 2;
            }
            self.exp += cut.cast_signed();
        }
        if self.exp.abs() > EXPONENT_LIMIT { Err(Fail::TooLarge) } else { Ok(self) }
    }

    pub(crate) fn is_exact_zero(&self) -> bool {
        self.mid.is_zero() && self.rad.is_zero()
    }

    pub(crate) fn excludes_zero(&self) -> bool {
        self.mid.magnitude() > self.rad.magnitude()
    }

    /// `Some(true)` if certainly positive, `Some(false)` if certainly negative.
    pub(crate) fn is_positive(&self) -> Option<bool> {
        self.excludes_zero().then(|| self.mid.is_positive())
    }

    /// The number, where it is an exact integer that fits.
    pub(crate) fn exact_integer(&self) -> Option<i64> {
        if !self.rad.is_zero() {
            return None;
        }
        if self.mid.is_zero() {
            return Some(0);
        }
        if self.exp >= 0 {
            return if self.exp > 62 { None } else { i64::try_from(&self.mid << self.exp).ok() };
        }
        let zeros = self.mid.trailing_zeros().unwrap_or(0);
        let cut = self.exp.unsigned_abs();
        if zeros < cut { None } else { i64::try_from(&self.mid >> cut).ok() }
    }

    /// Power of two above the absolute value; `None` if the ball holds zero.
    pub(crate) fn magnitude(&self) -> Option<i64> {
        self.excludes_zero().then(|| self.exp + self.mid.bits().cast_signed())
    }

    /// Power of two above the radius; `None` if exact.
    pub(crate) fn radius_magnitude(&self) -> Option<i64> {
        (!self.rad.is_zero()).then(|| self.exp + self.rad.bits().cast_signed())
    }

    fn top(&self) -> i64 {
        self.exp + self.mid.bits().max(self.rad.bits()).cast_signed()
    }

    /// The same ball with another exponent; digits below are moved to the radius.
    pub(super) fn aligned(&self, exp: i64) -> (BigInt, BigInt) {
        if self.exp >= exp {
            let shift = (self.exp - exp).unsigned_abs();
            return (&self.mid << shift, &self.rad << shift);
        }
        let shift = (exp - self.exp).unsigned_abs();
        if shift > self.mid.bits().max(self.rad.bits()) {
            return (BigInt::zero(), BigInt::one());
        }
        (&self.mid >> shift, (&self.rad >> shift) + 2)
    }

    pub(crate) fn neg(&self) -> Self {
        Self { mid: -&self.mid, rad: self.rad.clone(), exp: self.exp }
    }

    pub(crate) fn abs(&self) -> Self {
        if self.mid.sign() == Sign::Minus { self.neg() } else { self.clone() }
    }

    pub(crate) fn add(&self, other: &Self, precision: u64) -> Result<Self, Fail> {
        if self.is_exact_zero() {
            return other.clone().rounded(precision);
        }
        if other.is_exact_zero() {
            return self.clone().rounded(precision);
        }
        let top = self.top().max(other.top());
        let lowest = top - 2 * precision.cast_signed() - 8;
        let exp = self.exp.min(other.exp).max(lowest);
        let (a, ra) = self.aligned(exp);
        let (b, rb) = other.aligned(exp);
        Self::new(a + b, ra + rb, exp, precision)
    }

    pub(crate) fn sub(&self, other: &Self, precision: u64) -> Result<Self, Fail> {
        self.add(&other.neg(), precision)
    }

    pub(crate) fn mul(&self, other: &Self, precision: u64) -> Result<Self, Fail> {
        let mid = &self.mid * &other.mid;
        let rad = if self.rad.is_zero() && other.rad.is_zero() {
            BigInt::zero()
        } else {
            self.mid.abs() * &other.rad + other.mid.abs() * &self.rad + &self.rad * &other.rad
        };
        Self::new(mid, rad, self.exp + other.exp, precision)
    }

    pub(crate) fn div(&self, other: &Self, precision: u64) -> Result<Self, Fail> {
        if !other.excludes_zero() {
            return Err(Fail::Undefined);
        }
        let shift = (precision + other.mid.bits() + 4).saturating_sub(self.mid.bits());
        let scaled = &self.mid << shift;
        let mid = &scaled / &other.mid;
        let exact = self.rad.is_zero() && other.rad.is_zero() && &mid * &other.mid == scaled;
        let rad = if exact {
            BigInt::zero()
        } else {
            // |a/b - a'/b'| <= (ra + |a/b| rb) / (|b| - rb)
            let over = (&self.rad << shift) + (mid.abs() + 1) * &other.rad;
            over / (other.mid.abs() - &other.rad) + 2
        };
        Self::new(mid, rad, self.exp - other.exp - shift.cast_signed(), precision)
    }

    /// Square root of a number that is not certainly negative.
    pub(crate) fn sqrt(&self, precision: u64) -> Result<Self, Fail> {
        if self.is_exact_zero() {
            return Ok(Self::zero());
        }
        if self.is_positive() == Some(false) {
            return Err(Fail::Undefined);
        }
        let reaches_zero = !self.excludes_zero();
        let value = if reaches_zero { &self.mid + &self.rad } else { self.mid.clone() };
        let mut shift = (2 * precision + 2).saturating_sub(value.bits());
        if (self.exp - shift.cast_signed()) % 2 != 0 {
            shift += 1;
        }
        let scaled = &value << shift;
        let root = scaled.sqrt();
        let exp = (self.exp - shift.cast_signed()) / 2;
        if reaches_zero {
            // Somewhere between zero and the root of the upper end.
            let half: BigInt = (root >> 1u32) + 2i32;
            return Self::new(half.clone(), half, exp, precision);
        }
        let rad = if self.rad.is_zero() && &root * &root == scaled {
            BigInt::zero()
        } else {
            (&self.rad << shift) / &root + 2
        };
        Self::new(root, rad, exp, precision)
    }

    /// The integer below, where the ball does not straddle one.
    pub(crate) fn floor(&self, precision: u64) -> Result<Self, Fail> {
        if self.exp >= 0 && self.rad.is_zero() {
            return Ok(self.clone());
        }
        if self.top() > 4 * precision.cast_signed() {
            return Err(Fail::TooLarge);
        }
        let (low, high) = (&self.mid - &self.rad, &self.mid + &self.rad);
        let floor = |value: BigInt| {
            if self.exp >= 0 { value << self.exp.unsigned_abs() } else { value >> self.exp.unsigned_abs().min(1 << 20) }
        };
        let (low, high) = (floor(low), floor(high));
        if low == high { Ok(Self::integer(low)) } else { Err(Fail::Undefined) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: u64 = 128;

    fn int(value: i64) -> Ball {
        Ball::integer(value)
    }

    #[test]
    fn exact_numbers_stay_exact() -> Result<(), Fail> {
        assert_eq!(int(6).div(&int(3), P)?.exact_integer(), Some(2));
        assert_eq!(int(49).sqrt(P)?.exact_integer(), Some(7));
        assert_eq!(int(7).sub(&int(7), P)?.exact_integer(), Some(0));
        assert_eq!(int(-3).mul(&int(5), P)?.exact_integer(), Some(-15));
        assert_eq!(int(-7).div(&int(2), P)?.floor(P)?.exact_integer(), Some(-4));
        Ok(())
    }

    #[test]
    fn roots_enclose() -> Result<(), Fail> {
        let root = int(2).sqrt(P)?;
        let rest = root.mul(&root, P)?.sub(&int(2), P)?;
        assert!(!rest.excludes_zero());
        assert!(rest.radius_magnitude().is_some_and(|top| top < -110));
        assert_eq!(int(1).div(&Ball::zero(), P).err(), Some(Fail::Undefined));
        Ok(())
    }
}
