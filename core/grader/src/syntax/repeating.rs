//! Decimals that go on: `0.333...` repeats what it shows.

use num_bigint::BigInt;
use num_rational::BigRational;

use crate::number::power_of_ten;

/// Fewest digits that show a pattern.
const FEWEST: usize = 3;
/// Longest block of digits that is looked for.
const LONGEST_BLOCK: usize = 12;

/// The value of the digits after the point when they go on as they end: a block that is shown at least twice, one digit
/// at least three times.
pub(super) fn continued(digits: &str) -> Option<BigRational> {
    let bytes = digits.as_bytes();
    let repeats = |block: usize| {
        let shown = if block == 1 { FEWEST } else { 2 * block };
        bytes.len() >= shown && bytes[bytes.len() - shown..].windows(block + 1).all(|w| w[0] == w[block])
    };
    let block = (1..=LONGEST_BLOCK).find(|block| repeats(*block))?;
    let places = |n: usize| u32::try_from(n).ok().map(power_of_ten);
    let shown: BigInt = digits.parse().ok()?;
    let period: BigInt = digits.get(digits.len() - block..)?.parse().ok()?;
    let scale = places(digits.len())?;
    Some(BigRational::new(shown, scale.clone()) + BigRational::new(period, (places(block)? - 1) * scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_found() {
        let ratio = |a: i64, b: i64| Some(BigRational::new(a.into(), b.into()));
        assert_eq!(continued("333"), ratio(1, 3));
        assert_eq!(continued("1666"), ratio(1, 6));
        assert_eq!(continued("142857142857"), ratio(1, 7));
        assert_eq!(continued("14159"), None);
        assert_eq!(continued("33"), None);
    }
}
