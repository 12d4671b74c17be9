//! Filters and tests that minijinja lacks or that differ from Jinja's.
#![expect(clippy::needless_pass_by_value, reason = "minijinja takes functions of this form")]

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, State, Value, filters};

use super::methods::{self, capitalize};
use super::operators;
use super::percent;
use super::python::text;
use super::values::{Number, Tuple, View, invalid, within};

pub(super) fn add(environment: &mut Environment<'_>) {
    for name in ["lines", "split", "chain", "zip", "bool", "pprint", "urlencode", "attr"] {
        environment.remove_filter(name);
    }
    for name in ["startingwith", "endingwith", "containing", "int"] {
        environment.remove_test(name);
    }
    add_texts(environment);
    add_lists(environment);
    environment.add_test("iterable", |value: &Value| match value.kind() {
        ValueKind::Plain => value.try_iter().is_ok(),
        kind => matches!(
            kind,
            ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable
        ),
    });
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map)
            || (value.kind() == ValueKind::Iterable && value.len().is_some())
    });
    environment.add_test("number", |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool));
    // A method without its call is undefined here, and Jinja's undefined can be called.
    environment.add_test("callable", |value: &Value| matches!(value.kind(), ValueKind::Plain | ValueKind::Undefined));
}

fn add_texts(environment: &mut Environment<'_>) {
    environment.add_filter("string", |value: &Value| text(value));
    environment.add_filter("upper", |value: &Value| text(value).map(|text| text.to_uppercase()));
    environment.add_filter("lower", |value: &Value| text(value).map(|text| text.to_lowercase()));
    environment.add_filter("capitalize", |value: &Value| text(value).map(|text| capitalize(&text)));
    environment.add_filter("title", |value: &Value| text(value).map(|text| title(&text)));
    environment.add_filter("trim", |state: &State, value: &Value, characters: Option<Value>| {
        methods::call(state, &Value::from(text(value)?), "strip", characters.as_slice())
    });
    environment.add_filter("replace", |value: &Value, old: &Value, new: &Value, count: Option<i64>| {
        methods::replace(&text(value)?, &text(old)?, &text(new)?, count)
    });
    environment.add_filter("center", |value: &Value, width: Option<i64>| {
        methods::pad(&text(value)?, "center", width.unwrap_or(80), ' ')
    });
    environment.add_filter("wordcount", |value: &Value| {
        let text = text(value)?;
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        Ok::<_, Error>(words.count())
    });
    for name in ["escape", "e", "forceescape"] {
        environment.add_filter(name, |value: &Value| text(value).map(|text| escape(&text)));
    }
    environment.add_filter("urlencode", |value: &str| url(value));
    environment.add_filter("round", round);
    environment.add_filter("truncate", truncate);
    environment.add_filter("indent", indent);
    environment.add_filter("format", |format: &Value, items: Rest<Value>, named: Kwargs| {
        let names: Vec<String> = named.args().map(str::to_owned).collect();
        let values = match (items.is_empty(), names.is_empty()) {
            (_, true) => Value::from_object(Tuple(items.0)),
            (true, false) => names
                .iter()
                .map(|name| named.get::<Value>(name).map(|value| (name.clone(), value)))
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .collect(),
            (false, false) => return Err(invalid("format: values are either counted or named")),
        };
        percent::format(&text(format)?, &values)
    });
    environment.add_filter("int", |value: &Value, default: Option<Value>, base: Option<u32>, kwargs: Kwargs| {
        let default = default.or(kwargs.get("default")?).unwrap_or_else(|| Value::from(0));
        let base = base.or(kwargs.get("base")?).unwrap_or(10);
        kwargs.assert_all_used()?;
        if value.is_undefined() {
            return Err(invalid("int: the value is undefined"));
        }
        Ok::<_, Error>(whole(value, base).map_or(default, |n| Number::Int(n).into()))
    });
    environment.add_filter("float", |value: &Value, default: Option<Value>, kwargs: Kwargs| {
        let default = default.or(kwargs.get("default")?).unwrap_or_else(|| Value::from(0.0));
        kwargs.assert_all_used()?;
        if value.is_undefined() {
            return Err(invalid("float: the value is undefined"));
        }
        let parsed = value.as_str().and_then(|text| text.trim().replace('_', "").parse::<f64>().ok());
        Ok::<_, Error>(parsed.or_else(|| Number::of(value).map(Number::float)).map_or(default, Value::from))
    });
}

