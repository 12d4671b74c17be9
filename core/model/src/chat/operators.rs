//! Python's arithmetic, with a limit to what may grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Object, ObjectRepr, Rest, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};

use super::percent;
use super::python::text;
use super::values::{MOST_ITEMS, Number, Tuple, invalid, is_list, is_tuple, within};

/// Gives its values in turn.
#[derive(Debug)]
pub(super) struct Cycler {
    values: Vec<Value>,
    at: AtomicUsize,
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let at = self.at.load(Ordering::Relaxed) % self.values.len();
        (key.as_str() == Some("current")).then(|| self.values[at].clone())
    }

    fn call_method(self: &Arc<Self>, _: &State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        from_args::<()>(args)?;
        match method {
            "next" => Ok(self.values[self.at.fetch_add(1, Ordering::Relaxed) % self.values.len()].clone()),
            "reset" => {
                self.at.store(0, Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

pub(super) fn cycler(values: Rest<Value>) -> Result<Value, Error> {
    if values.is_empty() {
        return Err(invalid("cycler: expected at least one value, got none"));
    }
    Ok(Value::from_object(Cycler { values: values.0, at: AtomicUsize::new(0) }))
}

pub(super) fn tuple(items: Rest<Value>) -> Value {
    Value::from_object(Tuple(items.0))
}

/// `name a` or `a name b`.
#[expect(clippy::needless_pass_by_value, reason = "minijinja takes functions of this form")]
pub(super) fn operator(name: &str, a: &Value, b: Rest<Value>) -> Result<Value, Error> {
    let Some(b) = b.first() else {
        return match (name, Number::of(a)) {
            ("-", Some(Number::Int(n))) => n.checked_neg().map(|n| Number::Int(n).into()).ok_or_else(too_large),
            ("-", Some(Number::Float(x))) => Ok(Value::from(-x)),
            ("+", Some(number)) => Ok(number.into()),
            _ => Err(invalid(format!("{name} of a value of type {}", a.kind()))),
        };
    };
    match name {
        "~" => {
            let (mut a, b) = (text(a)?, text(b)?);
            within(a.len() + b.len())?;
            a.push_str(&b);
            return Ok(Value::from(a));
        }
        "%" if a.kind() == ValueKind::String => {
            return percent::format(a.as_str().unwrap_or_default(), b).map(Value::from);
        }
        "+" => {
            if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
                within(x.len() + y.len())?;
                return Ok(Value::from(format!("{x}{y}")));
            }
            if is_list(a) && is_list(b) && is_tuple(a) == is_tuple(b) {
                let items: Vec<Value> = a.try_iter()?.chain(b.try_iter()?).collect();
                return list(items, is_tuple(a));
            }
        }
        "*" => {
            if let Some(repeated) = repeat(a, b)?.map_or_else(|| repeat(b, a), |value| Ok(Some(value)))? {
                return Ok(repeated);
            }
        }
        _ => {}
    }
    let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) else {
        return Err(invalid(format!("{name} of values of the types {} and {}", a.kind(), b.kind())));
    };
    arithmetic(name, x, y).map(Value::from)
}

fn list(items: Vec<Value>, tuple: bool) -> Result<Value, Error> {
    if items.len() > MOST_ITEMS {
        return Err(invalid(format!("expected lists of at most {MOST_ITEMS} items, got {}", items.len())));
    }
    Ok(if tuple { Value::from_object(Tuple(items)) } else { Value::from(items) })
}

/// A text or list, `count` times.
fn repeat(value: &Value, count: &Value) -> Result<Option<Value>, Error> {
    let Some(Number::Int(count)) = Number::of(count) else { return Ok(None) };
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    if let Some(text) = value.as_str() {
        within(text.len().saturating_mul(count))?;
        return Ok(Some(Value::from(text.repeat(if text.is_empty() { 0 } else { count }))));
    }
    if !is_list(value) {
        return Ok(None);
    }
    let items: Vec<Value> = value.try_iter()?.collect();
    let n = items.len().saturating_mul(count);
    if n > MOST_ITEMS {
        return Err(invalid(format!("expected lists of at most {MOST_ITEMS} items, got {n}")));
    }
    list(items.iter().cycle().take(n).cloned().collect(), is_tuple(value)).map(Some)
}

fn too_large() -> Error {
    invalid("a number outgrows 128 bits")
}

fn arithmetic(name: &str, x: Number, y: Number) -> Result<Number, Error> {
    if matches!(name, "/" | "//" | "%") && y.float() == 0.0 {
        return Err(invalid("division by zero"));
    }
    if let (Number::Int(a), Number::Int(b)) = (x, y) {
        let whole = match name {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            // Python rounds down, whichever sign the divisor has.
            "//" => a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }),
            "%" => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
            "**" if b >= 0 => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            "/" | "**" => return fraction(name, x.float(), y.float()),
            _ => return Err(invalid(format!("no operator {name}"))),
        };
        return whole.map(Number::Int).ok_or_else(too_large);
    }
    fraction(name, x.float(), y.float())
}

fn fraction(name: &str, a: f64, b: f64) -> Result<Number, Error> {
    let rest = |a: f64, b: f64| {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
    };
    Ok(Number::Float(match name {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "//" => ((a - rest(a, b)) / b).round(),
        "%" => rest(a, b),
        "**" => a.powf(b),
        _ => return Err(invalid(format!("no operator {name}"))),
    }))
}
