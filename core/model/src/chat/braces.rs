//! Python's `text.format(..)`.

use minijinja::value::{Kwargs, ValueKind, from_args};
use minijinja::{Error, FormatStyle, Value, format_filter};

use super::python::{repr, text};
use super::values::{invalid, within};

/// Named and counted places; a value that is no number prints as Python prints it.
pub(super) fn format(format: &str, args: &[Value]) -> Result<String, Error> {
    // Widths of a place are the only way by which a short text grows long.
    let widest = format.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<usize>().ok()).max();
    within(widest.unwrap_or(0))?;
    let (args, kwargs): (minijinja::value::Rest<Value>, Kwargs) = from_args(args)?;
    let mut printed: Vec<Value> = args.iter().map(as_python).collect::<Result<_, _>>()?;
    let named: Vec<(String, Value)> = kwargs
        .args()
        .map(|name| Ok((name.to_owned(), as_python(&kwargs.get::<Value>(name)?)?)))
        .collect::<Result<_, Error>>()?;
    let mut format = format.to_owned();
    if format.contains("!r") {
        if printed.len() != 1 || !named.is_empty() {
            return Err(invalid("format: !r is known for a single value only"));
        }
        printed = vec![Value::from(repr(&args[0])?)];
        format = format.replace("!r", "");
    }
    format = format.replace("!s", "");
    if !named.is_empty() {
        printed.push(Value::from(named.into_iter().collect::<Kwargs>()));
    }
    format_filter(FormatStyle::StrFormat, &format, &printed)
}

fn as_python(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Number if value.is_integer() => Ok(value.clone()),
        ValueKind::Number | ValueKind::String => Ok(value.clone()),
        _ => text(value).map(Value::from),
    }
}
