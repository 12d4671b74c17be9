//! Python's `text % values`.

use minijinja::Value;
use minijinja::value::ValueKind;

use super::python::{repr, text};
use super::values::{Number, Tuple, invalid, within};
use minijinja::Error;

/// `format % values`: a tuple gives one value each, a mapping the named ones, anything else is the only value.
pub(super) fn format(format: &str, values: &Value) -> Result<String, Error> {
    let tuple = values.downcast_object_ref::<Tuple>();
    let mut items = tuple.map_or_else(|| vec![values.clone()], |tuple| tuple.0.clone()).into_iter();
    let mapping = values.kind() == ValueKind::Map;
    let mut named = mapping;
    let mut out = String::new();
    let mut rest = format.chars().peekable();
    let missing = || invalid("expected as many values as the format has places, got fewer");
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut value = None;
        if rest.next_if_eq(&'(').is_some() {
            let name: String = rest.by_ref().take_while(|c| *c != ')').collect();
            if !mapping {
                return Err(invalid(format!("%({name}): expected a mapping, got a value of type {}", values.kind())));
            }
            let found = values.get_item(&Value::from(name.as_str()))?;
            if found.is_undefined() {
                return Err(invalid(format!("%({name}): the mapping has no such key")));
            }
            named = true;
            value = Some(found);
        }
        let mut flags = String::new();
        while let Some(flag) = rest.next_if(|c| "-+ 0#".contains(*c)) {
            flags.push(flag);
        }
        let mut number = |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<Option<i64>, Error> {
            if rest.next_if_eq(&'*').is_some() {
                let Some(Number::Int(n)) = items.next().as_ref().and_then(Number::of) else { return Err(missing()) };
                return Ok(i64::try_from(n).ok());
            }
            let mut digits = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            Ok(digits.parse().ok())
        };
        let mut width = number(&mut rest)?.unwrap_or(0);
        let mut precision = None;
        if rest.next_if_eq(&'.').is_some() {
            precision = Some(usize::try_from(number(&mut rest)?.unwrap_or(0)).unwrap_or(0));
        }
        if width < 0 {
            flags.push('-');
            width = -width;
        }
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        within(width.saturating_add(precision.unwrap_or(0)))?;
        let kind = rest.next().ok_or_else(|| invalid("the format ends inside a place"))?;
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = match value {
            Some(value) => value,
            None => items.next().ok_or_else(missing)?,
        };
        out.push_str(&place(kind, &flags, width, precision, &value)?);
        within(out.len())?;
    }
    // A mapping may stay unused; a tuple or a single value may not.
    if !named && items.next().is_some() {
        return Err(invalid("expected as many values as the format has places, got more"));
    }
    Ok(out)
}

fn place(kind: char, flags: &str, width: usize, precision: Option<usize>, value: &Value) -> Result<String, Error> {
    let cut = |text: String| precision.map_or(text.clone(), |n| text.chars().take(n).collect());
    let has = |flag: char| flags.contains(flag);
    let number = || {
        Number::of(value)
            .ok_or_else(|| invalid(format!("%{kind}: expected a number, got a value of type {}", value.kind())))
    };
    let whole = |limited: bool| match number()? {
        Number::Int(n) => Ok(n),
        #[expect(clippy::cast_possible_truncation, reason = "as Python's int(float)")]
        Number::Float(x) if limited && x.is_finite() => Ok(x.trunc() as i128),
        Number::Float(_) => Err(invalid(format!("%{kind}: expected a whole number"))),
    };
    let (negative, body) = match kind {
        's' => (None, cut(text(value)?)),
        'r' => (None, cut(repr(value)?)),
        'a' => (None, cut(super::python::ascii(&repr(value)?))),
        'c' => match value.as_str() {
            Some(text) if text.chars().count() == 1 => (None, text.to_owned()),
            _ => {
                let code = whole(false)?;
                let c = u32::try_from(code).ok().and_then(char::from_u32);
                (None, c.ok_or_else(|| invalid("%c: expected one character"))?.to_string())
            }
        },
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let n = whole(matches!(kind, 'd' | 'i' | 'u'))?;
            let digits = match kind {
                'x' => format!("{:x}", n.unsigned_abs()),
                'X' => format!("{:X}", n.unsigned_abs()),
                'o' => format!("{:o}", n.unsigned_abs()),
                _ => n.unsigned_abs().to_string(),
            };
            let prefix = if has('#') {
                match kind {
                    'x' => "0x",
                    'X' => "0X",
                    'o' => "0o",
                    _ => "",
                }
            } else {
                ""
            };
            (Some(n < 0), format!("{prefix}{:0>1$}", digits, precision.unwrap_or(0)))
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            let x = number()?.float();
            let body = float(kind, x.abs(), precision.unwrap_or(6));
            (Some(x.is_sign_negative() && !x.is_nan()), body)
        }
        other => return Err(invalid(format!("%{other}: no such place in a format"))),
    };
    let sign = match negative {
        Some(true) => "-",
        Some(false) if has('+') => "+",
        Some(false) if has(' ') => " ",
        _ => "",
    };
    let room = width.saturating_sub(sign.len() + body.chars().count());
    Ok(if has('-') {
        format!("{sign}{body}{}", " ".repeat(room))
    } else if has('0') && negative.is_some() {
        format!("{sign}{}{body}", "0".repeat(room))
    } else {
        format!("{}{sign}{body}", " ".repeat(room))
    })
}

/// C's `%e`, `%f` and `%g`.
fn float(kind: char, x: f64, precision: usize) -> String {
    let body = if x.is_nan() {
        "nan".to_owned()
    } else if x.is_infinite() {
        "inf".to_owned()
    } else {
        match kind.to_ascii_lowercase() {
            'f' => format!("{x:.precision$}"),
            'e' => exponent(&format!("{x:.precision$e}")),
            _ => {
                let precision = precision.max(1);
                let scientific = format!("{x:.*e}", precision - 1);
                let power: i64 = scientific.split('e').nth(1).and_then(|power| power.parse().ok()).unwrap_or(0);
                let digits = i64::try_from(precision).unwrap_or(i64::MAX);
                let trimmed = |text: &str| {
                    if text.contains('.') {
                        text.trim_end_matches('0').trim_end_matches('.').to_owned()
                    } else {
                        text.to_owned()
                    }
                };
                if power < -4 || power >= digits {
                    let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
                    exponent(&format!("{}e{power}", trimmed(mantissa)))
                } else {
                    trimmed(&format!("{x:.*}", usize::try_from(digits - 1 - power).unwrap_or(0)))
                }
            }
        }
    };
    if kind.is_ascii_uppercase() { body.to_uppercase() } else { body }
}

/// `1.5e7` with the sign and the two digits of C: `1.5e+07`.
fn exponent(text: &str) -> String {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = power.strip_prefix('-').map_or(('+', power), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}
