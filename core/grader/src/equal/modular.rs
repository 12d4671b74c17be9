//! Compares fractions that are too large to be written out, modulo large primes.
//!
//! Different residues prove a difference. Equal residues for three primes of 61 bits leave a chance below 2^-150 for
//! numbers that were not chosen with these primes in mind.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;

use super::eval::LARGEST_FACTORIAL;
use super::exact::exact;
use crate::syntax::{Expr, Func};
use crate::verdict::{Reason, Verdict};

/// Primes just below 2^61.
const PRIMES: [u64; 3] = [2_305_843_009_213_693_951, 2_305_843_009_213_693_921, 2_305_843_009_213_693_907];

/// Compares two expressions made of fractions, integer powers and factorials, whose leading digits agree.
pub(crate) fn compare(a: &Expr, b: &Expr) -> Verdict {
    for prime in PRIMES {
        match (residue(a, prime), residue(b, prime)) {
            (Some(x), Some(y)) if x == y => {}
            (Some(_), Some(_)) => return Verdict::Different,
            _ => return Verdict::Unsure(Reason::TooLarge),
        }
    }
    Verdict::SameOtherForm
}

fn product(a: u64, b: u64, prime: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) % u128::from(prime)) as u64
}

fn power(base: u64, exponent: u64, prime: u64) -> u64 {
    let (mut result, mut square, mut left) = (1, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = product(result, square, prime);
        }
        square = product(square, square, prime);
        left >>= 1;
    }
    result
}

/// The residue of an integer.
fn reduce(value: &BigInt, prime: u64) -> Option<u64> {
    value.mod_floor(&BigInt::from(prime)).to_u64()
}

/// The residue of a fraction, or `None` where the prime divides a denominator or a part cannot be reduced.
fn residue(expr: &Expr, prime: u64) -> Option<u64> {
    let inverse = |value: u64| (value != 0).then(|| power(value, prime - 2, prime));
    match expr {
        Expr::Num(value) | Expr::Decimal(value, _) | Expr::Based(_, _, value) => {
            Some(product(reduce(value.numer(), prime)?, inverse(reduce(value.denom(), prime)?)?, prime))
        }
        Expr::Neg(inner) => Some((prime - residue(inner, prime)?) % prime),
        Expr::Sum(items) => items.iter().try_fold(0, |sum, item| {
            let total = u128::from(sum) + u128::from(residue(item, prime)?);
            u64::try_from(total % u128::from(prime)).ok()
        }),
        Expr::Product(items) => {
            items.iter().try_fold(1, |total, item| Some(product(total, residue(item, prime)?, prime)))
        }
        Expr::Quotient(a, b) => Some(product(residue(a, prime)?, inverse(residue(b, prime)?)?, prime)),
        Expr::Power(base, exponent) => {
            let exponent = exact(exponent)?.as_integer()?;
            let base = residue(base, prime)?;
            if base == 0 {
                return None;
            }
            // Fermat: exponents count modulo the prime less one.
            Some(power(base, reduce(&exponent, prime - 1)?, prime))
        }
        Expr::Call(Func::Factorial, items) => {
            let n = exact(items.first()?)?.as_integer()?.to_i64()?;
            if !(0..=LARGEST_FACTORIAL).contains(&n) {
                return None;
            }
            Some((2..=n).fold(1, |total, k| product(total, k.unsigned_abs(), prime)))
        }
        Expr::Call(Func::Percent, items) => Some(product(residue(items.first()?, prime)?, inverse(100)?, prime)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_primes() {
        // Fermat's test with several bases.
        for prime in PRIMES {
            for base in [2, 3, 5, 7, 11, 13, 17] {
                assert_eq!(power(base, prime - 1, prime), 1, "{prime}");
            }
        }
    }
}