fn add_lists(environment: &mut Environment<'_>) {
    for name in ["length", "count"] {
        environment.add_filter(name, |value: &Value| match (value.kind(), value.len()) {
            (ValueKind::Undefined, _) => Ok(0),
            (_, Some(length)) => Ok(length),
            (kind, None) => Err(invalid(format!("a value of type {kind} has no length"))),
        });
    }
    environment.add_filter("first", |value: &Value| Ok::<_, Error>(value.try_iter()?.next().unwrap_or_default()));
    environment.add_filter("last", |value: &Value| Ok::<_, Error>(value.try_iter()?.last().unwrap_or_default()));
    environment.add_filter("reverse", |value: &Value| -> Result<Value, Error> {
        if let Some(text) = value.as_str() {
            return Ok(Value::from(text.chars().rev().collect::<String>()));
        }
        let mut items: Vec<Value> = value.try_iter()?.collect();
        items.reverse();
        Ok(Value::from_object(View(items)))
    });
    environment.add_filter("sum", |value: &Value, counted: Rest<Value>, named: Kwargs| -> Result<Value, Error> {
        let attribute = counted.first().cloned().or(named.get("attribute")?);
        let start = counted.get(1).cloned().or(named.get("start")?).unwrap_or_else(|| Value::from(0));
        named.assert_all_used()?;
        value.try_iter()?.try_fold(start, |sum, item| {
            let item = match &attribute {
                Some(attribute) if !attribute.is_none() => item.get_item(attribute)?,
                _ => item,
            };
            operators::operator("+", &sum, Rest(vec![item]))
        })
    });
    environment.add_filter("list", |value: &Value| -> Result<Value, Error> {
        match value.kind() {
            ValueKind::Undefined => Ok(Value::from(Vec::<Value>::new())),
            ValueKind::None => Err(invalid("list: none is no list")),
            _ => Ok(Value::from(value.try_iter()?.collect::<Vec<Value>>())),
        }
    });
    environment.add_filter(
        "join",
        |value: &Value, between: Option<Value>, attribute: Option<Value>, kwargs: Kwargs| {
            let between = text(&between.or(kwargs.get("d")?).unwrap_or_else(|| Value::from("")))?;
            let attribute = attribute.or(kwargs.get("attribute")?);
            kwargs.assert_all_used()?;
            if value.is_none() {
                return Err(invalid("join: none is no list"));
            }
            let mut out = String::new();
            for (n, item) in value.try_iter()?.enumerate() {
                let item = match &attribute {
                    Some(attribute) => item.get_item(attribute)?,
                    None => item,
                };
                let item = text(&item)?;
                within(out.len() + between.len() + item.len())?;
                out.push_str(if n > 0 { &between } else { "" });
                out.push_str(&item);
            }
            Ok(out)
        },
    );
    environment.add_filter("items", |state: &State, value: &Value| match value.kind() {
        ValueKind::Undefined => Ok(Value::from(Vec::<Value>::new())),
        _ => methods::call(state, value, "items", &[]),
    });
    environment.add_filter("dictsort", |value: &Value, rest: Rest<Value>, kwargs: Kwargs| {
        // Jinja counts what minijinja wants named.
        let mut named: Vec<(String, Value)> = Vec::new();
        for (name, value) in ["case_sensitive", "by", "reverse"].into_iter().zip(rest.0) {
            named.push((name.to_owned(), value));
        }
        for name in ["case_sensitive", "by", "reverse"] {
            if let Some(value) = kwargs.get::<Option<Value>>(name)? {
                named.push((name.to_owned(), value));
            }
        }
        kwargs.assert_all_used()?;
        let sorted = filters::dictsort(value, named.into_iter().collect())?;
        let pairs = sorted.try_iter()?.map(|pair| Ok(Value::from_object(Tuple(pair.try_iter()?.collect()))));
        pairs.collect::<Result<Vec<Value>, Error>>().map(Value::from)
    });
}

