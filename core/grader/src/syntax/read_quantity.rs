//! Reads quantities (an expression and its unit) and answers in words.

use std::ops::Range;

use super::Read;
use super::expr::{Expr, Func};
use super::parse::Parser;
use super::read::Reader;
use super::token::{Spaced, Token};
use super::units::{Unit, is_currency, multiplier};
use super::value::{Quantity, Value};
use crate::number::power_of_ten;
use crate::verdict::Reason;

impl Reader {
    /// An expression, and what follows it as its unit.
    pub(super) fn quantity(&self, range: Range<usize>) -> Read<Value> {
        let tokens = &self.tokens[range];
        let money = tokens.iter().any(|(token, _)| token.is_cmd("dollar"));
        let mut tokens: Vec<Spaced> = tokens.iter().filter(|(token, _)| !token.is_cmd("dollar")).cloned().collect();
        let mut unit = None;
        if let Some((Token::Word(word), _)) = tokens.first()
            && is_currency(word)
        {
            unit = Some(Unit::named(word));
            tokens.remove(0);
        }
        let mut parser = Parser::new(&tokens);
        let mut expr = parser.stacked()?;
        let mut rest = parser.rest();
        if let Some((Token::Word(word), _)) = rest.first()
            && let Some(power) = multiplier(word)
        {
            expr = scaled(expr, power);
            rest = &rest[1..];
        }
        unit = unit_of(rest)?.or(unit);
        if money && unit.is_none() {
            unit = Some(Unit::named("dollar"));
        }
        // A sign at the very end is a unit; inside an expression it is a factor.
        let (expr, sign) = match expr {
            Expr::Call(Func::Degree, mut inner) => (inner.pop().ok_or(Reason::Notation)?, Some("degree")),
            Expr::Call(Func::Percent, mut inner) => (inner.pop().ok_or(Reason::Notation)?, Some("percent")),
            Expr::Neg(inner) => match *inner {
                Expr::Call(Func::Degree, mut inner) => {
                    (inner.pop().ok_or(Reason::Notation)?.negative(), Some("degree"))
                }
                Expr::Call(Func::Percent, mut inner) => {
                    (inner.pop().ok_or(Reason::Notation)?.negative(), Some("percent"))
                }
                other => (Expr::Neg(Box::new(other)), None),
            },
            other => (other, None),
        };
        let unit = unit.or_else(|| sign.map(Unit::named));
        Ok(Value::Scalar(Quantity { expr, unit }))
    }

    /// An answer in words.
    pub(super) fn prose(&self, range: Range<usize>) -> Option<Value> {
        let tokens = &self.tokens[range];
        let worded = tokens.iter().any(|(token, _)| match token {
            Token::Word(_) => true,
            Token::Run(run) => run.chars().count() > 1,
            _ => false,
        });
        let plain = |token: &Token| match token {
            Token::Word(_) | Token::Run(_) | Token::Name(_) | Token::Num(_) => true,
            Token::Ch(c) => matches!(c, ',' | '.' | ':' | ';' | '(' | ')' | '-' | '\'' | '?' | '!'),
            Token::Cmd(name) => matches!(*name, "sep" | "percent" | "dollar"),
            _ => false,
        };
        worded.then(|| {
            let kept =
                tokens.iter().filter(|(token, _)| !matches!(token, Token::Ch(',' | '.' | '(' | ')' | ';' | '?')));
            let words: Vec<String> = kept.map(|(token, _)| token.text().to_lowercase()).collect();
            Value::Text(words.join(" "), tokens.iter().all(|(token, _)| plain(token)))
        })
    }
}

/// `1.5 million` as an exact number.
fn scaled(expr: Expr, power: u32) -> Expr {
    let factor = num_rational::BigRational::from_integer(power_of_ten(power));
    match expr {
        Expr::Num(value) | Expr::Decimal(value, _) => Expr::Num(value * factor),
        other => Expr::Product(vec![Expr::Num(factor), other]),
    }
}

/// Reads what is left after an expression as a unit.
fn unit_of(rest: &[Spaced]) -> Read<Option<Unit>> {
    let mut words = Vec::new();
    let mut power = 1;
    let mut at = 0;
    while let Some((token, _)) = rest.get(at) {
        match token {
            Token::Word(word) | Token::Run(word) => words.push(word.clone()),
            Token::Name(name) if words.is_empty() && name == "C" => words.push("celsius".to_owned()),
            Token::Name(name) if words.is_empty() && name == "F" => words.push("fahrenheit".to_owned()),
            Token::Name(name) if !words.is_empty() => words.push(name.clone()),
            // `\frac{\text{m}}{\text{s}}`
            Token::Cmd("frac") => {}
            Token::Ch('{') if at > 0 && rest[at - 1].0.is('}') => words.push("per".to_owned()),
            Token::Ch('{') if at > 0 && rest[at - 1].0.is_cmd("frac") => {}
            Token::Ch('/') => {
                // `m^2/s`: the exponent is that of the first unit alone.
                if power != 1
                    && let Some(word) = words.last_mut()
                {
                    *word = format!("{word}^{power}");
                    power = 1;
                }
                words.push("per".to_owned());
            }
            Token::Ch('(' | ')' | '-' | '{' | '}' | '\'') if !words.is_empty() || token.is('(') => {}
            Token::Cmd("percent") => words.push("percent".to_owned()),
            Token::Cmd("degree") => words.push("degree".to_owned()),
            Token::Ch('^') if !words.is_empty() => {
                let braced = rest.get(at + 1).is_some_and(|(token, _)| token.is('{'));
                let Some((Token::Num(number), _)) = rest.get(at + 1 + usize::from(braced)) else {
                    return Err(Reason::Notation);
                };
                power = number.digits.parse().unwrap_or(1);
                at += 1 + 2 * usize::from(braced);
            }
            _ => return Err(Reason::Notation),
        }
        at += 1;
    }
    if words.is_empty() { Ok(None) } else { Ok(Some(Unit::phrase(&words, power))) }
}
