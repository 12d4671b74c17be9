//! Matrices: sums, products and multiples are worked out, then entries are compared.

use super::{Context, scalar};
use crate::syntax::{Expr, Value};
use crate::verdict::{Reason, Verdict};

type Rows = Vec<Vec<Expr>>;

/// Largest number of products of entries in a matrix product.
const LARGEST_PRODUCT: usize = 4_096;

pub(crate) fn holds_matrix(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Matrix(_)))
}

/// A number or a matrix.
enum Entry {
    One(Expr),
    Many(Rows),
}

pub(crate) fn compare(a: &Expr, b: &Expr, context: &mut Context) -> Verdict {
    match (evaluate(a), evaluate(b)) {
        (Some(Entry::Many(x)), Some(Entry::Many(y))) => {
            let shape = |rows: &Rows| (rows.len(), rows.first().map_or(0, Vec::len));
            if shape(&x) != shape(&y) {
                return Verdict::Different;
            }
            let mut total = Verdict::Same;
            for (left, right) in x.iter().flatten().zip(y.iter().flatten()) {
                total = total.and(scalar::numbers(left, right, context));
                if total == Verdict::Different {
                    break;
                }
            }
            total
        }
        (Some(Entry::One(x)), Some(Entry::One(y))) => scalar::numbers(&x, &y, context),
        (Some(_), Some(_)) => Verdict::Different,
        _ => Verdict::Unsure(Reason::Notation),
    }
}

fn evaluate(expr: &Expr) -> Option<Entry> {
    match expr {
        Expr::Matrix(rows) => Some(Entry::Many(rows.clone())),
        _ if !holds_matrix(expr) => Some(Entry::One(expr.clone())),
        Expr::Neg(inner) => Some(scale(&Expr::int(-1), &evaluate(inner)?)),
        Expr::Sum(items) => items.iter().map(evaluate).reduce(|a, b| add(&a?, &b?))?,
        Expr::Product(items) => items.iter().map(evaluate).reduce(|a, b| multiply(&a?, &b?))?,
        Expr::Quotient(a, b) if !holds_matrix(b) => {
            Some(scale(&Expr::Quotient(Box::new(Expr::int(1)), b.clone()), &evaluate(a)?))
        }
        Expr::Power(base, exponent) => {
            let n = (2..=16i64).find(|n| **exponent == Expr::int(*n))?;
            let base = evaluate(base)?;
            (1..n).try_fold(multiply(&base, &identity_like(&base)?)?, |product, _| multiply(&product, &base))
        }
        _ => None,
    }
}

fn identity_like(entry: &Entry) -> Option<Entry> {
    let Entry::Many(rows) = entry else {
        return None;
    };
    let size = rows.len();
    let row = |k: usize| (0..size).map(|j| Expr::int(i64::from(k == j))).collect();
    Some(Entry::Many((0..size).map(row).collect()))
}

fn scale(factor: &Expr, entry: &Entry) -> Entry {
    let product = |x: &Expr| Expr::Product(vec![factor.clone(), x.clone()]);
    match entry {
        Entry::One(x) => Entry::One(product(x)),
        Entry::Many(rows) => Entry::Many(rows.iter().map(|row| row.iter().map(product).collect()).collect()),
    }
}

fn add(a: &Entry, b: &Entry) -> Option<Entry> {
    let sum = |x: &Expr, y: &Expr| Expr::Sum(vec![x.clone(), y.clone()]);
    match (a, b) {
        (Entry::One(x), Entry::One(y)) => Some(Entry::One(sum(x, y))),
        (Entry::Many(x), Entry::Many(y)) if x.len() == y.len() && x.first()?.len() == y.first()?.len() => {
            let rows = x.iter().zip(y).map(|(p, q)| p.iter().zip(q).map(|(p, q)| sum(p, q)).collect());
            Some(Entry::Many(rows.collect()))
        }
        _ => None,
    }
}

fn multiply(a: &Entry, b: &Entry) -> Option<Entry> {
    match (a, b) {
        (Entry::One(x), other) | (other, Entry::One(x)) => Some(scale(x, other)),
        (Entry::Many(x), Entry::Many(y)) => {
            let (inner, width) = (y.len(), y.first()?.len());
            if x.first()?.len() != inner || x.len() * inner * width > LARGEST_PRODUCT {
                return None;
            }
            let cell = |row: &[Expr], j: usize| {
                Expr::Sum((0..inner).map(|k| Expr::Product(vec![row[k].clone(), y[k][j].clone()])).collect())
            };
            let rows = x.iter().map(|row| (0..width).map(|j| cell(row, j)).collect());
            Some(Entry::Many(rows.collect()))
        }
    }
}

/// The entries of a matrix of one row or column.
pub(crate) fn as_vector(expr: &Expr) -> Option<Vec<Value>> {
    let Expr::Matrix(rows) = expr else {
        return None;
    };
    let wide = rows.len() == 1;
    let tall = rows.iter().all(|row| row.len() == 1);
    (wide || tall).then(|| rows.iter().flatten().cloned().map(Value::scalar).collect())
}

/// The rows of a matrix as lists in brackets: `[[1, 2], [3, 4]]`.
pub(crate) fn as_rows(expr: &Expr) -> Option<Vec<Value>> {
    let Expr::Matrix(rows) = expr else {
        return None;
    };
    let row = |row: &Vec<Expr>| Value::Bracket('[', row.iter().cloned().map(Value::scalar).collect(), ']');
    Some(rows.iter().map(row).collect())
}
