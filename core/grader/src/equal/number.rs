//! Compares two numbers or expressions: exactly where both are fractions, by enclosures elsewhere.

use super::context::Context;
use super::eval::Evaluator;
use super::exact::{exact, exact_at_cost};
use super::modular;
use crate::number::{Complex, Fail, Meeting, agree};
use crate::syntax::{Constant, Expr, Func};
use crate::verdict::{Reason, Verdict};

/// First and second precision in bits, and the relative agreement asked for at each.
const COARSE: (u64, u64) = (256, 128);
const FINE: (u64, u64) = (704, 576);
/// Points tried for expressions with variables, more where roots and logarithms leave few of them, and how many of them
/// must agree.
const POINTS: u32 = 8;
const MOST_POINTS: u32 = 24;
const ENOUGH: u32 = 3;

/// Compares two expressions by value.
pub(crate) fn compare(a: &Expr, b: &Expr, context: &mut Context) -> Verdict {
    if a == b {
        return Verdict::Same;
    }
    match (infinity(a), infinity(b)) {
        (Some(up), Some(other)) => {
            return if up == other { Verdict::Same } else { Verdict::Different };
        }
        (None, None) => {}
        _ => return Verdict::Different,
    }
    let values = (exact_at_cost(a, &mut context.work), exact_at_cost(b, &mut context.work));
    if let (Some(left), Some(right)) = values {
        return if left == right { Verdict::SameOtherForm } else { Verdict::Different };
    }
    if a.has_variables() || b.has_variables() { at_points(a, b, context) } else { constants(a, b, context) }
}

/// `Some(true)` for plus infinity.
pub(crate) fn infinity(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Const(Constant::Infinity) => Some(true),
        Expr::Neg(inner) => infinity(inner).map(|up| !up),
        _ => None,
    }
}

/// Two expressions without variables: apart at once, or agreeing to the bits of the second precision.
fn constants(a: &Expr, b: &Expr, context: &mut Context) -> Verdict {
    for (bits, wanted) in [COARSE, FINE] {
        let meeting = both(a, b, bits, 0, context).and_then(|met| agree(&met.x, &met.y, wanted, bits));
        match meeting {
            Ok(Meeting::Apart) => return Verdict::Different,
            // Two fractions that were too large to be compared exactly may differ in the last digit.
            Ok(Meeting::Agree) if bits == FINE.0 && rational(a) && rational(b) => {
                return modular::compare(a, b);
            }
            Ok(Meeting::Agree) if bits == FINE.0 => return Verdict::SameOtherForm,
            Ok(_) => {}
            // Too close to zero to divide by or to take a sign of: more bits may help.
            Err(Fail::Undefined) if bits == COARSE.0 => {}
            Err(fail) => return Verdict::Unsure(reason(fail)),
        }
    }
    Verdict::Unsure(Reason::Precision)
}

/// Two expressions with variables: one point apart is a proof, several points in agreement are as good as one.
fn at_points(a: &Expr, b: &Expr, context: &mut Context) -> Verdict {
    let imaginary = |expr: &Expr| expr.any(&|part| matches!(part, Expr::Const(Constant::I) | Expr::Call(Func::Cis, _)));
    let complex = imaginary(a) || imaginary(b);
    let mut agreed = 0;
    let mut unreal = Vec::new();
    let mut failed = None;
    // Roots of negative numbers were met: points of all signs are to be tried.
    let mut partial = false;
    for point in 0..MOST_POINTS {
        if point >= POINTS && !partial {
            break;
        }
        let Met { x, y, opaque, unreal: outside } = match both(a, b, COARSE.0, point, context) {
            Ok(found) => found,
            Err(fail) => {
                failed = Some(reason(fail));
                if fail == Fail::Work {
                    break;
                }
                continue;
            }
        };
        // Real functions are compared where both are real; `ln x^2` and `2 ln x` are the same there.
        partial |= outside && !complex;
        let real = !outside && x.may_be_real() && y.may_be_real();
        if !complex && !real {
            unreal.push((x, y));
            continue;
        }
        match agree(&x, &y, COARSE.1, COARSE.0) {
            Ok(Meeting::Apart) if opaque => return Verdict::Unsure(Reason::Notation),
            Ok(Meeting::Apart) => return Verdict::Different,
            Ok(Meeting::Agree) => agreed += 1,
            Ok(Meeting::Wide) => failed = Some(Reason::Precision),
            Err(fail) => failed = Some(reason(fail)),
        }
        if agreed >= ENOUGH && point > 2 && !partial {
            return Verdict::SameOtherForm;
        }
    }
    if agreed > 0 && failed != Some(Reason::WorkLimit) {
        return Verdict::SameOtherForm;
    }
    for (x, y) in &unreal {
        match agree(x, y, COARSE.1, COARSE.0) {
            Ok(Meeting::Apart) => return Verdict::Different,
            Ok(Meeting::Agree) => agreed += 1,
            _ => {}
        }
    }
    if agreed > 0 { Verdict::SameOtherForm } else { Verdict::Unsure(failed.unwrap_or(Reason::Undefined)) }
}

/// Whether an expression is a fraction, though perhaps a large one.
fn rational(expr: &Expr) -> bool {
    !expr.any(&|part| match part {
        Expr::Const(_) => true,
        Expr::Power(_, exponent) => exact(exponent).is_none_or(|value| value.as_integer().is_none()),
        Expr::Call(func, _) => !matches!(func, Func::Factorial | Func::Abs | Func::Percent | Func::Binomial),
        _ => false,
    })
}

/// Both values at one point, and what was met on the way.
pub(crate) struct Met {
    pub(crate) x: Complex,
    pub(crate) y: Complex,
    /// A difference proves nothing.
    pub(crate) opaque: bool,
    /// Real functions have no values here.
    pub(crate) unreal: bool,
}

/// Evaluates two expressions at one point.
pub(crate) fn both(a: &Expr, b: &Expr, bits: u64, point: u32, context: &mut Context) -> Result<Met, Fail> {
    let mut evaluator = Evaluator { bits, point, work: &mut context.work, opaque: false, unreal: false };
    let x = evaluator.value(a)?;
    let y = evaluator.value(b)?;
    Ok(Met { x, y, opaque: evaluator.opaque, unreal: evaluator.unreal })
}

pub(crate) fn reason(fail: Fail) -> Reason {
    match fail {
        Fail::Undefined => Reason::Undefined,
        Fail::TooLarge => Reason::TooLarge,
        Fail::Work => Reason::WorkLimit,
    }
}
