//! Reads one side of a relation: unions, sets, intervals, tuples, ratios.

use std::ops::Range;

use num_rational::BigRational;
use num_traits::Zero;

use super::expr::{Constant, Expr};
use super::read::{Reader, op_of};
use super::token::Token;
use super::value::{Quantity, Value};
use super::{DEEPEST, Read};
use crate::verdict::Reason;

impl Reader {
    /// One side: a union, a bracketed thing, a ratio or a quantity.
    pub(super) fn side(&self, range: Range<usize>, depth: usize) -> Read<Value> {
        if depth > DEEPEST {
            return Err(Reason::TooDeep);
        }
        if range.len() == 1 {
            match self.token(range.start) {
                Token::Cmd("dots") => return Ok(Value::Dots),
                Token::Cmd("emptyset") => return Ok(Value::Set(Vec::new())),
                Token::Cmd("reals") => return Ok(whole_line()),
                Token::Cmd(set @ ("integers" | "naturals" | "rationals" | "complexes")) => {
                    return Ok(Value::NumberSet(set));
                }
                _ => {}
            }
        }
        let unions = self.union_cuts(&range);
        if !unions.is_empty() {
            let parts = Self::split(&range, &unions);
            let items = parts.into_iter().map(|part| self.side(part, depth + 1)).collect::<Read<Vec<_>>>()?;
            return Ok(Value::Union(items));
        }
        if let Some(cut) = self.difference_cut(&range) {
            let parts = Self::split(&range, &[cut]);
            if let [from, what] = parts.as_slice() {
                let from = self.side(from.clone(), depth + 1)?;
                let what = self.side(what.clone(), depth + 1)?;
                return without(&from, &what);
            }
        }
        if let Some(value) = self.bracketed(&range, depth)? {
            return Ok(value);
        }
        let colons = self.outside(&range, |token| token.is(':'));
        if !colons.is_empty() {
            return self.ratio(&range, &colons);
        }
        self.quantity(range)
    }

    /// `\setminus`, and a minus sign before a set.
    fn difference_cut(&self, range: &Range<usize>) -> Option<usize> {
        let cuts = self.outside(range, |token| token.is_cmd("setminus") || token.is('-'));
        let before_set = |at: usize| at + 1 < range.end && self.token(at + 1).is_cmd("lset");
        cuts.into_iter().find(|at| self.token(*at).is_cmd("setminus") || before_set(*at))
    }

    /// `\cup`, and a `U` between two brackets.
    fn union_cuts(&self, range: &Range<usize>) -> Vec<usize> {
        let mut cuts = self.outside(range, |token| token.is_cmd("cup") || *token == Token::Name("U".to_owned()));
        cuts.retain(|at| {
            self.token(*at).is_cmd("cup")
                || (*at > range.start
                    && self.token(*at - 1).bracket() == Some(false)
                    && *at + 1 < range.end
                    && self.token(*at + 1).bracket() == Some(true))
        });
        cuts
    }

