//! Equations and inequalities: up to a constant factor, from either side, and as intervals.

use super::context::Context;
use super::number::{both, reason};
use super::solution;
use crate::number::{Complex, Meeting, agree};
use crate::syntax::{Constant, Expr, Func, Op, Quantity, Value};
use crate::verdict::{Reason, Verdict};

/// Points at which the factor between two equations must be the same.
const POINTS: u32 = 5;
const BITS: u64 = 256;
const WANTED: u64 = 120;

/// `y = 2x` as an equation, if the name is a variable.
pub(crate) fn from_named(value: &Value) -> Option<Value> {
    let Value::Named(name, inner) = value else {
        return None;
    };
    let Value::Scalar(Quantity { unit: None, .. }) = &**inner else {
        return None;
    };
    if name.chars().next().is_none_or(|c| !c.is_alphabetic()) || name.contains(['(', '/', ':', ',']) {
        return None;
    }
    // `m + n = 37` names a sum.
    let mut terms: Vec<Expr> = name.split('+').map(|term| Expr::Var(term.to_owned())).collect();
    let left = if terms.len() == 1 { terms.remove(0) } else { Expr::Sum(terms) };
    Some(Value::Relation(vec![Value::scalar(left), (**inner).clone()], vec![Op::Equal]))
}

/// Compares two relations.
pub(crate) fn compare(a: &Value, b: &Value, context: &mut Context) -> Verdict {
    let (Value::Relation(sides, ops), Value::Relation(sides2, ops2)) = (a, b) else {
        return Verdict::Different;
    };
    if ops.len() != ops2.len() {
        return Verdict::Different;
    }
    let mut verdict = chains(sides, ops, sides2, ops2, context);
    if !verdict.is_same() {
        let reversed: Vec<Value> = sides2.iter().rev().cloned().collect();
        let flipped: Vec<Op> = ops2.iter().rev().map(|op| op.flipped()).collect();
        let other = chains(sides, ops, &reversed, &flipped, context).other_form();
        if other.is_same() {
            verdict = other;
        }
    }
    if verdict.is_same() || ops.len() != 1 {
        return verdict;
    }
    match (difference(sides), difference(sides2)) {
        (Some(x), Some(y)) => multiples(&x, ops[0], &y, ops2[0], context),
        _ => verdict,
    }
}

fn chains(a: &[Value], ops: &[Op], b: &[Value], ops2: &[Op], context: &mut Context) -> Verdict {
    if ops == ops2 { super::collection::in_order(a, b, context) } else { Verdict::Different }
}

/// Left side minus right side.
fn difference(sides: &[Value]) -> Option<Expr> {
    match sides {
        [Value::Scalar(Quantity { expr: left, unit: None }), Value::Scalar(Quantity { expr: right, unit: None })] => {
            Some(Expr::Sum(vec![left.clone(), right.clone().negative()]))
        }
        _ => None,
    }
}

/// Whether `x op 0` and `y op2 0` are the same up to a constant factor, whose sign turns inequalities around.
fn multiples(x: &Expr, op: Op, y: &Expr, op2: Op, context: &mut Context) -> Verdict {
    if op != op2 && op != op2.flipped() {
        return Verdict::Different;
    }
    if !x.has_variables() || !y.has_variables() {
        return Verdict::Different;
    }
    let mut factor: Option<Complex> = None;
    let mut agreed = 0;
    let mut failed = Reason::Undefined;
    for point in 0..POINTS {
        let step = both(x, y, BITS, point, context).and_then(|met| met.x.div(&met.y, BITS)).and_then(|quotient| {
            let Some(known) = &factor else {
                factor = Some(quotient);
                return Ok(Meeting::Agree);
            };
            agree(known, &quotient, WANTED, BITS)
        });
        match step {
            Ok(Meeting::Apart) => return no_multiples(x, y, op == Op::Equal, context),
            Ok(Meeting::Agree) => agreed += 1,
            Ok(Meeting::Wide) => failed = Reason::Precision,
            Err(fail) => failed = reason(fail),
        }
    }
    let Some(factor) = factor.filter(|_| agreed >= 3) else {
        return Verdict::Unsure(failed);
    };
    if matches!(op, Op::Equal | Op::NotEqual) {
        return if factor.magnitude().is_some() { Verdict::SameOtherForm } else { Verdict::Different };
    }
    let upright = op == op2;
    if factor.re.is_positive() == Some(upright) { Verdict::SameOtherForm } else { Verdict::Different }
}

/// Two relations that differ by more than a factor. Where they are no polynomials they can still be the same.
fn no_multiples(x: &Expr, y: &Expr, equations: bool, context: &mut Context) -> Verdict {
    if polynomial(x) && polynomial(y) {
        return Verdict::Different;
    }
    if equations && (solution::same(x, y, context) || solution::same(y, x, context)) {
        return Verdict::SameOtherForm;
    }
    Verdict::Unsure(Reason::Notation)
}

