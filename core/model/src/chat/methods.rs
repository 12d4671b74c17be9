//! The methods of Python's texts, lists and mappings that change nothing.

use minijinja::value::{Kwargs, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};

use super::python::is_printable;
use super::values::{Tuple, View, invalid, within};

pub(super) fn call(_: &State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String => of_text(value.as_str().unwrap_or_default(), method, args),
        ValueKind::Map => of_map(value, method, args),
        ValueKind::Seq => of_list(value, method, args),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn of_map(value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let pairs = || -> Result<Vec<(Value, Value)>, Error> {
        value.try_iter()?.map(|key| value.get_item(&key).map(|item| (key, item))).collect()
    };
    match method {
        "keys" => none(args).and_then(|()| Ok(view(pairs()?.into_iter().map(|(key, _)| key).collect()))),
        "values" => none(args).and_then(|()| Ok(view(pairs()?.into_iter().map(|(_, item)| item).collect()))),
        "items" => none(args).and_then(|()| {
            let pairs = pairs()?.into_iter().map(|(key, item)| Value::from_object(Tuple(vec![key, item])));
            Ok(view(pairs.collect()))
        }),
        "copy" => none(args).map(|()| value.clone()),
        "get" => {
            let (key, default): (Value, Option<Value>) = from_args(args)?;
            let found = value.get_item(&key)?;
            let held = !found.is_undefined();
            Ok(if held { found } else { default.unwrap_or_else(|| Value::from(())) })
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn view(items: Vec<Value>) -> Value {
    Value::from_object(View(items))
}

fn of_list(value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    match method {
        "count" => {
            let (what,): (Value,) = from_args(args)?;
            Ok(Value::from(value.try_iter()?.filter(|item| *item == what).count()))
        }
        "index" => {
            let (what,): (Value,) = from_args(args)?;
            let at = value.try_iter()?.position(|item| item == what);
            at.map(Value::from).ok_or_else(|| invalid("index: the list has no such item"))
        }
        "copy" => none(args).map(|()| value.clone()),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn none(args: &[Value]) -> Result<(), Error> {
    from_args::<()>(args)
}

/// Characters from `start` to `end`, as Python's `text[start:end]`; with the number of those in front.
fn part(text: &str, start: Option<i64>, end: Option<i64>) -> (&str, usize) {
    let count = text.chars().count();
    let place = |at: i64| {
        let at = if at < 0 { at.saturating_add(i64::try_from(count).unwrap_or(i64::MAX)).max(0) } else { at };
        usize::try_from(at).unwrap_or(usize::MAX).min(count)
    };
    let (start, end) = (start.map_or(0, place), end.map_or(count, place));
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let (from, to) = (byte(start), byte(end));
    (if from <= to { &text[from..to] } else { "" }, start)
}

fn blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn of_text(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let all = |test: fn(char) -> bool| none(args).map(|()| Value::from(!text.is_empty() && text.chars().all(test)));
    Ok(match method {
        "upper" => none(args).map(|()| Value::from(text.to_uppercase()))?,
        "lower" => none(args).map(|()| Value::from(text.to_lowercase()))?,
        "casefold" => none(args).map(|()| Value::from(text.to_lowercase().replace('ß', "ss")))?,
        "swapcase" => none(args).map(|()| Value::from(swap_case(text)))?,
        "capitalize" => none(args).map(|()| Value::from(capitalize(text)))?,
        "title" => none(args).map(|()| Value::from(title(text)))?,
        "islower" => cased(text, char::is_lowercase, char::is_uppercase),
        "isupper" => cased(text, char::is_uppercase, char::is_lowercase),
        "istitle" => Value::from(text.chars().any(char::is_alphabetic) && title(text) == text),
        "isspace" => all(blank)?,
        "isdigit" => all(|c| c.is_ascii_digit() || "²³¹".contains(c) || (c.is_numeric() && decimal(c)))?,
        "isdecimal" => all(|c| c.is_ascii_digit() || decimal(c))?,
        "isnumeric" => all(char::is_numeric)?,
        "isalnum" => all(char::is_alphanumeric)?,
        "isalpha" => all(char::is_alphabetic)?,
        "isascii" => Value::from(text.is_ascii()),
        "isprintable" => Value::from(text.chars().all(is_printable)),
        "isidentifier" => {
            let start = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
            Value::from(start && text.chars().all(|c| c.is_alphanumeric() || c == '_'))
        }
        "strip" | "lstrip" | "rstrip" => strip(text, method, args)?,
        "replace" => {
            let (old, new, count): (&str, &str, Option<i64>) = from_args(args)?;
            Value::from(replace(text, old, new, count)?)
        }
        "split" | "rsplit" => split(text, method == "rsplit", args)?,
        "splitlines" => {
            let (keep, kwargs): (Option<bool>, Kwargs) = from_args(args)?;
            lines(text, keep.or(kwargs.get("keepends")?).unwrap_or(false))
        }
        "partition" | "rpartition" => partition(text, method, args)?,
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "startswith" | "endswith" => {
            let (what, start, end): (Value, Option<i64>, Option<i64>) = from_args(args)?;
            Value::from(at_end(part(text, start, end).0, method, &what)?)
        }
        "count" => {
            let (what, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
            Value::from(part(text, start, end).0.matches(what).count())
        }
        "find" | "rfind" | "index" | "rindex" => find(text, method, args)?,
        "center" | "ljust" | "rjust" => {
            let (width, fill): (i64, Option<char>) = from_args(args)?;
            Value::from(pad(text, method, width, fill.unwrap_or(' '))?)
        }
        "zfill" => {
            let (width,): (i64,) = from_args(args)?;
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            let width = width - i64::try_from(sign.len()).unwrap_or(0);
            Value::from(format!("{sign}{}", pad(digits, "rjust", width, '0')?))
        }
        "expandtabs" => {
            let (size,): (Option<usize>,) = from_args(args)?;
            Value::from(expand_tabs(text, size.unwrap_or(8))?)
        }
        "join" => {
            let (items,): (Value,) = from_args(args)?;
            let mut out = String::new();
            for (n, item) in items.try_iter()?.enumerate() {
                let item = item.as_str().ok_or_else(|| {
                    invalid(format!("join: expected texts, got a value of type {} at {n}", item.kind()))
                })?;
                within(out.len() + text.len() + item.len())?;
                out.push_str(if n > 0 { text } else { "" });
                out.push_str(item);
            }
            Value::from(out)
        }
        "format" => Value::from(super::braces::format(text, args)?),
        _ => return Err(Error::from(ErrorKind::UnknownMethod)),
    })
}

/// Digits of other scripts.
fn decimal(c: char) -> bool {
    c.is_numeric()
        && !c.is_alphabetic()
        && !"½¼¾⅓⅔²³¹".contains(c)
        && !('\u{2070}'..='\u{218f}').contains(&c)
        && !('\u{2460}'..='\u{24ff}').contains(&c)
}

fn cased(text: &str, is: fn(char) -> bool, other: fn(char) -> bool) -> Value {
    Value::from(text.chars().any(is) && !text.chars().any(other))
}

fn swap_case(text: &str) -> String {
    let swap = |c: char| if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() };
    text.chars().map(swap).collect()
}

/// The first character large, the rest small.
pub(super) fn capitalize(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| titled(first) + &rest.as_str().to_lowercase())
}

/// A character as the first of a title: of a ligature, only its first letter is large.
fn titled(c: char) -> String {
    let large: Vec<char> = c.to_uppercase().collect();
    large.iter().take(1).copied().chain(large.iter().skip(1).flat_map(|c| c.to_lowercase())).collect()
}

fn title(text: &str) -> String {
    let mut inside = false;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.push_str(&titled(c));
        }
        inside = c.is_alphabetic();
    }
    out
}

fn strip(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (characters,): (Option<&str>,) = from_args(args)?;
    let gone = |c: char| characters.map_or_else(|| blank(c), |characters| characters.contains(c));
    let text = if method == "rstrip" { text } else { text.trim_start_matches(gone) };
    Ok(Value::from(if method == "lstrip" { text } else { text.trim_end_matches(gone) }))
}

pub(super) fn replace(text: &str, old: &str, new: &str, count: Option<i64>) -> Result<String, Error> {
    let count = count.and_then(|n| usize::try_from(n).ok());
    let places = text.matches(old).take(count.unwrap_or(usize::MAX)).count();
    within(text.len() + places.saturating_mul(new.len()))?;
    Ok(text.replacen(old, new, places))
}

fn split(text: &str, from_right: bool, args: &[Value]) -> Result<Value, Error> {
    let (by, most, kwargs): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
    let by = by.or(kwargs.get("sep")?);
    let most = most.or(kwargs.get("maxsplit")?).and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = Vec::new();
    match by {
        Some("") => return Err(invalid("split: the separator is empty")),
        Some(by) if from_right => parts.extend(text.rsplitn(most.saturating_add(1), by)),
        Some(by) => parts.extend(text.splitn(most.saturating_add(1), by)),
        None => {
            let mut rest = text.trim_matches(blank);
            while !rest.is_empty() && parts.len() < most {
                let cut = if from_right { rest.rfind(blank) } else { rest.find(blank) };
                let Some(cut) = cut else { break };
                let space = rest[cut..].chars().next().map_or(1, char::len_utf8);
                let (left, right) = (&rest[..cut], &rest[cut + space..]);
                parts.push(if from_right { right } else { left });
                rest = if from_right { left.trim_end_matches(blank) } else { right.trim_start_matches(blank) };
            }
            if !rest.is_empty() {
                // Without a split, the other end keeps its spaces.
                let whole = if from_right { text.trim_end_matches(blank) } else { text.trim_start_matches(blank) };
                let kept = if parts.is_empty() && most == 0 {
                    whole
                } else if parts.len() < most {
                    rest
                } else if from_right {
                    &text[..text.find(rest).map_or(0, |at| at + rest.len())]
                } else {
                    &text[text.rfind(rest).unwrap_or(0)..]
                };
                parts.push(kept);
            }
        }
    }
    if from_right {
        parts.reverse();
    }
    Ok(parts.into_iter().map(Value::from).collect())
}

fn lines(text: &str, keep: bool) -> Value {
    let mut parts = Vec::new();
    let mut rest = text;
    let breaks = ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
    while !rest.is_empty() {
        let end = rest.find(breaks).unwrap_or(rest.len());
        let mark =
            if rest[end..].starts_with("\r\n") { 2 } else { rest[end..].chars().next().map_or(0, char::len_utf8) };
        parts.push(Value::from(&rest[..if keep { end + mark } else { end }]));
        rest = &rest[end + mark..];
    }
    Value::from(parts)
}

fn partition(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (by,): (&str,) = from_args(args)?;
    if by.is_empty() {
        return Err(invalid("partition: the separator is empty"));
    }
    let parts = match method {
        "partition" => text.split_once(by).map_or([text, "", ""], |(left, right)| [left, by, right]),
        _ => text.rsplit_once(by).map_or(["", "", text], |(left, right)| [left, by, right]),
    };
    Ok(Value::from_object(Tuple(parts.map(Value::from).to_vec())))
}

fn at_end(text: &str, method: &str, what: &Value) -> Result<bool, Error> {
    let one = |what: &Value| match what.as_str() {
        Some(what) if method == "startswith" => Ok(text.starts_with(what)),
        Some(what) => Ok(text.ends_with(what)),
        None => {
            Err(invalid(format!("{method}: expected a text or a tuple of them, got a value of type {}", what.kind())))
        }
    };
    let Some(tuple) = what.downcast_object_ref::<Tuple>() else { return one(what) };
    tuple.0.iter().try_fold(false, |found, what| Ok(found || one(what)?))
}

fn find(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (what, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
    let (inside, before) = part(text, start, end);
    let at = if method.starts_with('r') { inside.rfind(what) } else { inside.find(what) };
    match at {
        Some(at) => Ok(Value::from(before + inside[..at].chars().count())),
        None if method.ends_with("find") => Ok(Value::from(-1)),
        None => Err(invalid(format!("{method}: the text has no such part"))),
    }
}

pub(super) fn pad(text: &str, method: &str, width: i64, fill: char) -> Result<String, Error> {
    let count = text.chars().count();
    let room = usize::try_from(width).unwrap_or(0).saturating_sub(count);
    within(text.len().saturating_add(room.saturating_mul(fill.len_utf8())))?;
    let left = match method {
        "ljust" => 0,
        "rjust" => room,
        // Python's own rounding of an odd remainder.
        _ => room / 2 + (room & usize::try_from(width).unwrap_or(0) & 1),
    };
    let fill = |n: usize| fill.to_string().repeat(n);
    Ok(format!("{}{text}{}", fill(left), fill(room - left)))
}

fn expand_tabs(text: &str, size: usize) -> Result<String, Error> {
    within(text.matches('\t').count().saturating_mul(size).saturating_add(text.len()))?;
    let (mut out, mut column) = (String::new(), 0);
    for c in text.chars() {
        match c {
            '\t' => {
                let room = if size == 0 { 0 } else { size - column % size };
                out.extend(std::iter::repeat_n(' ', room));
                column += room;
            }
            c => {
                out.push(c);
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    Ok(out)
}
