//! Other ways to read an answer, tried where the usual one did not match.

use super::context::Context;
use super::number;
use super::parts::{feet_and_inches, sum_of_parts};
use super::plain_units::with_unit;
use super::same_factors::same_factors;
use super::side::{Side, USUAL};
use crate::extract::{before_clause, find_in_prose};
use crate::syntax::{Expr, Options, Quantity, Spaced, Token, Value, clean, read, read_tokens};
use crate::verdict::Verdict;

/// A verdict of "same" under another reading, and which reading that was.
pub(super) fn compare(a: &Side, b: &Side, context: &mut Context) -> Option<(Verdict, String)> {
    // A list on one side makes commas separators on the other: `100,200` and `100, 200`.
    let listed = |side: &Side| matches!(side.value.as_ref().map(Value::unnamed), Ok(Value::List(..) | Value::Set(_)));
    if listed(a) != listed(b) {
        let options = Options { commas: false, ..USUAL };
        if let Some(verdict) = reread(a, b, options, context) {
            return Some((verdict, "the same list, with commas between items".to_owned()));
        }
    }
    if !context.lenient() {
        return None;
    }
    let spaced = |side: &Side| side.value.is_err() || matches!(side.value, Ok(Value::Text(..)));
    if spaced(a) || spaced(b) {
        let options = Options { spaces: true, ..USUAL };
        if let Some(verdict) = reread(a, b, options, context) {
            return Some((verdict, "the same number, with spaces between thousands".to_owned()));
        }
    }
    if let Some(verdict) = in_plain_units(a, b, context) {
        return Some((verdict, "the same quantity, with its unit in plain letters".to_owned()));
    }
    if let (Ok(left), Ok(right)) = (&a.tokens, &b.tokens)
        && same_factors(left, right, context)
    {
        return Some((Verdict::SameOtherForm, "the same sum, with its factors in another order".to_owned()));
    }
    for (one, other) in [(a, b), (b, a)] {
        let Ok(right) = &other.value else { continue };
        for (left, how) in alternatives(one, other) {
            let verdict = context.compare(&left, right);
            if verdict.is_same() {
                return Some((verdict.other_form(), how.to_owned()));
            }
        }
        if let Ok(left) = &one.value
            && renamed(left, right)
        {
            let how = "the same function of another variable";
            return Some((Verdict::SameOtherForm, how.to_owned()));
        }
    }
    None
}

/// What one side may also mean beside the other one, and how that is to be explained.
fn alternatives(one: &Side, other: &Side) -> Vec<(Value, &'static str)> {
    let mut found = Vec::new();
    let letter_r = Value::scalar(Expr::Var("R".to_owned()));
    if decimal_comma(&one.text) && is_decimal(other) {
        let options = Options { decimal_comma: true, commas: false, ..USUAL };
        let value = read(&one.text, options).ok();
        found.extend(value.map(|value| (value, "the same decimal, with a decimal comma")));
    }
    found.extend(thousands(one).map(|value| (value, "the same number, with k for thousands")));
    if is_letter(other)
        && let Some(letter) = choice(&one.text)
    {
        let value = Value::scalar(Expr::Var(letter.to_string()));
        found.push((value, "the same letter of a choice"));
    }
    if let Ok(tokens) = &one.tokens {
        found.extend(sum_of_parts(tokens).into_iter().map(|value| (value, "the same quantity, given in parts")));
        found.extend(feet_and_inches(&one.given).map(|value| (value, "the same length, in feet and inches")));
        found.extend(mixed_in_words(tokens).map(|value| (value, "the same mixed number, with an \"and\"")));
        let ratio = matches!(other.value, Ok(Value::Ratio(..)));
        found.extend(ratio_in_words(tokens).filter(|_| ratio).map(|value| (value, "the same ratio, in words")));
    }
    if is_reals(other) && one.value.as_ref().is_ok_and(|value| *value.unnamed() == letter_r) {
        found.extend(other.value.clone().map(|value| (value, "the real numbers")));
    }
    if is_number(other) {
        let plain = !has_unit(other);
        let unit = one_letter_unit(&one.text).and_then(|(number, letter)| {
            let worded = format!("{number}\\text{{ {letter}}}");
            read(if plain { number } else { &worded }, USUAL).ok()
        });
        found.extend(unit.map(|value| (value, "the same number, with a unit of one letter")));
        let worded = matches!(one.value, Ok(Value::Text(..)) | Err(_));
        let prose =
            if is_prose(one) { find_in_prose(&one.given) } else { before_clause(&one.given).filter(|_| worded) };
        let number = prose.and_then(|number| read(&clean(number), USUAL).ok());
        found.extend(number.map(|value| (value, "the number that the sentence gives is the same")));
    }
    found
}

