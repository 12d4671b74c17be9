//! Compares two values that have names: `x = 5`, `f(x) = x + 1`.

use super::context::Context;
use super::relation;
use crate::syntax::{Expr, Value};
use crate::verdict::Verdict;

/// Two named values: the names must agree, but `W(x)` and `W(n)`, `x` and `x_1` do.
pub(super) fn compare(a: &Value, b: &Value, context: &mut Context) -> Verdict {
    let (Value::Named(name, x), Value::Named(name2, y)) = (a, b) else {
        return Verdict::Different;
    };
    if let (Some((f, x_name)), Some((g, y_name))) = (of_variable(name), of_variable(name2))
        && f == g
    {
        // `f(x) = x + 1` and `f(n) = n + 1` are one function.
        let verdict = context.compare(&bound(x, x_name), &bound(y, y_name));
        return if name == name2 { verdict } else { verdict.other_form() };
    }
    let verdict = context.compare(x, y);
    if name == name2 {
        return verdict;
    }
    // `f(3) = 7` and `f(4) = 7` are two facts.
    let called = |name: &str| name.find('(').is_some_and(|at| at > 0);
    if called(name) && called(name2) {
        return if verdict.is_same() { Verdict::Different } else { verdict };
    }
    let root = |name: &str| name.split(['(', '_']).next().unwrap_or_default().to_owned();
    let letter = |name: &str| root(name).chars().count() == 1;
    if root(name) == root(name2) || (context.lenient() && !(letter(name) && letter(name2))) {
        return verdict.other_form();
    }
    // y = 2x and x = y/2 are the same line.
    match (relation::from_named(a), relation::from_named(b)) {
        (Some(left), Some(right)) => relation::compare(&left, &right, context),
        _ => Verdict::Different,
    }
}

/// A copy in which the variable of a function has a name that no answer has.
fn bound(value: &Value, variable: &str) -> Value {
    value.map_exprs(&|expr| {
        expr.map(&|part| match part {
            Expr::Var(name) if name == variable => Expr::Var("bound".to_owned()),
            other => other,
        })
    })
}

/// The function and the variable of `f(x)`.
fn of_variable(name: &str) -> Option<(&str, &str)> {
    let (function, variable) = name.strip_suffix(')')?.split_once('(')?;
    let single = variable.chars().count() == 1 && variable.chars().all(char::is_lowercase);
    single.then_some((function, variable))
}
