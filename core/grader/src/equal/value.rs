//! Compares two typed answers. Every rule is stated once and tried from both sides.

use super::collection::{distinct, in_any_order, in_order};
use super::context::Context;
use super::{matrix, named, number, readings, relation, scalar, union};
use crate::syntax::{Constant, Expr, Quantity, Unit, UnitKind, Value};
use crate::verdict::{Reason, Verdict};

/// Compares two values.
pub(crate) fn compare(a: &Value, b: &Value, context: &mut Context) -> Verdict {
    if a == b {
        return Verdict::Same;
    }
    if let Some(verdict) = alike(a, b, context) {
        return verdict;
    }
    one_sided(a, b, context).or_else(|| one_sided(b, a, context)).unwrap_or(Verdict::Different)
}

/// Two values of one kind.
fn alike(a: &Value, b: &Value, context: &mut Context) -> Option<Verdict> {
    Some(match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => scalars(x, y, context),
        (Value::Named(..), Value::Named(..)) => named::compare(a, b, context),
        (Value::Bracket(open, items, close), Value::Bracket(open2, items2, close2)) => {
            if items.len() != items2.len() {
                return Some(Verdict::Different);
            }
            let same_shape = open == open2 && close == close2;
            // With three items and more the brackets cannot be those of an interval.
            let loose = context.lenient() && items.len() > 2;
            if !same_shape && !loose {
                return Some(Verdict::Different);
            }
            let verdict = in_order(items, items2, context);
            if same_shape { verdict } else { verdict.other_form() }
        }
        (Value::Set(x), Value::Set(y)) => in_any_order(&distinct(x), &distinct(y), context),
        (Value::List(x, _), Value::List(y, _)) => lists(x, y, context),
        (Value::Set(x), Value::List(y, _)) | (Value::List(y, _), Value::Set(x)) => {
            in_any_order(&distinct(x), &distinct(&relation::systems(y)), context).other_form()
        }
        (Value::Union(x), Value::Union(y)) => {
            let verdict = in_any_order(x, y, context);
            if verdict.is_same() {
                return Some(verdict);
            }
            let (x, y) = (union::merged(x, context), union::merged(y, context));
            in_any_order(&x, &y, context).other_form()
        }
        (Value::Relation(..), Value::Relation(..)) => relation::compare(a, b, context),
        (Value::Ratio(x, unit), Value::Ratio(y, unit2)) => {
            if let Some((x, y)) = on_one_clock((x, unit.as_ref()), (y, unit2.as_ref())) {
                return Some(in_order(&x, &y, context).other_form());
            }
            ratios(x, y, unit == unit2, unit.is_some() && unit2.is_some(), context)
        }
        (Value::Text(x, plain), Value::Text(y, plain2)) => {
            if context.lenient() && readings::says_none(x) && readings::says_none(y) {
                return Some(Verdict::SameOtherForm);
            }
            texts(x, y, *plain && *plain2)
        }
        (Value::Dots, Value::Dots) => Verdict::Same,
        _ => return None,
    })
}

/// Rules for two kinds; `None` where none applies with `a` as the first kind.
fn one_sided(a: &Value, b: &Value, context: &mut Context) -> Option<Verdict> {
    match (a, b) {
        (Value::Named(_, inner), Value::Relation(..)) => Some(match relation::from_named(a) {
            Some(equation) => relation::compare(&equation, b, context),
            None => compare(inner, b, context).other_form(),
        }),
        (Value::Named(_, inner), _) => Some(compare(inner, b, context).other_form()),
        // One item is the same as a set or list of one.
        (Value::Set(items) | Value::List(items, _), Value::Scalar(_) | Value::Bracket(..) | Value::Text(..))
            if items.len() == 1 =>
        {
            Some(compare(items.first()?, b, context).other_form())
        }
        (Value::List(items, braced), Value::Bracket(open, coordinates, close)) => {
            Some(list_and_bracket(items, *braced, (*open, coordinates, *close), context))
        }
        (Value::Scalar(Quantity { expr, unit: None }), Value::Bracket(_, coordinates, _)) => {
            let entries = matrix::as_vector(expr).or_else(|| matrix::as_rows(expr))?;
            Some(in_order(&entries, coordinates, context).other_form())
        }
        (Value::Relation(..) | Value::List(..), Value::Bracket(..) | Value::Union(..)) => {
            let verdict = relation::with_interval(a, b, context)?;
            // Whether set notation was asked for cannot be seen from the answers.
            Some(match verdict {
                verdict if verdict.is_same() && !context.lenient() => Verdict::Unsure(Reason::Brackets),
                verdict => verdict.other_form(),
            })
        }
        (Value::Union(parts), Value::Bracket(..) | Value::Set(_)) => match union::merged(parts, context).as_slice() {
            [only] => Some(compare(only, b, context).other_form()),
            _ => None,
        },
        (Value::Ratio(items, unit), Value::Scalar(quantity)) => {
            Some(ratio_and_scalar(items, unit.as_ref(), quantity, context))
        }
        (Value::Text(text, _), Value::Scalar(quantity)) if context.lenient() && spells(&quantity.expr, text) => {
            Some(Verdict::SameOtherForm)
        }
        (Value::Text(text, _), Value::Scalar(_)) if context.lenient() => {
            let number = crate::syntax::number_word(text)?;
            Some(compare(&Value::scalar(Expr::int(number)), b, context).other_form())
        }
        (Value::Text(text, _), Value::Set(items)) if items.is_empty() && context.lenient() => {
            readings::says_none(text).then_some(Verdict::SameOtherForm)
        }
        (Value::Text(text, _), Value::Bracket('(', ends, ')')) if context.lenient() && readings::says_all(text) => {
            let infinite =
                |end: &Value| matches!(end, Value::Scalar(quantity) if number::infinity(&quantity.expr).is_some());
            ends.iter().all(infinite).then_some(Verdict::SameOtherForm)
        }
        // Words mixed with formulas were not understood.
        (Value::Text(_, false), _) => Some(Verdict::Unsure(Reason::Notation)),
        _ => None,
    }
}

