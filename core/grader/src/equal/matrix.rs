//! Matrices: sums, products and multiples are worked out, then entries are compared.
//!
//! A product puts every entry of its factors into several entries of the result, so that expressions would double with
//! each factor. Where they have become long, entries that are fractions are worked out first.

use num_rational::BigRational;

use super::context::{Context, MOST_PARTS};
use super::exact::exact_at_cost;
use super::scalar;
use crate::syntax::{Expr, Read, Value};
use crate::verdict::{Reason, Verdict};

type Rows = Vec<Vec<Expr>>;

/// Largest number of products of entries in a matrix product.
const LARGEST_PRODUCT: usize = 4_096;
/// Parts from which on a matrix is long.
const MANY_PARTS: usize = 256;
/// Longest fraction in bits that is worked out: its common divisors cost their square.
const LONGEST_FRACTION: u64 = 4_096;
/// Bits of a fraction that one step of the bound of work covers.
const BITS_A_STEP: u64 = 16;

pub(crate) fn holds_matrix(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Matrix(_)))
}

/// A number or a matrix.
enum Entry {
    One(Expr),
    Many(Rows),
}

pub(crate) fn compare(a: &Expr, b: &Expr, context: &mut Context) -> Verdict {
    match (evaluate(a, &mut context.work), evaluate(b, &mut context.work)) {
        (Ok(Entry::Many(x)), Ok(Entry::Many(y))) => {
            if (x.len(), width(&x)) != (y.len(), width(&y)) {
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
        (Ok(Entry::One(x)), Ok(Entry::One(y))) => scalar::numbers(&x, &y, context),
        (Ok(_), Ok(_)) => Verdict::Different,
        (Err(reason), _) | (_, Err(reason)) => Verdict::Unsure(reason),
    }
}

fn evaluate(expr: &Expr, work: &mut u32) -> Read<Entry> {
    match expr {
        Expr::Matrix(rows) => Ok(Entry::Many(rows.clone())),
        _ if !holds_matrix(expr) => Ok(Entry::One(expr.clone())),
        Expr::Neg(inner) => scale(&Expr::int(-1), &evaluate(inner, work)?, work),
        Expr::Sum(items) => folded(items, add, work),
        Expr::Product(items) => folded(items, multiply, work),
        Expr::Quotient(a, b) if !holds_matrix(b) => {
            scale(&Expr::Quotient(Box::new(Expr::int(1)), b.clone()), &evaluate(a, work)?, work)
        }
        Expr::Power(base, exponent) => {
            let n = (2..=16i64).find(|n| **exponent == Expr::int(*n)).ok_or(Reason::Notation)?;
            let base = evaluate(base, work)?;
            let once = multiply(&base, &identity_like(&base)?, work)?;
            (1..n).try_fold(once, |product, _| multiply(&product, &base, work))
        }
        _ => Err(Reason::Notation),
    }
}

type Step = fn(&Entry, &Entry, &mut u32) -> Read<Entry>;

fn folded(items: &[Expr], step: Step, work: &mut u32) -> Read<Entry> {
    let (first, rest) = items.split_first().ok_or(Reason::Notation)?;
    rest.iter().try_fold(evaluate(first, work)?, |total, item| step(&total, &evaluate(item, work)?, work))
}

fn identity_like(entry: &Entry) -> Read<Entry> {
    let Entry::Many(rows) = entry else {
        return Err(Reason::Notation);
    };
    let size = rows.len();
    let row = |k: usize| (0..size).map(|j| Expr::int(i64::from(k == j))).collect();
    Ok(Entry::Many((0..size).map(row).collect()))
}

fn scale(factor: &Expr, entry: &Entry, work: &mut u32) -> Read<Entry> {
    let product = |factor: &Expr, x: &Expr| Expr::Product(vec![factor.clone(), x.clone()]);
    match entry {
        Entry::One(x) => Ok(Entry::One(product(factor, x))),
        Entry::Many(rows) => {
            let (factor, rows) = (worked_out(&vec![vec![factor.clone()]], work)?, worked_out(rows, work)?);
            let entries = rows.iter().map(Vec::len).sum::<usize>();
            bounded((parts(&factor) + 1) * entries + parts(&rows))?;
            let scaled = |row: &Vec<Expr>| row.iter().map(|x| product(&factor[0][0], x)).collect();
            Ok(Entry::Many(rows.iter().map(scaled).collect()))
        }
    }
}

fn add(a: &Entry, b: &Entry, work: &mut u32) -> Read<Entry> {
    let sum = |x: &Expr, y: &Expr| Expr::Sum(vec![x.clone(), y.clone()]);
    match (a, b) {
        (Entry::One(x), Entry::One(y)) => Ok(Entry::One(sum(x, y))),
        (Entry::Many(x), Entry::Many(y)) if x.len() == y.len() && width(x) == width(y) => {
            let (x, y) = (worked_out(x, work)?, worked_out(y, work)?);
            bounded(parts(&x) + parts(&y) + x.len() * width(&x))?;
            let rows = x.iter().zip(&y).map(|(p, q)| p.iter().zip(q).map(|(p, q)| sum(p, q)).collect());
            Ok(Entry::Many(rows.collect()))
        }
        _ => Err(Reason::Notation),
    }
}

fn multiply(a: &Entry, b: &Entry, work: &mut u32) -> Read<Entry> {
    match (a, b) {
        (Entry::One(x), other) | (other, Entry::One(x)) => scale(x, other, work),
        (Entry::Many(x), Entry::Many(y)) => {
            let inner = y.len();
            if width(x) != inner {
                return Err(Reason::Notation);
            }
            let products = x.len() * inner * width(y);
            if products > LARGEST_PRODUCT {
                return Err(Reason::TooLarge);
            }
            spend(products as u64, work)?;
            let (x, y) = (worked_out(x, work)?, worked_out(y, work)?);
            bounded(parts(&x) * width(&y) + parts(&y) * x.len() + products)?;
            let cell = |row: &[Expr], j: usize| {
                Expr::Sum((0..inner).map(|k| Expr::Product(vec![row[k].clone(), y[k][j].clone()])).collect())
            };
            let rows = x.iter().map(|row| (0..width(&y)).map(|j| cell(row, j)).collect());
            Ok(Entry::Many(rows.collect()))
        }
    }
}

fn width(rows: &Rows) -> usize {
    rows.first().map_or(0, Vec::len)
}

fn parts(rows: &Rows) -> usize {
    rows.iter().flatten().map(|x| x.count(&|_| true)).sum()
}

fn bounded(parts: usize) -> Read<()> {
    if parts > MOST_PARTS { Err(Reason::TooLarge) } else { Ok(()) }
}

fn spend(steps: u64, work: &mut u32) -> Read<()> {
    let left = u64::from(*work).checked_sub(steps).ok_or(Reason::WorkLimit)?;
    *work = u32::try_from(left).unwrap_or(0);
    Ok(())
}

/// The entries of a factor; those of a long one as plain numbers where they are fractions of moderate size.
fn worked_out(rows: &Rows, work: &mut u32) -> Read<Rows> {
    if parts(rows) <= MANY_PARTS {
        return Ok(rows.clone());
    }
    let number = |x: &Expr, work: &mut u32| {
        let Some(value) = exact_at_cost(x, work) else {
            return Ok(x.clone());
        };
        let (num, den) = value.parts();
        let bits = num.bits() + den.bits();
        if bits > LONGEST_FRACTION {
            return Ok(x.clone());
        }
        spend(1 + bits / BITS_A_STEP, work)?;
        Ok(Expr::Num(BigRational::new(num.clone(), den.clone())))
    };
    rows.iter().map(|row| row.iter().map(|x| number(x, work)).collect()).collect()
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
