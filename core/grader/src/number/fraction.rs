//! Exact fractions of bounded size. They are not reduced on the way, since a common divisor of large numbers costs
//! more than it saves; equality multiplies across.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Largest size of a numerator or denominator in bits: about twenty thousand decimal digits, `2006!` three times over.
const LIMIT_BITS: u64 = 1 << 16;
/// Largest number whose factorial is computed exactly.
const FACTORIAL_LIMIT: u32 = 4000;

/// A fraction with a positive denominator, not necessarily reduced.
#[derive(Clone, Debug)]
pub(crate) struct Fraction {
    num: BigInt,
    den: BigInt,
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        &self.num * &other.den == &other.num * &self.den
    }
}

impl Fraction {
    pub(crate) fn integer(value: impl Into<BigInt>) -> Self {
        Self { num: value.into(), den: BigInt::one() }
    }

    fn new(num: BigInt, den: BigInt) -> Option<Self> {
        if den.is_zero() || num.bits() > LIMIT_BITS || den.bits() > LIMIT_BITS {
            return None;
        }
        let (num, den) = if den.is_negative() { (-num, -den) } else { (num, den) };
        Some(Self { num, den })
    }

    pub(crate) fn parts(&self) -> (&BigInt, &BigInt) {
        (&self.num, &self.den)
    }

    pub(crate) fn add(&self, other: &Self) -> Option<Self> {
        if self.den == other.den {
            return Self::new(&self.num + &other.num, self.den.clone());
        }
        Self::new(&self.num * &other.den + &other.num * &self.den, &self.den * &other.den)
    }

    pub(crate) fn mul(&self, other: &Self) -> Option<Self> {
        Self::new(&self.num * &other.num, &self.den * &other.den)
    }

    pub(crate) fn inverse(&self) -> Option<Self> {
        Self::new(self.den.clone(), self.num.clone())
    }

    pub(crate) fn as_integer(&self) -> Option<BigInt> {
        if self.den.is_one() {
            return Some(self.num.clone());
        }
        let quotient = &self.num / &self.den;
        (&quotient * &self.den == self.num).then_some(quotient)
    }

    pub(crate) fn floor(&self) -> Self {
        use num_integer::Integer;
        Self::integer(self.num.div_floor(&self.den))
    }

    pub(crate) fn abs(&self) -> Self {
        Self { num: self.num.abs(), den: self.den.clone() }
    }

    /// `self^exponent` where that is a fraction of bounded size: integer powers, and roots that come out even.
    pub(crate) fn pow(&self, exponent: &Self) -> Option<Self> {
        if let Some(n) = exponent.as_integer() {
            let size = self.num.bits().max(self.den.bits());
            // Only 0, 1 and -1 have large powers of bounded size.
            let n =
                if size <= 1 && self.den.is_one() { n.to_i64()? % 2 + 2 * n.to_i64()?.signum() } else { n.to_i64()? };
            let steps = u32::try_from(n.unsigned_abs()).ok()?;
            if u64::from(steps).checked_mul(size.saturating_sub(1))? > LIMIT_BITS {
                return None;
            }
            let power = Self::new(self.num.pow(steps), self.den.pow(steps))?;
            return if n < 0 { power.inverse() } else { Some(power) };
        }
        let reduced = BigRational::new(exponent.num.clone(), exponent.den.clone());
        let degree = reduced.denom().to_u32()?;
        if degree > 64 || self.num.bits().max(self.den.bits()) > 4096 {
            return None;
        }
        let base = BigRational::new(self.num.clone(), self.den.clone());
        if base.is_negative() && degree.is_multiple_of(2) {
            return None;
        }
        let (num, den) = (base.numer().nth_root(degree), base.denom().nth_root(degree));
        if &num.pow(degree) != base.numer() || &den.pow(degree) != base.denom() {
            return None;
        }
        Self::new(num, den)?.pow(&Self::integer(reduced.numer().clone()))
    }
}

impl From<&BigRational> for Fraction {
    fn from(value: &BigRational) -> Self {
        Self { num: value.numer().clone(), den: value.denom().clone() }
    }
}

/// `10^exponent`.
pub(crate) fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

/// `n!` for a number of bounded size.
pub(crate) fn factorial(n: &BigInt) -> Option<BigInt> {
    let n = n.to_u32().filter(|n| *n <= FACTORIAL_LIMIT)?;
    Some((2..=n).fold(BigInt::one(), |product, k| product * k))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(num: i64, den: i64) -> Fraction {
        Fraction { num: num.into(), den: den.into() }
    }

    #[test]
    fn powers_and_roots() {
        assert_eq!(fraction(2, 3).pow(&fraction(-2, 1)), Some(fraction(9, 4)));
        assert_eq!(fraction(8, 27).pow(&fraction(2, 3)), Some(fraction(4, 9)));
        assert_eq!(fraction(-8, 1).pow(&fraction(1, 3)), Some(fraction(-2, 1)));
        assert_eq!(fraction(2, 1).pow(&fraction(1, 2)), None);
        assert_eq!(fraction(9, 1).pow(&fraction(1 << 40, 1)), None);
        assert_eq!(fraction(-1, 1).pow(&fraction((1 << 40) + 1, 1)), Some(fraction(-1, 1)));
        assert_eq!(fraction(0, 1).pow(&fraction(-1, 1)), None);
        assert_eq!(fraction(2, 4), fraction(1, 2));
        assert_eq!(factorial(&BigInt::from(5)), Some(BigInt::from(120)));
        assert_eq!(factorial(&BigInt::from(5000)), None);
    }
}
