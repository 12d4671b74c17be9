//! Exponential, logarithm, sine, cosine and arc tangent of balls, by Taylor series in fixed point.
//!
//! A fixed-point number at `w` bits is an integer that counts units of `2^-w`. Each step is off by at most one unit,
//! so a bound on the number of steps bounds the error; the guard bits keep it far below the precision asked for.

use std::sync::OnceLock;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, Zero};

use super::{Ball, Fail};

/// Guard bits of the fixed-point work.
const GUARD: u64 = 96;
/// Bound on the error of a series in units: fewer than 2^16 steps, and a factor for what follows them.
const SERIES_ERROR: u64 = 1 << 32;
/// Bits of the stored constants; enough for the highest precision used with its guard bits.
const CONSTANT_BITS: u64 = 1800;
/// Largest binary exponent of an argument.
const ARGUMENT_LIMIT: i64 = 48;

/// Fixed-point pi at `w` bits.
fn pi_fixed(w: u64) -> BigInt {
    static PI: OnceLock<BigInt> = OnceLock::new();
    // Machin: pi = 16 atan(1/5) - 4 atan(1/239).
    let pi = PI.get_or_init(|| {
        let one = BigInt::one() << CONSTANT_BITS;
        arctan_inverse(&one, 5) * 16 - arctan_inverse(&one, 239) * 4
    });
    pi >> (CONSTANT_BITS - w.min(CONSTANT_BITS))
}

/// Fixed-point ln 2 at `w` bits.
fn ln2_fixed(w: u64) -> BigInt {
    static LN2: OnceLock<BigInt> = OnceLock::new();
    // ln 2 = 2 atanh(1/3).
    let ln2 = LN2.get_or_init(|| {
        let mut power: BigInt = (BigInt::one() << CONSTANT_BITS) / 3;
        let mut sum = power.clone();
        let mut k = 1u32;
        while !power.is_zero() {
            power /= 9;
            k += 2;
            sum += &power / k;
        }
        sum * 2
    });
    ln2 >> (CONSTANT_BITS - w.min(CONSTANT_BITS))
}

fn arctan_inverse(one: &BigInt, n: u32) -> BigInt {
    let mut power = one / n;
    let mut sum = power.clone();
    let mut k = 1u32;
    while !power.is_zero() {
        power = -power / (n * n);
        k += 2;
        sum += &power / k;
    }
    sum
}

fn mul(a: &BigInt, b: &BigInt, w: u64) -> BigInt {
    (a * b) >> w
}

/// `sum x^k / k!` over the `k` with `k % step == first`, with the sign changing if `alternate`.
fn taylor(x: &BigInt, first: u32, step: u32, alternate: bool, w: u64) -> BigInt {
    let factor = if step == 2 { mul(x, x, w) } else { x.clone() };
    let mut term = if first == 0 { BigInt::one() << w } else { x.clone() };
    let mut sum = term.clone();
    let mut k = first;
    while !term.is_zero() && term != -BigInt::one() {
        term = mul(&term, &factor, w);
        for _ in 0..step {
            k += 1;
            term /= k;
        }
        if alternate {
            term = -term;
        }
        sum += &term;
    }
    sum
}

impl Ball {
    pub(crate) fn pi(precision: u64) -> Result<Self, Fail> {
        let w = precision + GUARD;
        Self::new(pi_fixed(w), BigInt::from(8), -w.cast_signed(), precision)
    }

    /// The argument as a fixed-point number with its radius, if it is not too large.
    fn fixed(&self, w: u64) -> Result<(BigInt, BigInt), Fail> {
        if self.exp + self.mid.bits().max(self.rad.bits()).cast_signed() > ARGUMENT_LIMIT {
            return Err(Fail::TooLarge);
        }
        Ok(self.aligned(-w.cast_signed()))
    }

    pub(crate) fn exp(&self, precision: u64) -> Result<Self, Fail> {
        const HALVINGS: u32 = 8;
        let w = precision + GUARD;
        let (x, rad) = self.fixed(w)?;
        if rad.bits() + 2 > w {
            return Err(Fail::Undefined);
        }
        let ln2 = ln2_fixed(w);
        let turns: BigInt = (&x + (&ln2 >> 1u32)) / &ln2;
        let rest = (x - &turns * &ln2) >> HALVINGS;
        let mut value = taylor(&rest, 0, 1, false, w);
        for _ in 0..HALVINGS {
            value = mul(&value, &value, w);
        }
        // e^(x+r) - e^x <= 2 r e^x for small r; the turns add their own unit each.
        let spread = rad + turns.abs() + 2;
        let rad = mul(&(&value * 2), &spread, w) + SERIES_ERROR;
        let shift = i64::try_from(&turns).map_err(|_| Fail::TooLarge)?;
        Self::new(value, rad, shift - w.cast_signed(), precision)
    }