/// Both sides with the letters behind their numbers read as units.
fn in_plain_units(a: &Side, b: &Side, context: &mut Context) -> Option<Verdict> {
    let united = |side: &Side, other: &Side| read_tokens(with_unit(side.tokens.as_ref().ok()?, has_unit(other))?).ok();
    let (left, right) = (united(a, b), united(b, a));
    if left.is_none() && right.is_none() {
        return None;
    }
    let (left, right) = (left.or_else(|| a.value.clone().ok())?, right.or_else(|| b.value.clone().ok())?);
    let verdict = context.compare(&left, &right);
    verdict.is_same().then(|| verdict.other_form())
}

/// `2 and 1/2`: a whole number, "and" and a proper fraction.
fn mixed_in_words(tokens: &[Spaced]) -> Option<Value> {
    let plain: Vec<&Token> = tokens.iter().map(|(token, _)| token).collect();
    let [Token::Num(whole), Token::Cmd("sep"), Token::Num(above), Token::Ch('/'), Token::Num(below)] = plain.as_slice()
    else {
        return None;
    };
    let integers = [whole, above, below].iter().all(|number| number.places.is_none() && number.value.is_integer());
    (integers && above.value < below.value).then(|| {
        let part = &above.value / &below.value;
        Value::scalar(Expr::Num(&whole.value + part))
    })
}

fn reread(a: &Side, b: &Side, options: Options, context: &mut Context) -> Option<Verdict> {
    let (Ok(left), Ok(right)) = (read(&a.text, options), read(&b.text, options)) else {
        return None;
    };
    let verdict = context.compare(&left, &right);
    verdict.is_same().then(|| verdict.other_form())
}

/// `2,74`, `0,111`: one comma, and not before exactly three digits unless nothing but a zero stands before it.
/// One digit after the comma is as likely a list (`1,3`).
fn decimal_comma(text: &str) -> bool {
    let Some((whole, rest)) = text.trim_start_matches('-').split_once(',') else {
        return false;
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let grouped = digits == 3 && whole != "0";
    !whole.is_empty() && whole.bytes().all(|b| b.is_ascii_digit()) && digits > 1 && !grouped && !rest.contains(',')
}

fn is_decimal(side: &Side) -> bool {
    matches!(&side.value, Ok(Value::Scalar(Quantity { expr: Expr::Decimal(..) | Expr::Neg(_), .. })))
}

fn is_number(side: &Side) -> bool {
    let expr = match side.value.as_ref().map(Value::unnamed) {
        Ok(Value::Scalar(quantity)) => &quantity.expr,
        _ => return false,
    };
    !expr.has_variables()
}

fn is_letter(side: &Side) -> bool {
    matches!(&side.value, Ok(Value::Scalar(Quantity { expr: Expr::Var(_), unit: None })))
}

/// `70k` as a number. A factor of one digit (`2k`) is rather a variable's.
fn thousands(side: &Side) -> Option<Value> {
    let Ok(Value::Scalar(Quantity { expr: Expr::Product(factors), unit })) = &side.value else {
        return None;
    };
    match factors.as_slice() {
        [Expr::Num(number), Expr::Var(k)]
            if (k == "k" || k == "K") && *number > num_rational::BigRational::from_integer(9.into()) =>
        {
            let expr = Expr::Product(vec![Expr::Num(number.clone()), Expr::int(1000)]);
            Some(Value::Scalar(Quantity { expr, unit: unit.clone() }))
        }
        _ => None,
    }
}

fn has_unit(side: &Side) -> bool {
    matches!(side.value.as_ref().map(Value::unnamed), Ok(Value::Scalar(Quantity { unit: Some(_), .. })))
}

fn is_reals(side: &Side) -> bool {
    matches!(side.value.as_ref().map(Value::unnamed), Ok(Value::Bracket('(', ends, ')'))
        if ends.iter().all(|end| matches!(end, Value::Scalar(q) if number::infinity(&q.expr).is_some())))
}

/// `3 to 4` as a ratio.
fn ratio_in_words(tokens: &[Spaced]) -> Option<Value> {
    let is_to = |token: &Token| matches!(token, Token::Word(word) if word == "to");
    if !tokens.iter().any(|(token, _)| is_to(token)) {
        return None;
    }
    let colon = |(token, spaced): &Spaced| (if is_to(token) { Token::Ch(':') } else { token.clone() }, *spaced);
    read_tokens(tokens.iter().map(colon).collect()).ok()
}

/// The number and the letter of `5 m`: a plain number, a space and the letter of a unit.
fn one_letter_unit(text: &str) -> Option<(&str, &str)> {
    let (number, letter) = text.rsplit_once(' ')?;
    let plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '/' | '-'));
    (plain && matches!(letter, "m" | "s" | "g" | "h" | "L" | "l" | "N" | "J" | "V" | "W" | "A" | "K"))
        .then_some((number, letter))
}