fn polynomial(expr: &Expr) -> bool {
    !expr.any(&|part| match part {
        Expr::Quotient(_, below) => below.has_variables(),
        Expr::Power(base, exponent) => {
            let natural = (0..=64).any(|n| **exponent == Expr::int(n));
            base.has_variables() && !natural || exponent.has_variables()
        }
        Expr::Call(func, items) => *func != Func::Percent && items.iter().any(Expr::has_variables),
        Expr::Apply(..) => true,
        _ => false,
    })
}

/// A list of equations `p = 5, q = 2` stays as it is; a list within a list is one solution.
pub(crate) fn systems(items: &[Value]) -> Vec<Value> {
    let names: Vec<&str> = items
        .iter()
        .filter_map(|item| match item {
            Value::Named(name, _) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    // `n = 1, 2, 3`: the name belongs to all items.
    if names.len() == 1 && items.len() > 1 {
        items.iter().map(|item| item.unnamed().clone()).collect()
    } else {
        items.to_vec()
    }
}

/// An inequality or several against an interval or a union; `None` if it is not of that kind.
pub(crate) fn with_interval(relation: &Value, set: &Value, context: &mut Context) -> Option<Verdict> {
    let intervals = intervals_of(relation)?;
    let verdict = match intervals.as_slice() {
        [only] => context.compare(only, set),
        _ => context.compare(&Value::Union(intervals), set),
    };
    Some(verdict)
}

fn intervals_of(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(items, _) => {
            let parts = items.iter().map(intervals_of).collect::<Option<Vec<_>>>()?;
            Some(parts.into_iter().flatten().collect())
        }
        Value::Relation(sides, ops) => interval(sides, ops),
        _ => None,
    }
}

fn interval(sides: &[Value], ops: &[Op]) -> Option<Vec<Value>> {
    let infinite = || Value::scalar(Expr::Const(Constant::Infinity));
    let minus = || Value::scalar(Expr::Const(Constant::Infinity).negative());
    // `0 < f(x) < 1` and `1 \le |z| \le 2` say where the values of a function lie, just as `0 < y < 1`.
    let variable = |value: &Value| match value {
        Value::Scalar(Quantity { expr: Expr::Var(_), unit: None }) => true,
        Value::Scalar(Quantity { expr: Expr::Apply(_, of), unit: None }) => of.iter().all(is_variable),
        Value::Scalar(Quantity { expr: Expr::Call(Func::Abs, of), unit: None }) => {
            sides.len() == 3 && of.iter().all(is_variable)
        }
        _ => false,
    };
    let open = |op: Op, value: Value, low: bool| match (op, low) {
        (Op::Less | Op::Greater, true) => ('(', value),
        (Op::Less | Op::Greater, false) => (')', value),
        (_, true) => ('[', value),
        (_, false) => (']', value),
    };
    match (sides, ops) {
        ([low, x, high], [first, second]) if variable(x) => {
            let (low, high, first, second) = match (first, second) {
                (Op::Less | Op::LessEqual, Op::Less | Op::LessEqual) => (low, high, *first, *second),
                (Op::Greater | Op::GreaterEqual, Op::Greater | Op::GreaterEqual) => (high, low, *second, *first),
                _ => return None,
            };
            let (left, low) = open(first, low.clone(), true);
            let (right, high) = open(second, high.clone(), false);
            Some(vec![Value::Bracket(left, vec![low, high], right)])
        }
        ([x, bound], [op]) if variable(x) => Some(half_line(*op, bound, &open, minus(), infinite())),
        ([bound, x], [op]) if variable(x) => Some(half_line(op.flipped(), bound, &open, minus(), infinite())),
        _ => None,
    }
}

fn is_variable(expr: &Expr) -> bool {
    matches!(expr, Expr::Var(_))
}

fn half_line(
    op: Op,
    bound: &Value,
    open: &dyn Fn(Op, Value, bool) -> (char, Value),
    minus: Value,
    plus: Value,
) -> Vec<Value> {
    match op {
        Op::Less | Op::LessEqual => {
            let (right, high) = open(op, bound.clone(), false);
            vec![Value::Bracket('(', vec![minus, high], right)]
        }
        Op::Greater | Op::GreaterEqual => {
            let (left, low) = open(op, bound.clone(), true);
            vec![Value::Bracket(left, vec![low, plus], ')')]
        }
        Op::NotEqual => vec![
            Value::Bracket('(', vec![minus, bound.clone()], ')'),
            Value::Bracket('(', vec![bound.clone(), plus], ')'),
        ],
        Op::Equal => vec![Value::Set(vec![bound.clone()])],
    }
}
