//! Complex numbers as pairs of balls.

use super::{Ball, Fail};

/// `re + i im`. Real numbers have an imaginary part that is exactly zero.
#[derive(Clone, Debug)]
pub(crate) struct Complex {
    pub(crate) re: Ball,
    pub(crate) im: Ball,
}

impl Complex {
    pub(crate) fn real(re: Ball) -> Self {
        Self { re, im: Ball::zero() }
    }

    pub(crate) fn i() -> Self {
        Self { re: Ball::zero(), im: Ball::integer(1) }
    }

    pub(crate) fn integer(value: i64) -> Self {
        Self::real(Ball::integer(value))
    }

    pub(crate) fn is_real(&self) -> bool {
        self.im.is_exact_zero()
    }

    /// Whether the number may be real as far as the enclosure says.
    pub(crate) fn may_be_real(&self) -> bool {
        !self.im.excludes_zero()
    }

    /// Power of two above the larger part; `None` if both may be zero.
    pub(crate) fn magnitude(&self) -> Option<i64> {
        self.re.magnitude().max(self.im.magnitude())
    }

    pub(crate) fn neg(&self) -> Self {
        Self { re: self.re.neg(), im: self.im.neg() }
    }

    pub(crate) fn add(&self, other: &Self, p: u64) -> Result<Self, Fail> {
        Ok(Self { re: self.re.add(&other.re, p)?, im: self.im.add(&other.im, p)? })
    }

    pub(crate) fn sub(&self, other: &Self, p: u64) -> Result<Self, Fail> {
        self.add(&other.neg(), p)
    }

    pub(crate) fn mul(&self, other: &Self, p: u64) -> Result<Self, Fail> {
        if self.is_real() && other.is_real() {
            return Ok(Self::real(self.re.mul(&other.re, p)?));
        }
        let re = self.re.mul(&other.re, p)?.sub(&self.im.mul(&other.im, p)?, p)?;
        let im = self.re.mul(&other.im, p)?.add(&self.im.mul(&other.re, p)?, p)?;
        Ok(Self { re, im })
    }

    pub(crate) fn div(&self, other: &Self, p: u64) -> Result<Self, Fail> {
        if other.is_real() {
            let im = if self.is_real() { Ball::zero() } else { self.im.div(&other.re, p)? };
            return Ok(Self { re: self.re.div(&other.re, p)?, im });
        }
        let conjugate = Self { re: other.re.clone(), im: other.im.neg() };
        let norm = other.norm(p)?;
        self.mul(&conjugate, p)?.div(&Self::real(norm), p)
    }

    /// `|z|^2`.
    fn norm(&self, p: u64) -> Result<Ball, Fail> {
        self.re.mul(&self.re, p)?.add(&self.im.mul(&self.im, p)?, p)
    }

    pub(crate) fn abs(&self, p: u64) -> Result<Self, Fail> {
        if self.is_real() {
            return Ok(Self::real(self.re.abs()));
        }
        Ok(Self::real(self.norm(p)?.sqrt(p)?))
    }

    /// Principal square root.
    pub(crate) fn sqrt(&self, p: u64) -> Result<Self, Fail> {
        if self.is_real() {
            return Ok(if self.re.is_positive() == Some(false) {
                Self { re: Ball::zero(), im: self.re.neg().sqrt(p)? }
            } else {
                Self::real(self.re.sqrt(p)?)
            });
        }
        let half = Self::real(Ball::dyadic(1, -1));
        self.pow(&half, p)
    }

    pub(crate) fn exp(&self, p: u64) -> Result<Self, Fail> {
        let size = self.re.exp(p)?;
        if self.is_real() {
            return Ok(Self::real(size));
        }
        let (sin, cos) = self.im.sin_cos(p)?;
        Ok(Self { re: size.mul(&cos, p)?, im: size.mul(&sin, p)? })
    }

    /// Principal logarithm.
    pub(crate) fn ln(&self, p: u64) -> Result<Self, Fail> {
        if self.is_real() && self.re.is_positive() == Some(true) {
            return Ok(Self::real(self.re.ln(p)?));
        }
        let re = self.norm(p)?.ln(p)?.mul(&Ball::dyadic(1, -1), p)?;
        Ok(Self { re, im: self.arg(p)? })
    }

    /// Angle in `(-pi, pi]`.
    fn arg(&self, p: u64) -> Result<Ball, Fail> {
        match (self.re.is_positive(), self.im.is_positive()) {
            (Some(true), _) => self.im.div(&self.re, p)?.atan(p),
            (Some(false), Some(up)) => {
                let turn = if up { Ball::pi(p)? } else { Ball::pi(p)?.neg() };
                self.im.div(&self.re, p)?.atan(p)?.add(&turn, p)
            }
            (Some(false), None) if self.im.is_exact_zero() => Ball::pi(p),
            (None, Some(up)) => {
                let quarter = Ball::pi(p)?.mul(&Ball::dyadic(1, -1), p)?;
                let quarter = if up { quarter } else { quarter.neg() };
                quarter.sub(&self.re.div(&self.im, p)?.atan(p)?, p)
            }
            _ => Err(Fail::Undefined),
        }
    }

    /// `self^n` by repeated squaring.
    pub(crate) fn powi(&self, n: i64, p: u64) -> Result<Self, Fail> {
        let mut result = Self::integer(1);
        let mut square = self.clone();
        let mut left = n.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                result = result.mul(&square, p)?;
            }
            left >>= 1;
            if left > 0 {
                square = square.mul(&square, p)?;
            }
        }
        if n < 0 { Self::integer(1).div(&result, p) } else { Ok(result) }
    }

    /// Principal power.
    pub(crate) fn pow(&self, exponent: &Self, p: u64) -> Result<Self, Fail> {
        if exponent.is_real()
            && let Some(n) = exponent.re.exact_integer()
        {
            return self.powi(n, p);
        }
        if self.is_real() && self.re.is_exact_zero() {
            return if exponent.re.is_positive() == Some(true) { Ok(Self::integer(0)) } else { Err(Fail::Undefined) };
        }
        exponent.mul(&self.ln(p)?, p)?.exp(p)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Meeting, agree};
    use super::*;

    const P: u64 = 256;

    fn equal(a: &Complex, b: &Complex) -> Result<bool, Fail> {
        Ok(agree(a, b, 150, P)? == Meeting::Agree)
    }

    #[test]
    fn identities_hold() -> Result<(), Fail> {
        // e^(i pi) = -1
        let turn = Complex { re: Ball::zero(), im: Ball::pi(P)? };
        assert!(equal(&turn.exp(P)?, &Complex::integer(-1))?);
        // i^i = e^(-pi/2)
        let half = Complex::real(Ball::pi(P)?.mul(&Ball::dyadic(-1, -1), P)?);
        assert!(equal(&Complex::i().pow(&Complex::i(), P)?, &half.exp(P)?)?);
        // sqrt(-4) = 2i, (1+i)^8 = 16
        assert!(equal(&Complex::integer(-4).sqrt(P)?, &Complex::i().mul(&Complex::integer(2), P)?)?);
        let one_i = Complex::integer(1).add(&Complex::i(), P)?;
        assert!(equal(&one_i.powi(8, P)?, &Complex::integer(16))?);
        assert_eq!(agree(&one_i, &Complex::integer(1), 10, P)?, Meeting::Apart);
        Ok(())
    }
}
