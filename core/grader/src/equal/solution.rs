//! Equations solved for a variable: `y = 1/x` and `xy = 1`.

use super::context::{Context, MOST_PARTS};
use super::number;
use crate::syntax::Expr;
use crate::verdict::Verdict;

/// Whether `x = 0` is an equation `v = f` for a variable `v`, and `y = 0` is linear in `v` with the solution `f`.
///
/// Linear means that it has no other solution, wherever the factor of `v` is not zero.
pub(crate) fn same(x: &Expr, y: &Expr, context: &mut Context) -> bool {
    let Expr::Sum(sides) = x else { return false };
    let [Expr::Var(name), minus_solution] = sides.as_slice() else {
        return false;
    };
    let solution = minus_solution.clone().negative();
    let is_variable = |part: &Expr| matches!(part, Expr::Var(other) if other == name);
    if solution.any(&is_variable) || !y.any(&is_variable) {
        return false;
    }
    if y.count(&is_variable) * solution.count(&|_| true) > MOST_PARTS {
        return false;
    }
    let at = |value: &Expr| {
        y.map(&|part| match &part {
            Expr::Var(other) if other == name => value.clone(),
            _ => part,
        })
    };
    let zero = Expr::int(0);
    if !number::compare(&at(&solution), &zero, context).is_same() {
        return false;
    }
    // y(0) - 2 y(1) + y(2) = 0 and y(0) != y(1); at 3 as well, since a cubic may have an even middle.
    let bend = |a: i64, b: i64, c: i64| {
        let twice = Expr::Product(vec![Expr::int(2), at(&Expr::int(b))]);
        Expr::Sum(vec![at(&Expr::int(a)), twice.negative(), at(&Expr::int(c))])
    };
    let straight = [bend(1, 2, 3), bend(2, 3, 4), bend(3, 5, 7)];
    let level = number::compare(&at(&Expr::int(1)), &at(&Expr::int(2)), context) != Verdict::Different;
    !level && straight.iter().all(|expr| number::compare(expr, &zero, context).is_same())
}
