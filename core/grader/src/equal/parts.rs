//! A quantity given in parts: `7 dollars and 50 cents`, `5 ft 3 in`, `60^\circ 30'`.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

use crate::syntax::{Expr, Quantity, Spaced, Token, Unit, UnitKind, Value};

/// Most parts: hours, minutes and seconds of several days.
const MOST: usize = 4;

/// The sum of two parts or more whose units measure the same, each smaller than the one before; in the last unit.
pub(super) fn sum_of_parts(tokens: &[Spaced]) -> Option<Value> {
    let mut kept = tokens.iter().map(|(token, _)| token).filter(|token| !token.is_cmd("sep") && !token.is(','));
    let mut parts: Vec<(BigRational, Unit)> = Vec::new();
    while let Some(token) = kept.next() {
        let Token::Num(number) = token else { return None };
        let unit = match kept.next()? {
            Token::Word(word) | Token::Run(word) => Unit::named(word),
            Token::Ch('^') if kept.next()?.is_cmd("circ") => Unit::named("degree"),
            Token::Cmd("degree") => Unit::named("degree"),
            Token::Ch('\'') => arc_minute(),
            _ => return None,
        };
        let smaller = parts.last().is_none_or(|(_, last)| last.kind == unit.kind && last.factor > unit.factor);
        if !smaller || unit.kind == UnitKind::Other || parts.len() == MOST {
            return None;
        }
        parts.push((number.value.clone(), unit));
    }
    let (_, last) = parts.last().filter(|_| parts.len() > 1)?;
    let sum = parts.iter().fold(BigRational::zero(), |sum, (value, unit)| sum + value * &unit.factor);
    let in_last = sum / &last.factor;
    Some(Value::Scalar(Quantity { expr: Expr::Num(in_last), unit: Some(last.clone()) }))
}

/// A sixtieth of a degree.
fn arc_minute() -> Unit {
    let factor = BigRational::new(BigInt::from(1), BigInt::from(60));
    Unit { name: "arc minute".to_owned(), kind: UnitKind::Angle, factor }
}
