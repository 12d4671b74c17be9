//! Compares two quantities: units, percent signs, decimals at the precision they show.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

use super::context::Context;
use super::eval::Evaluator;
use super::exact::exact_at_cost;
use super::number;
use crate::number::{Ball, power_of_ten};
use crate::syntax::{Expr, Quantity, Unit, UnitKind};
use crate::verdict::{Reason, Verdict};

/// Figures that a decimal must show to stand for a value that no decimal can show.
const FIGURES_STRICT: usize = 6;
const FIGURES_LENIENT: usize = 4;
/// Figures that the shorter of two decimals must show to stand for the longer one in strict mode.
const FIGURES_BOTH_STRICT: usize = 10;
/// Places that it must show in lenient mode.
const PLACES_BOTH_LENIENT: u32 = 2;

/// Compares two quantities.
pub(crate) fn compare(a: &Quantity, b: &Quantity, context: &mut Context) -> Verdict {
    match (&a.unit, &b.unit) {
        (None, None) => numbers(&a.expr, &b.expr, context),
        (Some(unit), None) => one_unit(&a.expr, unit, &b.expr, context),
        (None, Some(unit)) => one_unit(&b.expr, unit, &a.expr, context),
        (Some(left), Some(right)) => two_units(a, left, b, right, context),
    }
}

/// One side has a unit. A percent is a hundredth and a degree is pi/180 in both modes; lenient drops any unit.
fn one_unit(with: &Expr, unit: &Unit, without: &Expr, context: &mut Context) -> Verdict {
    let plain = numbers(with, without, context);
    let factor = match unit.kind {
        UnitKind::Percent => Some(crate::syntax::Func::Percent),
        UnitKind::Angle => Some(crate::syntax::Func::Degree),
        _ => None,
    };
    if context.lenient() && plain.is_same() {
        return Verdict::SameOtherForm;
    }
    if let Some(factor) = factor {
        let converted = numbers(&Expr::Call(factor, vec![with.clone()]), without, context);
        if converted.is_same() {
            return Verdict::SameOtherForm;
        }
    }
    match (unit.kind, plain) {
        (UnitKind::Percent, verdict) if verdict.is_same() => Verdict::Different,
        (_, verdict) if verdict.is_same() => Verdict::Unsure(Reason::UnitMissing),
        (_, verdict) => verdict,
    }
}

fn two_units(a: &Quantity, left: &Unit, b: &Quantity, right: &Unit, context: &mut Context) -> Verdict {
    if left == right {
        return numbers(&a.expr, &b.expr, context);
    }
    if left.kind == right.kind && left.kind != UnitKind::Other && left.kind != UnitKind::Clock {
        let scaled = |expr: &Expr, unit: &Unit| match expr {
            // A decimal keeps what it shows; scaling it exactly is all that can be done.
            Expr::Decimal(value, _) => Expr::Num(value * &unit.factor),
            other => Expr::Product(vec![Expr::Num(unit.factor.clone()), other.clone()]),
        };
        return numbers(&scaled(&a.expr, left), &scaled(&b.expr, right), context).other_form();
    }
    // Counted things ("9 multiples", "9 integers") are not told apart in lenient mode, and "units" fit any length.
    let rate = |unit: &Unit| unit.name.contains(" per ");
    let counted = left.kind == UnitKind::Other && right.kind == UnitKind::Other && !rate(left) && !rate(right);
    let vague = counted || fits(left, right) || fits(right, left);
    match numbers(&a.expr, &b.expr, context) {
        verdict if verdict.is_same() && vague && context.lenient() => Verdict::SameOtherForm,
        verdict if verdict.is_same() && vague => Verdict::Unsure(Reason::UnitMissing),
        verdict if verdict.is_same() => Verdict::Different,
        verdict => verdict,
    }
}

/// Whether a unit only says "units", of a kind that the other one is of.
fn fits(general: &Unit, unit: &Unit) -> bool {
    match general.name.as_str() {
        "unit" => matches!(unit.kind, UnitKind::Length | UnitKind::Area | UnitKind::Volume),
        "unit^2" => unit.kind == UnitKind::Area,
        "unit^3" => unit.kind == UnitKind::Volume,
        _ => false,
    }
}