fn title(text: &str) -> String {
    let mut start = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if start {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        start = c.is_whitespace() || "-({[<".contains(c);
    }
    out
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn url(text: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes().map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn round(value: &Value, counted: Rest<Value>, named: Kwargs) -> Result<Value, Error> {
    let precision = counted.first().cloned().or(named.get("precision")?).unwrap_or_else(|| Value::from(0));
    let method = counted.get(1).cloned().or(named.get("method")?).unwrap_or_else(|| Value::from("common"));
    named.assert_all_used()?;
    let number = Number::of(value).ok_or_else(|| invalid(format!("round: a value of type {}", value.kind())))?;
    let places = precision.as_usize().filter(|places| *places <= 15);
    let places = places.ok_or_else(|| invalid(format!("round: expected 0 to 15 decimals, got {precision}")))?;
    let scale = (0..places).fold(1.0, |scale, _| scale * 10.0);
    match (method.as_str(), number) {
        (Some("common"), Number::Int(_)) => Ok(number.into()),
        // The nearest number of so many decimals, halves to even.
        (Some("common"), Number::Float(x)) => Ok(Value::from(format!("{x:.places$}").parse::<f64>().unwrap_or(x))),
        (Some("ceil"), _) => Ok(Value::from((number.float() * scale).ceil() / scale)),
        (Some("floor"), _) => Ok(Value::from((number.float() * scale).floor() / scale)),
        _ => Err(invalid(format!("round: expected common, ceil or floor, got {method}"))),
    }
}

fn truncate(value: &Value, counted: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let argument =
        |at: usize, name| counted.get(at).map_or_else(|| named.get::<Option<Value>>(name), |v| Ok(Some(v.clone())));
    let number = |at: usize, name, usual| match argument(at, name)? {
        Some(value) => value.as_usize().ok_or_else(|| invalid(format!("truncate: {name} is no number"))),
        None => Ok(usual),
    };
    let text = text(value)?;
    let length = number(0, "length", 255)?;
    let inside_words = argument(1, "killwords")?.is_some_and(|value| value.is_true());
    let end = argument(2, "end")?.map_or_else(|| Ok("...".to_owned()), |value| super::python::text(&value))?;
    let leeway = number(3, "leeway", 5)?;
    named.assert_all_used()?;
    let Some(kept) = length.checked_sub(end.chars().count()) else {
        return Err(invalid(format!("truncate: expected a length of at least {}, got {length}", end.chars().count())));
    };
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let kept: String = text.chars().take(kept).collect();
    let whole = if inside_words { &kept } else { kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words) };
    Ok(format!("{whole}{end}"))
}

fn indent(
    value: &Value,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let text = text(value)?;
    let width = width.or(kwargs.get("width")?).unwrap_or_else(|| Value::from(4));
    let first = first.or(kwargs.get("first")?).unwrap_or(false);
    let blank = blank.or(kwargs.get("blank")?).unwrap_or(false);
    kwargs.assert_all_used()?;
    let indention = if let Some(text) = width.as_str() {
        text.to_owned()
    } else {
        let width = width.as_usize().ok_or_else(|| invalid("indent: expected a width or a text"))?;
        within(width)?;
        " ".repeat(width)
    };
    let lines: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    within(text.len().saturating_add(lines.len().saturating_mul(indention.len())))?;
    let mut out = String::new();
    for (n, line) in lines.iter().enumerate() {
        out.push_str(if n > 0 { "\n" } else { "" });
        if if n == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(out)
}

/// Jinja's `int`: a number without its fraction, or a text in a base.
fn whole(value: &Value, base: u32) -> Option<i128> {
    #[expect(clippy::cast_possible_truncation, reason = "as Python's int(float)")]
    let cut = |x: f64| x.is_finite().then(|| x.trunc() as i128);
    let Some(text) = value.as_str() else {
        return match Number::of(value)? {
            Number::Int(n) => Some(n),
            Number::Float(x) => cut(x),
        };
    };
    let text = text.trim().replace('_', "");
    let lower = text.to_lowercase();
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    let digits = lower.strip_prefix(prefix).unwrap_or(&lower);
    let parsed = if (2..=36).contains(&base) { i128::from_str_radix(digits, base).ok() } else { None };
    parsed.or_else(|| text.parse::<f64>().ok().and_then(cut))
}
