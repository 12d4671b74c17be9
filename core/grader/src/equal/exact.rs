//! Exact values of constant expressions, where they are fractions of bounded size.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};

use crate::number::{Fraction, factorial};
use crate::syntax::{Expr, Func};

/// Bits that all intermediate results together may have.
const WORK_BITS: u64 = 1 << 19;
/// Bits that a step of a factorial counts for.
const FACTORIAL_WORK: u64 = 64;
/// Bits that one step of the bound of work covers.
const BITS_A_STEP: u64 = 512;
/// Largest lower index of a binomial coefficient.
const LARGEST_CHOICE: u32 = 2_000;

/// The exact value of an expression, if it is a fraction that is not too large.
pub(crate) fn exact(expr: &Expr) -> Option<Fraction> {
    Exact { left: WORK_BITS }.value(expr)
}

/// As [`exact`], at the cost of steps of the comparison: many large values take as long as one that is out of bounds.
pub(crate) fn exact_at_cost(expr: &Expr, work: &mut u32) -> Option<Fraction> {
    let most = WORK_BITS.min(u64::from(*work) * BITS_A_STEP);
    let mut exact = Exact { left: most };
    let value = exact.value(expr);
    // What is too much is refused before it is worked out, so a long list of large values costs no more than one.
    *work -= u32::try_from((most - exact.left) / BITS_A_STEP).unwrap_or(*work);
    value
}

struct Exact {
    left: u64,
}

impl Exact {
    fn value(&mut self, expr: &Expr) -> Option<Fraction> {
        let value = match expr {
            Expr::Num(value) | Expr::Decimal(value, _) | Expr::Based(_, _, value) => Fraction::from(value),
            Expr::Const(_) | Expr::Var(_) | Expr::Apply(..) | Expr::PlusMinus(..) | Expr::Matrix(_) => return None,
            Expr::Neg(inner) => self.value(inner)?.mul(&Fraction::integer(-1))?,
            Expr::Sum(items) => self.fold(items, Fraction::integer(0), Fraction::add)?,
            Expr::Product(items) => self.fold(items, Fraction::integer(1), Fraction::mul)?,
            Expr::Quotient(a, b) => {
                let above = self.value(a)?;
                above.mul(&self.value(b)?.inverse()?)?
            }
            Expr::Power(base, exponent) => {
                // The exponent first: a tower is refused before its base is raised.
                let exponent = self.value(exponent)?;
                self.value(base)?.pow(&exponent)?
            }
            Expr::Call(func, items) => self.call(*func, items)?,
        };
        let (num, den) = value.parts();
        self.left = self.left.checked_sub(num.bits() + den.bits())?;
        Some(value)
    }

    fn fold(
        &mut self,
        items: &[Expr],
        start: Fraction,
        step: impl Fn(&Fraction, &Fraction) -> Option<Fraction>,
    ) -> Option<Fraction> {
        let mut total = start;
        for item in items {
            total = step(&total, &self.value(item)?)?;
            let (num, den) = total.parts();
            self.left = self.left.checked_sub(num.bits() + den.bits())?;
        }
        Some(total)
    }

    fn call(&mut self, func: Func, items: &[Expr]) -> Option<Fraction> {
        let values = items.iter().map(|item| self.value(item)).collect::<Option<Vec<_>>>()?;
        let first = values.first()?;
        match func {
            Func::Root => first.pow(&values.get(1)?.inverse()?),
            Func::Abs => Some(first.abs()),
            Func::Floor => Some(first.floor()),
            Func::Ceil => first.mul(&Fraction::integer(-1))?.floor().mul(&Fraction::integer(-1)),
            Func::Percent => first.mul(&Fraction::integer(100).inverse()?),
            Func::Factorial => {
                let n = first.as_integer()?;
                // Its work is that of its many products, not that of its size.
                self.left = self.left.checked_sub(FACTORIAL_WORK * n.to_u64()?)?;
                factorial(&n).map(Fraction::integer)
            }
            Func::Binomial => binomial(&first.as_integer()?, &values.get(1)?.as_integer()?).map(Fraction::integer),
            Func::Gcd | Func::Lcm => {
                let numbers = values.iter().map(Fraction::as_integer).collect::<Option<Vec<_>>>()?;
                let start = if func == Func::Gcd { BigInt::zero() } else { BigInt::one() };
                let step = |a: BigInt, b: BigInt| {
                    if func == Func::Gcd { a.gcd(&b) } else { a.lcm(&b) }
                };
                Some(Fraction::integer(numbers.into_iter().fold(start, step)))
            }
            _ => None,
        }
    }
}

fn binomial(n: &BigInt, k: &BigInt) -> Option<BigInt> {
    let k = k.to_u32()?;
    // The smaller of k and n - k needs fewer steps.
    let k = n.to_u32().and_then(|n| n.checked_sub(k)).map_or(k, |other| k.min(other));
    if k > LARGEST_CHOICE || n.bits() > 64 {
        return None;
    }
    let mut result = BigInt::one();
    for step in 0..k {
        result = result * (n - step) / (step + 1);
    }
    Some(result)
}
