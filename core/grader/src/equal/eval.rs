//! Values of expressions as balls, with seeded values for the variables.

use num_traits::{Signed, ToPrimitive, Zero};

use super::exact::exact;
use crate::number::{Ball, Complex, Fail, Fraction};
use crate::syntax::{Constant, Expr, Func};

/// Evaluates expressions at one point and one precision.
pub(crate) struct Evaluator<'w> {
    pub(crate) bits: u64,
    /// Which of the seeded points.
    pub(crate) point: u32,
    pub(crate) work: &'w mut u32,
    /// A function was met whose values are not known here; a difference then proves nothing.
    pub(crate) opaque: bool,
    /// A root or logarithm of a negative number was met: a real function has no value here.
    pub(crate) unreal: bool,
}

/// Work of an elementary function, in products.
const FUNCTION_WORK: u32 = 50;
/// Largest number whose factorial is multiplied out.
pub(super) const LARGEST_FACTORIAL: i64 = 8_000;

impl Evaluator<'_> {
    fn spend(&mut self, steps: u32) -> Result<(), Fail> {
        // A product costs about as much more as it has more words, and then some.
        let scale = if self.bits > 512 { 4 } else { 1 };
        *self.work = self.work.checked_sub(steps.saturating_mul(scale)).ok_or(Fail::Work)?;
        Ok(())
    }

    pub(crate) fn value(&mut self, expr: &Expr) -> Result<Complex, Fail> {
        let p = self.bits;
        self.spend(1)?;
        match expr {
            Expr::Num(value) | Expr::Decimal(value, _) | Expr::Based(_, _, value) => {
                self.fraction(&Fraction::from(value))
            }
            Expr::Const(Constant::Pi) => Ok(Complex::real(Ball::pi(p)?)),
            Expr::Const(Constant::E) => Ok(Complex::real(Ball::integer(1).exp(p)?)),
            Expr::Const(Constant::I) => Ok(Complex::i()),
            Expr::Const(Constant::Infinity) | Expr::PlusMinus(..) | Expr::Matrix(_) => Err(Fail::Undefined),
            Expr::Var(name) => Ok(Complex::real(self.variable(name))),
            Expr::Neg(inner) => Ok(self.value(inner)?.neg()),
            Expr::Sum(items) => {
                let mut sum = Complex::integer(0);
                for item in items {
                    sum = sum.add(&self.value(item)?, p)?;
                }
                Ok(sum)
            }
            Expr::Product(items) => {
                let mut product = Complex::integer(1);
                for item in items {
                    product = product.mul(&self.value(item)?, p)?;
                }
                Ok(product)
            }
            Expr::Quotient(a, b) => {
                let above = self.value(a)?;
                above.div(&self.value(b)?, p)
            }
            Expr::Power(base, exponent) => self.power(base, exponent),
            Expr::Call(func, items) => self.call(*func, items),
            Expr::Apply(name, items) => {
                let values = items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>()?;
                self.unknown(name, &values)
            }
        }
    }

    fn fraction(&self, value: &Fraction) -> Result<Complex, Fail> {
        let (num, den) = value.parts();
        Ok(Complex::real(Ball::integer(num.clone()).div(&Ball::integer(den.clone()), self.bits)?))
    }

    /// A number of 24 bits between 1/4 and 9/4 for each name and point. At the second point all values are negative, at
    /// every second one after it some.
    fn variable(&self, name: &str) -> Ball {
        let random = mix(name, self.point);
        let size = i64::from(random & 0x00ff_ffff) * 2 + (1 << 22) + 1;
        let negative = self.point == 1 || (self.point % 2 == 1 && random >> 31 == 0);
        Ball::dyadic(if negative { -size } else { size }, -24)
    }

    /// A smooth function that nothing is known of: a cubic polynomial with coefficients drawn from its name.
    fn unknown(&mut self, name: &str, arguments: &[Complex]) -> Result<Complex, Fail> {
        let p = self.bits;
        let coefficient = |k: u32| Complex::real(Ball::dyadic(i64::from(mix(name, 1000 + k) | 1), -30));
        let mut sum = coefficient(0);
        for (place, argument) in (1u32..).zip(arguments) {
            let mut power = argument.clone();
            for degree in 1..=3 {
                self.spend(2)?;
                sum = sum.add(&coefficient(10 * place + degree).mul(&power, p)?, p)?;
                power = power.mul(argument, p)?;
            }
        }
        Ok(sum)
    }

    fn power(&mut self, base: &Expr, exponent: &Expr) -> Result<Complex, Fail> {
        let p = self.bits;
        if *base == Expr::Const(Constant::E) {
            self.spend(FUNCTION_WORK)?;
            return self.value(exponent)?.exp(p);
        }
        if let Some(rational) = exact(exponent) {
            if let Some(n) = rational.as_integer() {
                let n = n.to_i64().ok_or(Fail::TooLarge)?;
                self.spend(2 * (64 - n.unsigned_abs().leading_zeros()))?;
                return self.value(base)?.powi(n, p);
            }
            let base = self.value(base)?;
            let exponent = self.fraction(&rational)?;
            let (num, den) = rational.parts();
            // Odd roots of negative numbers are real, as in school.
            self.spend(FUNCTION_WORK)?;
            if base.is_real() && base.re.is_positive() == Some(false) && den.bit(0) {
                let size = base.neg().pow(&exponent, p)?;
                return Ok(if num.bit(0) { size.neg() } else { size });
            }
            self.unreal |= is_negative(&base);
            return base.pow(&exponent, p);
        }
        self.spend(2 * FUNCTION_WORK)?;
        let base = self.value(base)?;
        base.pow(&self.value(exponent)?, p)
    }

    fn call(&mut self, func: Func, items: &[Expr]) -> Result<Complex, Fail> {
        let p = self.bits;
        if func == Func::Root
            && let [base, degree] = items
        {
            if *degree == Expr::int(2) {
                self.spend(2)?;
                let base = self.value(base)?;
                self.unreal |= is_negative(&base);
                return base.sqrt(p);
            }
            let inverse = Expr::Quotient(Box::new(Expr::int(1)), Box::new(degree.clone()));
            return self.power(base, &inverse);
        }
        let values = items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = values.first() else {
            return Err(Fail::Undefined);
        };
        match func {
            Func::Degree => {
                let turn = Complex::real(Ball::pi(p)?).div(&Complex::integer(180), p)?;
                first.mul(&turn, p)
            }
            Func::Percent => first.div(&Complex::integer(100), p),
            Func::Abs => first.abs(p),
            Func::Floor if first.is_real() => Ok(Complex::real(first.re.floor(p)?)),
            Func::Ceil if first.is_real() => Ok(Complex::real(first.re.neg().floor(p)?.neg())),
            Func::Min | Func::Max => self.extreme(func, &values),
            Func::Factorial | Func::Binomial | Func::Gcd | Func::Lcm => self.counted(func, items, &values),
            Func::Cis => {
                self.spend(FUNCTION_WORK)?;
                Complex::i().mul(first, p)?.exp(p)
            }
            Func::Exp => {
                self.spend(FUNCTION_WORK)?;
                first.exp(p)
            }
            Func::Ln => {
                self.spend(FUNCTION_WORK)?;
                self.unreal |= is_negative(first);
                first.ln(p)
            }
            Func::Log => {
                self.spend(2 * FUNCTION_WORK)?;
                let base = values.get(1).ok_or(Fail::Undefined)?;
                self.unreal |= is_negative(first);
                first.ln(p)?.div(&base.ln(p)?, p)
            }
            Func::Sinh | Func::Cosh | Func::Tanh => self.hyperbolic(func, first),
            _ if !first.is_real() => Err(Fail::Undefined),
            Func::Sin | Func::Cos | Func::Tan | Func::Cot | Func::Sec | Func::Csc => {
                self.trigonometric(func, &first.re)
            }
            Func::Arctan => {
                self.spend(FUNCTION_WORK)?;
                Ok(Complex::real(first.re.atan(p)?))
            }
            Func::Arcsin | Func::Arccos => {
                self.spend(FUNCTION_WORK)?;
                self.arc(func, &first.re)
            }
            _ => Err(Fail::Undefined),
        }
    }

    fn hyperbolic(&mut self, func: Func, x: &Complex) -> Result<Complex, Fail> {
        let p = self.bits;
        self.spend(2 * FUNCTION_WORK)?;
        let (up, down) = (x.exp(p)?, x.neg().exp(p)?);
        let (minus, plus) = (up.sub(&down, p)?, up.add(&down, p)?);
        match func {
            Func::Sinh => minus.div(&Complex::integer(2), p),
            Func::Cosh => plus.div(&Complex::integer(2), p),
            _ => minus.div(&plus, p),
        }
    }

    fn trigonometric(&mut self, func: Func, x: &Ball) -> Result<Complex, Fail> {
        let p = self.bits;
        self.spend(2 * FUNCTION_WORK)?;
        let (sin, cos) = x.sin_cos(p)?;
        let (sin, cos) = (Complex::real(sin), Complex::real(cos));
        match func {
            Func::Sin => Ok(sin),
            Func::Cos => Ok(cos),
            Func::Tan => sin.div(&cos, p),
            Func::Cot => cos.div(&sin, p),
            Func::Sec => Complex::integer(1).div(&cos, p),
            _ => Complex::integer(1).div(&sin, p),
        }
    }

    /// `arcsin x = 2 atan(x / (1 + sqrt(1 - x^2)))`, `arccos x = pi/2 - arcsin x`.
    fn arc(&self, func: Func, x: &Ball) -> Result<Complex, Fail> {
        let p = self.bits;
        let one = Ball::integer(1);
        let root = one.sub(&x.mul(x, p)?, p)?.sqrt(p)?;
        let half = x.div(&one.add(&root, p)?, p)?.atan(p)?;
        let arcsin = half.add(&half, p)?;
        if func == Func::Arcsin {
            return Ok(Complex::real(arcsin));
        }
        Ok(Complex::real(Ball::pi(p)?.mul(&Ball::dyadic(1, -1), p)?.sub(&arcsin, p)?))
    }

    fn extreme(&self, func: Func, values: &[Complex]) -> Result<Complex, Fail> {
        let mut best = values.first().cloned().ok_or(Fail::Undefined)?;
        for value in values {
            if !value.is_real() {
                return Err(Fail::Undefined);
            }
            let larger = value.re.sub(&best.re, self.bits)?.is_positive() == Some(true);
            let smaller = value.re.sub(&best.re, self.bits)?.is_positive() == Some(false);
            if (func == Func::Max && larger) || (func == Func::Min && smaller) {
                best = value.clone();
            }
        }
        Ok(best)
    }

    /// Functions of integers. Elsewhere (at the value of a variable) they are unknown functions.
    fn counted(&mut self, func: Func, items: &[Expr], values: &[Complex]) -> Result<Complex, Fail> {
        self.spend(FUNCTION_WORK)?;
        if let Some(value) = exact(&Expr::Call(func, items.to_vec())) {
            let (num, den) = value.parts();
            self.spend(((num.bits() + den.bits()) / 16) as u32)?;
            return self.fraction(&value);
        }
        let number = items.first().and_then(exact).and_then(|value| value.as_integer());
        match (func, number) {
            (Func::Factorial, Some(n)) => {
                let n = n.to_i64().filter(|n| *n <= LARGEST_FACTORIAL).ok_or(Fail::TooLarge)?;
                if n < 0 {
                    return Err(Fail::Undefined);
                }
                let mut product = Complex::integer(1);
                for k in 2..=n {
                    self.spend(1)?;
                    product = product.mul(&Complex::integer(k), self.bits)?;
                }
                Ok(product)
            }
            (_, Some(n)) if n.is_zero() || n.is_positive() => Err(Fail::TooLarge),
            _ if items.iter().any(Expr::has_variables) => {
                self.opaque = true;
                self.unknown(func.name(), values)
            }
            _ => Err(Fail::TooLarge),
        }
    }
}

fn is_negative(value: &Complex) -> bool {
    value.is_real() && value.re.is_positive() == Some(false)
}

/// A hash of a name and a number: FNV-1a with a final mix.
fn mix(name: &str, salt: u32) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash >> 32) as u32
}
