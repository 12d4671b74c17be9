//! Numbers: exact fractions of bounded size, and balls (a middle and a radius) of any precision, real and complex.
//!
//! A ball is a proof: two balls that do not meet hold different numbers. Two balls that do meet hold numbers that
//! agree to as many bits as the radii leave, which is what [`agree`] asks about.

mod ball;
mod complex;
mod fraction;
mod functions;

pub(crate) use ball::Ball;
pub(crate) use complex::Complex;
pub(crate) use fraction::{Fraction, factorial, power_of_ten};

/// Why a number could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fail {
    /// Division by zero, logarithm of zero, a sign that cannot be told.
    Undefined,
    /// The result or a step on the way is too large.
    TooLarge,
    /// Out of work.
    Work,
}

/// What two enclosures say about the numbers in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// They are certainly different.
    Apart,
    /// They agree in all the bits asked for.
    Agree,
    /// They meet, but the enclosures are too wide to say more.
    Wide,
}

/// Compares two enclosures; `bits` is the relative agreement asked for.
pub(crate) fn agree(a: &Complex, b: &Complex, bits: u64, precision: u64) -> Result<Meeting, Fail> {
    let re = a.re.sub(&b.re, precision)?;
    let im = a.im.sub(&b.im, precision)?;
    if re.excludes_zero() || im.excludes_zero() {
        return Ok(Meeting::Apart);
    }
    // The scale is that of the larger number, and 1 where both may be zero (`sqrt(2) - sqrt(2)` against 0).
    let scale = [a, b].into_iter().filter_map(Complex::magnitude).max().unwrap_or(0);
    let wanted = scale.saturating_sub_unsigned(bits);
    let tight = |ball: &Ball| ball.radius_magnitude().is_none_or(|top| top <= wanted);
    Ok(if tight(&re) && tight(&im) { Meeting::Agree } else { Meeting::Wide })
}