    /// A range that is one bracket as a whole and is not just an expression in brackets.
    pub(super) fn bracketed(&self, range: &Range<usize>, depth: usize) -> Read<Option<Value>> {
        if range.len() < 2 || self.partner[range.start] != Some(range.end - 1) {
            return Ok(None);
        }
        let inner = range.start + 1..range.end - 1;
        let separators = self.outside(&inner, |token| token.is(',') || token.is(';') || token.is_cmd("sep"));
        let relations = self.outside(&inner, |token| op_of(token).is_some() || token.is_cmd("in"));
        let (open, close) = (self.token(range.start), self.token(range.end - 1));
        match (open, close) {
            (Token::Cmd("lset"), Token::Cmd("rset")) => {
                if inner.is_empty() {
                    return Ok(Some(Value::Set(Vec::new())));
                }
                // {x : condition}
                let bar = self.outside(&inner, |token| token.is('|') || token.is(':')).first().copied();
                if let Some(bar) = bar
                    && !relations.is_empty()
                    && bar + 1 < inner.end
                {
                    return self.list(bar + 1..inner.end, depth + 1).map(Some);
                }
                let value = self.list(inner, depth + 1)?;
                Ok(Some(Value::Set(match value {
                    Value::List(items, _) => items,
                    other => vec![other],
                })))
            }
            (Token::Ch('{'), Token::Ch('}')) if !inner.is_empty() => {
                let value = self.list(inner, depth + 1)?;
                Ok(Some(match value {
                    Value::List(items, _) => Value::List(items, true),
                    other => other,
                }))
            }
            (Token::Ch(open @ ('(' | '[')), Token::Ch(close @ (')' | ']'))) if !separators.is_empty() => {
                let mut items = Vec::new();
                for part in Self::split(&inner, &separators) {
                    items.push(self.coordinate(part, depth + 1)?);
                }
                Ok(Some(Value::Bracket(*open, items, *close)))
            }
            (Token::Cmd("langle"), Token::Cmd("rangle")) if !separators.is_empty() => {
                let parts = Self::split(&inner, &separators);
                let items = parts.into_iter().map(|part| self.coordinate(part, depth + 1)).collect::<Read<Vec<_>>>()?;
                Ok(Some(Value::Bracket('(', items, ')')))
            }
            (Token::Ch('('), Token::Ch(')')) if !relations.is_empty() => self.list(inner, depth + 1).map(Some),
            (Token::Begin(kind), Token::End(_)) if kind == "cases" || kind == "array" => {
                if relations.is_empty() {
                    Ok(None)
                } else {
                    self.list(inner, depth + 1).map(Some)
                }
            }
            _ => Ok(None),
        }
    }

    pub(super) fn ratio(&self, range: &Range<usize>, colons: &[usize]) -> Read<Value> {
        let parts = Self::split(range, colons);
        let mut items = Vec::new();
        let mut unit = None;
        let last = parts.len().saturating_sub(1);
        for (k, part) in parts.into_iter().enumerate() {
            match self.side(part, DEEPEST)? {
                Value::Scalar(quantity) if k == last && quantity.unit.is_some() => {
                    unit = quantity.unit;
                    items.push(Value::scalar(quantity.expr));
                }
                value => items.push(value),
            }
        }
        if items.len() < 2 { Err(Reason::Notation) } else { Ok(Value::Ratio(items, unit)) }
    }
}

fn whole_line() -> Value {
    let end = || Expr::Const(Constant::Infinity);
    Value::Bracket('(', vec![Value::scalar(end().negative()), Value::scalar(end())], ')')
}

/// An interval without some points is a union; other differences are not read.
fn without(from: &Value, what: &Value) -> Read<Value> {
    let (Value::Bracket(open, ends, close), Value::Set(points)) = (from, what) else {
        return Err(Reason::Notation);
    };
    let [low, high] = ends.as_slice() else {
        return Err(Reason::Notation);
    };
    let mut points = points.clone();
    if points.iter().all(|point| rank(point).is_some()) {
        points.sort_by_key(rank);
    }
    let mut parts = Vec::new();
    let (mut open, mut low) = (*open, low.clone());
    for point in points {
        parts.push(Value::Bracket(open, vec![low, point.clone()], ')'));
        (open, low) = ('(', point);
    }
    parts.push(Value::Bracket(open, vec![low, high.clone()], *close));
    Ok(Value::Union(parts))
}

/// The value of a plain number.
fn rank(value: &Value) -> Option<BigRational> {
    let number = |expr: &Expr| match expr {
        Expr::Num(value) | Expr::Decimal(value, _) => Some(value.clone()),
        _ => None,
    };
    let Value::Scalar(Quantity { expr, unit: None }) = value else { return None };
    let (expr, negative) = match expr {
        Expr::Neg(inner) => (&**inner, true),
        other => (other, false),
    };
    let size = match expr {
        Expr::Quotient(above, below) => number(above)? / number(below).filter(|below| !below.is_zero())?,
        other => number(other)?,
    };
    Some(if negative { -size } else { size })
}