/// `f(x)` and `f(y)` as whole answers.
fn renamed(a: &Value, b: &Value) -> bool {
    let (Value::Scalar(x), Value::Scalar(y)) = (a, b) else {
        return false;
    };
    match (&x.expr, &y.expr) {
        (Expr::Apply(f, of), Expr::Apply(g, of2)) => {
            f == g && matches!((of.as_slice(), of2.as_slice()), ([Expr::Var(_)], [Expr::Var(_)]))
        }
        _ => false,
    }
}

/// Three words or more.
fn is_prose(side: &Side) -> bool {
    if !matches!(side.value, Ok(Value::Text(..)) | Err(_)) {
        return false;
    }
    let word = |token: &Spaced| matches!(token.0, Token::Word(_) | Token::Run(_));
    side.tokens.as_ref().is_ok_and(|tokens| tokens.iter().filter(|token| word(token)).count() > 2)
}

/// Words for the whole line.
pub(super) fn says_all(text: &str) -> bool {
    matches!(text, "all real numbers" | "all reals" | "real numbers" | "the real numbers" | "all real x")
}

/// The letter of a multiple-choice answer that is written with its content: `(B) 12`, `B. 12`, `Option B`.
fn choice(text: &str) -> Option<char> {
    let plain = text.replace("\\textbf{", "").replace("\\text{", "").replace("\\mathrm{", "").replace(['{', '}'], "");
    let plain = plain.trim();
    let rest = ["option ", "choice ", "answer "].iter().find_map(|word| {
        let head = plain.get(..word.len())?;
        head.eq_ignore_ascii_case(word).then(|| &plain[word.len()..])
    });
    let named = rest.is_some();
    let rest = rest.unwrap_or(plain).trim();
    let inner = rest.strip_prefix('(').unwrap_or(rest);
    let letter = inner.chars().next().filter(|c| ('A'..='J').contains(c))?;
    let after = inner[1..].trim_start();
    let bracketed = rest.starts_with('(');
    let closed = if bracketed { after.starts_with(')') } else { after.starts_with([')', '.', ':']) };
    (closed || (named && after.is_empty())).then_some(letter)
}

/// Words for "there is none".
pub(super) fn says_none(text: &str) -> bool {
    const NONE: [&str; 9] = [
        "no solution",
        "no solutions",
        "no real solution",
        "no real solutions",
        "empty set",
        "the empty set",
        "none",
        "does not exist",
        "dne",
    ];
    NONE.contains(&text)
}