fn scalars(a: &Quantity, b: &Quantity, context: &mut Context) -> Verdict {
    if matrix::holds_matrix(&a.expr) || matrix::holds_matrix(&b.expr) {
        return matrix::compare(&a.expr, &b.expr, context);
    }
    scalar::compare(a, b, context)
}

/// Whether letters that were read as variables are a word: `ABC` and `\text{ABC}`, `DNE` and `\text{does not exist}`.
fn spells(expr: &Expr, text: &str) -> bool {
    let letter = |factor: &Expr| match factor {
        Expr::Var(name) => Some(name.to_lowercase()),
        Expr::Const(Constant::E) => Some("e".to_owned()),
        Expr::Const(Constant::I) => Some("i".to_owned()),
        _ => None,
    };
    let word = match expr {
        Expr::Product(factors) => factors.iter().map(letter).collect::<Option<String>>(),
        other => letter(other),
    };
    word.is_some_and(|word| word == text || readings::says_none(&word) && readings::says_none(text))
}

/// Lists are compared in any order. In strict mode another order is not decided: it may have been asked for.
fn lists(a: &[Value], b: &[Value], context: &mut Context) -> Verdict {
    let (a, b) = (relation::systems(a), relation::systems(b));
    let ordered = in_order(&a, &b, context);
    if ordered.is_same() {
        return ordered;
    }
    // Names say which item is which.
    let named = |items: &[Value]| items.iter().all(|item| matches!(item, Value::Named(..)));
    if !context.lenient() {
        let verdict = in_any_order(&a, &b, context);
        if named(&a) && named(&b) {
            return verdict.other_form();
        }
        return if verdict.is_same() { Verdict::Unsure(Reason::ListOrder) } else { verdict };
    }
    in_any_order(&distinct(&a), &distinct(&b), context).other_form()
}

/// `1, 3` and `(1, 3)`: a list and a point, or a list and an interval.
fn list_and_bracket(items: &[Value], braced: bool, bracket: (char, &[Value], char), context: &mut Context) -> Verdict {
    let (open, coordinates, close) = bracket;
    let named = items.iter().all(|item| matches!(item, Value::Named(..)));
    let verdict = in_order(&items.iter().map(|item| item.unnamed().clone()).collect::<Vec<_>>(), coordinates, context);
    if !verdict.is_same() {
        return verdict;
    }
    // `x = 1, y = 2` names its coordinates; three items are no interval; plain braces are as good as brackets.
    let round = open == '(' && close == ')';
    let clear = (named && round) || (context.lenient() && (items.len() > 2 || braced));
    if clear { verdict.other_form() } else { Verdict::Unsure(Reason::Brackets) }
}

/// Ratios are equal in lowest terms unless they are times of day.
fn ratios(a: &[Value], b: &[Value], same_unit: bool, both_units: bool, context: &mut Context) -> Verdict {
    let verdict = in_order(a, b, context);
    if verdict.is_same() {
        return match (same_unit, both_units) {
            (true, _) => verdict,
            (_, true) => Verdict::Different,
            _ if context.lenient() => Verdict::SameOtherForm,
            _ => Verdict::Unsure(Reason::UnitMissing),
        };
    }
    if a.len() != b.len() || !same_unit || both_units || looks_like_time(a) || looks_like_time(b) {
        return verdict;
    }
    let exprs = |items: &[Value]| items.iter().map(plain_expr).collect::<Option<Vec<_>>>();
    let (Some(x), Some(y)) = (exprs(a), exprs(b)) else {
        return verdict;
    };
    let mut total = Verdict::SameOtherForm;
    // a1 : a2 = b1 : b2 means a1 b2 = a2 b1.
    for k in 1..x.len() {
        let left = Expr::Product(vec![x[0].clone(), y[k].clone()]);
        let right = Expr::Product(vec![x[k].clone(), y[0].clone()]);
        total = total.and(number::compare(&left, &right, context));
    }
    total.other_form()
}