    /// Natural logarithm of a certainly positive number.
    pub(crate) fn ln(&self, precision: u64) -> Result<Self, Fail> {
        if self.is_positive() != Some(true) {
            return Err(Fail::Undefined);
        }
        let w = precision + GUARD;
        let bits = self.mid.bits();
        let shift = self.exp + bits.cast_signed();
        // self = m * 2^shift with m in [1/2, 1); ln m = 2 atanh((m-1)/(m+1)).
        let m = if w >= bits { &self.mid << (w - bits) } else { &self.mid >> (bits - w) };
        let one = BigInt::one() << w;
        let y = ((&m - &one) << w) / (&m + &one);
        let square = mul(&y, &y, w);
        let mut power = y.clone();
        let mut sum = y;
        let mut k = 1u32;
        while !power.is_zero() && power != -BigInt::one() {
            power = mul(&power, &square, w);
            k += 2;
            sum += &power / k;
        }
        let value = sum * 2 + ln2_fixed(w) * shift;
        let rad = (&self.rad << w) / (&self.mid - &self.rad) + BigInt::from(shift).abs() + SERIES_ERROR;
        Self::new(value, rad, -w.cast_signed(), precision)
    }

    /// Sine and cosine.
    pub(crate) fn sin_cos(&self, precision: u64) -> Result<(Self, Self), Fail> {
        let w = precision + GUARD;
        let (x, rad) = self.fixed(w)?;
        let quarter = pi_fixed(w + 1) >> 2;
        let turns: BigInt = (&x + (&quarter >> 1)) / &quarter;
        let rest = x - &turns * &quarter;
        let (sin, cos) = (taylor(&rest, 1, 2, true, w), taylor(&rest, 0, 2, true, w));
        let rad: BigInt = rad + turns.abs() * 2u32 + SERIES_ERROR;
        let turn = turns.mod_floor(&BigInt::from(4));
        let (sin, cos) = match u8::try_from(&turn).unwrap_or_default() {
            0 => (sin, cos),
            1 => (cos, -sin),
            2 => (-sin, -cos),
            _ => (-cos, sin),
        };
        let exp = -w.cast_signed();
        Ok((Self::new(sin, rad.clone(), exp, precision)?, Self::new(cos, rad, exp, precision)?))
    }

    pub(crate) fn atan(&self, precision: u64) -> Result<Self, Fail> {
        const HALVINGS: u32 = 4;
        let one = Self::integer(1);
        if self.abs().sub(&one, precision)?.is_positive() == Some(true) {
            // atan x = ± pi/2 - atan(1/x)
            let half_pi = Self::pi(precision)?.mul(&Self::dyadic(1, -1), precision)?;
            let half_pi = if self.mid.is_negative() { half_pi.neg() } else { half_pi };
            return half_pi.sub(&one.div(self, precision)?.atan(precision)?, precision);
        }
        let w = precision + GUARD;
        let (mut x, rad) = self.fixed(w)?;
        let unit = BigInt::one() << w;
        for _ in 0..HALVINGS {
            // atan x = 2 atan(x / (1 + sqrt(1 + x^2)))
            let root = ((&unit << w) + &x * &x).sqrt();
            x = (x << w) / (&unit + root);
        }
        let square = mul(&x, &x, w);
        let mut power = x.clone();
        let mut sum = x;
        let mut k = 1u32;
        while !power.is_zero() && power != -BigInt::one() {
            power = -mul(&power, &square, w);
            k += 2;
            sum += &power / k;
        }
        Self::new(sum << HALVINGS, rad + SERIES_ERROR, -w.cast_signed(), precision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: u64 = 256;

    /// The ball holds the number and is narrow.
    fn holds(ball: &Ball, value: f64) {
        let exp = ball.exp + 200;
        let mid = if exp >= 0 { &ball.mid << exp.unsigned_abs() } else { &ball.mid >> exp.unsigned_abs() };
        // 2^-200 times the scaled middle, through the top 60 bits.
        let text: f64 = mid.to_string().parse().unwrap_or(f64::NAN);
        let got = text * 2f64.powi(-200);
        assert!((got - value).abs() <= 1e-14 * value.abs().max(1.0), "{got} for {value}");
        assert!(ball.radius_magnitude().is_none_or(|top| top < -200), "{ball:?}");
    }

    #[test]
    fn values_match_f64() -> Result<(), Fail> {
        for (n, d) in [(1i64, 3i64), (5, 2), (-7, 3), (100, 7), (-1, 1000), (0, 1)] {
            let x = Ball::integer(n).div(&Ball::integer(d), P)?;
            let f = n as f64 / d as f64;
            let (sin, cos) = x.sin_cos(P)?;
            holds(&sin, f.sin());
            holds(&cos, f.cos());
            holds(&x.atan(P)?, f.atan());
            if f.abs() < 10.0 {
                holds(&x.exp(P)?, f.exp());
            }
            if f > 0.0 {
                holds(&x.ln(P)?, f.ln());
            }
        }
        holds(&Ball::pi(P)?, std::f64::consts::PI);
        Ok(())
    }

    #[test]
    fn logarithm_undoes_the_exponential() -> Result<(), Fail> {
        let x = Ball::integer(17).div(&Ball::integer(5), P)?;
        let rest = x.exp(P)?.ln(P)?.sub(&x, P)?;
        assert!(!rest.excludes_zero());
        assert_eq!(Ball::integer(1i64 << 60).exp(P).err(), Some(Fail::TooLarge));
        Ok(())
    }
}