/// Compares two numbers, with what decimals show taken into account.
pub(crate) fn numbers(a: &Expr, b: &Expr, context: &mut Context) -> Verdict {
    let verdict = number::compare(a, b, context);
    if verdict.is_same() && based(a) != based(b) {
        // 36 and 40_9 are the same number, but one of them answers "write it in base 9".
        return Verdict::Unsure(Reason::Base);
    }
    if verdict != Verdict::Different {
        return verdict;
    }
    let same = match (decimal(a), decimal(b)) {
        (Some((x, p)), Some((y, q))) => both_decimal((&x, p), (&y, q), context),
        (Some((x, p)), None) => stands_for(&x, p, b, context),
        (None, Some((y, q))) => stands_for(&y, q, a, context),
        (None, None) => false,
    };
    if same { Verdict::SameOtherForm } else { Verdict::Different }
}

/// The base that a numeral names.
fn based(expr: &Expr) -> Option<u32> {
    match expr {
        Expr::Based(_, base, _) => Some(*base),
        Expr::Neg(inner) => based(inner),
        _ => None,
    }
}

fn decimal(expr: &Expr) -> Option<(BigRational, u32)> {
    match expr {
        Expr::Decimal(value, places) => Some((value.clone(), *places)),
        Expr::Neg(inner) => decimal(inner).map(|(value, places)| (-value, places)),
        _ => None,
    }
}

/// Whether the longer of two decimals rounds to the shorter one.
fn both_decimal(a: (&BigRational, u32), b: (&BigRational, u32), context: &Context) -> bool {
    let (short, long) = if a.1 <= b.1 { (a, b) } else { (b, a) };
    if short.1 == long.1 {
        return false;
    }
    let shown = if context.lenient() {
        short.1 >= PLACES_BOTH_LENIENT && figures(short.0, short.1) >= 2
    } else {
        figures(short.0, short.1) >= FIGURES_BOTH_STRICT
    };
    shown && within_half(&(short.0 - long.0), short.1)
}

/// Whether a decimal shows the value of something that cannot be written as a decimal: `0.333333` and `1/3`.
fn stands_for(shown: &BigRational, places: u32, other: &Expr, context: &mut Context) -> bool {
    if other.has_variables() || places == 0 || !rounds_to(shown, places, other, context) {
        return false;
    }
    let shown = figures(shown, places);
    let enough = if context.lenient() { FIGURES_LENIENT } else { FIGURES_STRICT };
    context.note = Some(format!(
        "the decimal is the other value rounded, to {shown} figures, and {} mode asks for {enough}",
        context.mode
    ));
    shown >= enough
}

/// Whether a value that no decimal can show rounds to this one.
fn rounds_to(shown: &BigRational, places: u32, other: &Expr, context: &mut Context) -> bool {
    if let Some(value) = exact_at_cost(other, &mut context.work) {
        let (num, den) = value.parts();
        let value = BigRational::new(num.clone(), den.clone());
        return !terminates(value.denom()) && within_half(&(shown - value), places);
    }
    let mut evaluator = Evaluator { bits: 256, point: 0, work: &mut context.work, opaque: false, unreal: false };
    let shown = Expr::Num(shown.clone());
    let (Ok(value), Ok(shown)) = (evaluator.value(other), evaluator.value(&shown)) else {
        return false;
    };
    if !value.may_be_real() {
        return false;
    }
    let scale = Ball::integer(power_of_ten(places) * 2);
    let distance = value.re.sub(&shown.re, 256).and_then(|d| d.abs().mul(&scale, 256));
    distance.and_then(|d| Ball::integer(1).sub(&d, 256)).is_ok_and(|rest| rest.is_positive() == Some(true))
}

fn within_half(difference: &BigRational, places: u32) -> bool {
    difference.abs() * BigRational::from_integer(power_of_ten(places) * 2) <= BigRational::one()
}

/// Significant figures shown.
fn figures(value: &BigRational, places: u32) -> usize {
    let scaled = (value * BigRational::from_integer(power_of_ten(places))).to_integer().abs();
    if scaled.is_zero() { 0 } else { scaled.to_string().len() }
}

/// Longest denominator in bits whose decimal anyone would write to the end.
const LONGEST_FINITE: u64 = 512;

/// Whether a fraction with this denominator has a finite decimal of reasonable length.
fn terminates(den: &BigInt) -> bool {
    if den.bits() > LONGEST_FINITE {
        return false;
    }
    let mut rest = den >> den.trailing_zeros().unwrap_or(0);
    while (&rest % 5u32).is_zero() && !rest.is_zero() {
        rest /= 5u32;
    }
    rest.is_one()
}
