//! A quantity given in parts: `7 dollars and 50 cents`, `5 ft 3 in`, `60^\circ 30'`.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

use crate::syntax::{Expr, Quantity, Spaced, Token, Unit, UnitKind, Value};

/// Most parts: hours, minutes and seconds of several days.
const MOST: usize = 4;

/// The sum of two parts or more whose units measure the same, each smaller than the one before: in the last unit and in
/// the first one, since a number without a unit may be meant in either.
pub(super) fn sum_of_parts(tokens: &[Spaced]) -> Vec<Value> {
    let Some(parts) = parts_of(tokens) else { return Vec::new() };
    let sum = parts.iter().fold(BigRational::zero(), |sum, (value, unit)| sum + value * &unit.factor);
    [parts.last(), parts.first()].into_iter().flatten().map(|(_, unit)| quantity(&sum, unit)).collect()
}

fn quantity(sum: &BigRational, unit: &Unit) -> Value {
    Value::Scalar(Quantity { expr: Expr::Num(sum / &unit.factor), unit: Some(unit.clone()) })
}

fn parts_of(tokens: &[Spaced]) -> Option<Vec<(BigRational, Unit)>> {
    let skipped = |token: &Token| token.is_cmd("sep") || matches!(token, Token::Ch(',' | '{' | '}'));
    let mut kept = tokens.iter().map(|(token, _)| token).filter(|token| !skipped(token)).peekable();
    let mut parts: Vec<(BigRational, Unit)> = Vec::new();
    while let Some(token) = kept.next() {
        let Token::Num(number) = token else { return None };
        let unit = match kept.next() {
            Some(Token::Word(word) | Token::Run(word) | Token::Name(word)) => Unit::named(word),
            Some(Token::Cmd("degree")) => Unit::named("degree"),
            Some(sign) => {
                // `60^\circ`, `30'`, `30^\prime`, `15''`.
                let sign = if sign.is('^') { kept.next()? } else { sign };
                match sign {
                    Token::Cmd("circ" | "degree") => Unit::named("degree"),
                    Token::Ch('\'') if kept.next_if(|next| next.is('\'')).is_some() => arc("arc second", 3600),
                    Token::Ch('\'') => arc("arc minute", 60),
                    _ => return None,
                }
            }
            // The mark of seconds is a quotation mark, which the lexer drops.
            None if parts.last().is_some_and(|(_, last)| last.name == "arc minute") => arc("arc second", 3600),
            None => return None,
        };
        parts.push((number.value.clone(), unit));
    }
    let smaller = parts.windows(2).all(|pair| {
        let ((_, large), (value, small)) = (&pair[0], &pair[1]);
        // `5 ft 14 in` is no way to say it, but still a sum.
        large.kind == small.kind && large.factor > small.factor && *value >= BigRational::zero()
    });
    let known = parts.iter().all(|(_, unit)| !matches!(unit.kind, UnitKind::Other | UnitKind::Clock));
    (smaller && known && (2..=MOST).contains(&parts.len())).then_some(parts)
}

/// A part of a degree.
fn arc(name: &str, parts: i64) -> Unit {
    let factor = BigRational::new(BigInt::from(1), BigInt::from(parts));
    Unit { name: name.to_owned(), kind: UnitKind::Angle, factor }
}

/// `5' 3"` and `5'3''`.
pub(super) fn feet_and_inches(text: &str) -> Option<Value> {
    let text = text.trim().trim_matches('$').replace(['′', '’'], "'").replace(['″', '”'], "\"");
    let text = text.replace("\\prime", "'").replace(['^', '{', '}'], "");
    let (feet, inches) = text.split_once('\'')?;
    let inches = inches.trim().strip_suffix('"').or_else(|| inches.trim().strip_suffix("''"))?;
    let number = |text: &str| text.trim().parse::<u32>().ok().map(|n| BigRational::from_integer(n.into()));
    let twelve = BigRational::from_integer(12.into());
    let sum = number(feet)? * twelve + number(inches)?;
    Some(Value::Scalar(Quantity { expr: Expr::Num(sum), unit: Some(Unit::named("inch")) }))
}