/// A time with am or pm and one of the 24-hour clock, both by that clock; `None` where the second one may be of the
/// 12-hour clock too.
fn on_one_clock(a: (&[Value], Option<&Unit>), b: (&[Value], Option<&Unit>)) -> Option<(Vec<Value>, Vec<Value>)> {
    let ((half, unit), full) = match (a.1, b.1) {
        (Some(unit), None) => ((a.0, unit), b.0),
        (None, Some(unit)) => ((b.0, unit), a.0),
        _ => return None,
    };
    let hour = full.first().and_then(hour_of).filter(|hour| *hour == 0 || (13..24).contains(hour))?;
    let mut times = [by_full_clock(half, unit)?, full.to_vec()];
    times[1][0] = Value::scalar(Expr::int(hour));
    let [x, y] = times;
    Some((x, y))
}

fn hour_of(value: &Value) -> Option<i64> {
    plain_expr(value).and_then(|expr| small(&expr))
}

/// The parts of a time with am or pm by the 24-hour clock.
fn by_full_clock(items: &[Value], unit: &Unit) -> Option<Vec<Value>> {
    let hour = items.first().and_then(hour_of).filter(|hour| (1..13).contains(hour))?;
    let after_noon = match unit.name.as_str() {
        "am" => 0,
        "pm" => 12,
        _ => return None,
    };
    let mut items = items.to_vec();
    items[0] = Value::scalar(Expr::int(hour % 12 + after_noon));
    Some(items)
}

fn plain_expr(value: &Value) -> Option<Expr> {
    match value {
        Value::Scalar(Quantity { expr, unit: None }) => Some(expr.clone()),
        _ => None,
    }
}

/// Minutes of sixty: `9:24` may be a time, `1:2` is a ratio. A minute of one digit was written with two.
fn looks_like_time(items: &[Value]) -> bool {
    let numbers: Vec<Option<i64>> = items.iter().map(|item| plain_expr(item).and_then(|expr| small(&expr))).collect();
    match numbers.as_slice() {
        [Some(hour), Some(minute)] => (0..25).contains(hour) && (*minute == 0 || (10..60).contains(minute)),
        _ => false,
    }
}

fn small(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Num(value) if value.is_integer() => i64::try_from(value.to_integer()).ok(),
        _ => None,
    }
}

/// `1:2` and `1/2`; `9:00 am` and `9 am`.
fn ratio_and_scalar(items: &[Value], unit: Option<&Unit>, quantity: &Quantity, context: &mut Context) -> Verdict {
    let (Some(first), Some(second)) = (items.first().and_then(plain_expr), items.get(1).and_then(plain_expr)) else {
        return Verdict::Different;
    };
    if let Some(clock) = quantity.unit.as_ref().filter(|unit| unit.kind == UnitKind::Clock) {
        let hour = Value::scalar(quantity.expr.clone());
        let times = [hour, Value::scalar(Expr::int(0))];
        if let Some((x, y)) = on_one_clock((items, unit), (&times, Some(clock))) {
            return in_order(&x, &y, context).other_form();
        }
        let full = unit == quantity.unit.as_ref() && small(&second) == Some(0) && items.len() == 2;
        return if full { number::compare(&first, &quantity.expr, context).other_form() } else { Verdict::Different };
    }
    if items.len() != 2 || unit.is_some() || quantity.unit.is_some() || !context.lenient() || looks_like_time(items) {
        return Verdict::Different;
    }
    let quotient = Expr::Quotient(Box::new(first), Box::new(second));
    number::compare(&quotient, &quantity.expr, context).other_form()
}

fn texts(a: &str, b: &str, plain: bool) -> Verdict {
    match a == b {
        // Letter case was dropped when the text was read.
        true => Verdict::SameOtherForm,
        false if plain => Verdict::Different,
        false => Verdict::Unsure(Reason::Notation),
    }
}

/// What a value is called in explanations.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Empty => "nothing",
        Value::Scalar(quantity) => match (&quantity.expr, &quantity.unit) {
            (_, Some(_)) => "quantity with a unit",
            (Expr::Num(_), None) => "number",
            (Expr::Decimal(..), None) => "decimal",
            (Expr::Based(..), None) => "numeral in a base",
            (Expr::Matrix(_), None) => "matrix",
            _ => "expression",
        },
        Value::Bracket('(', _, ')') => "tuple or open interval",
        Value::Bracket(..) => "interval",
        Value::Set(_) => "set",
        Value::List(..) => "list",
        Value::Union(_) => "union",
        Value::Relation(..) => "relation",
        Value::Named(..) => "named value",
        Value::Ratio(..) => "ratio or time",
        Value::NumberSet(_) => "set of numbers",
        Value::Dots => "ellipsis",
        Value::Text(..) => "text",
    }
}
