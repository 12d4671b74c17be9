//! Python's `json.dumps`, the `tojson` of chat templates.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, Value};

use super::python::float;
use super::values::{invalid, within};

/// Values inside values that are written.
const DEEPEST: usize = 100;

/// `json.dumps(value, ensure_ascii=False, indent=.., separators=.., sort_keys=..)`, which is what Transformers puts in
/// place of Jinja's own filter.
#[expect(clippy::needless_pass_by_value, reason = "minijinja hands keyword arguments over")]
pub(super) fn to_json(value: &Value, kwargs: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = kwargs.get::<Option<usize>>("indent")?;
    let separators: Option<Vec<String>> = kwargs.get("separators")?;
    let sort_keys = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let ensure_ascii = kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => return Err(invalid("tojson: separators are two strings")),
        // Python drops the space after the comma when lines are broken.
        None => ((if indent.is_some() { "," } else { ", " }).to_owned(), ": ".to_owned()),
    };
    let style = JsonStyle { indent, item, key, sort_keys, ensure_ascii };
    let mut out = String::new();
    style.write(&mut out, value, 0)?;
    Ok(out)
}

struct JsonStyle {
    indent: Option<usize>,
    item: String,
    key: String,
    sort_keys: bool,
    ensure_ascii: bool,
}

impl JsonStyle {
    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        within(out.len())?;
        if depth > DEEPEST {
            return Err(invalid(format!("tojson: expected values at most {DEEPEST} deep")));
        }
        match value.kind() {
            ValueKind::Undefined => return Err(invalid("tojson: the value is undefined")),
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
            ValueKind::Number => out.push_str(&json_number(&float(f64::try_from(value.clone())?))),
            ValueKind::String => self.string(out, value.as_str().unwrap_or_default()),
            ValueKind::Map => self.map(out, value, depth)?,
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.group(out, "[]", items.len(), depth, |out, index| self.write(out, &items[index], depth + 1))?;
            }
            other => return Err(invalid(format!("tojson: {other} has no JSON form"))),
        }
        Ok(())
    }

    fn map(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        self.group(out, "{}", keys.len(), depth, |out, index| {
            let key = &keys[index];
            if let Some(text) = key.as_str() {
                self.string(out, text);
            } else {
                out.push('"');
                self.write(out, key, depth + 1)?;
                out.push('"');
            }
            out.push_str(&self.key);
            self.write(out, &value.get_item(&keys[index])?, depth + 1)
        })
    }

    /// Brackets, separators and line breaks around `n` items.
    fn group(
        &self,
        out: &mut String,
        brackets: &str,
        n: usize,
        depth: usize,
        item: impl Fn(&mut String, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (open, close) = brackets.split_at(1);
        out.push_str(open);
        for index in 0..n {
            if index > 0 {
                out.push_str(&self.item);
            }
            self.line(out, depth + 1);
            item(out, index)?;
        }
        if n > 0 {
            self.line(out, depth);
        }
        out.push_str(close);
        Ok(())
    }

    fn line(&self, out: &mut String, depth: usize) {
        if let Some(width) = self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', width * depth));
        }
    }

    fn string(&self, out: &mut String, text: &str) {
        out.push('"');
        for character in text.chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && !c.is_ascii()) => {
                    let mut units = [0_u16; 2];
                    let escapes = c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}"));
                    out.extend(escapes);
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// Python's names for what JSON has no number for.
fn json_number(text: &str) -> String {
    match text {
        "nan" => "NaN".to_owned(),
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        finite => finite.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(source: &str) -> String {
        let mut environment = minijinja::Environment::new();
        environment.add_filter("tojson", to_json);
        environment.render_str(source, ()).unwrap()
    }

    /// ```python
    /// d = {"b": [1, 2.5, None, True], "a": "é\"\n<&>", "c": {}}
    /// json.dumps(d, ensure_ascii=False); json.dumps(d, ensure_ascii=False, indent=2, sort_keys=True)
    /// ```
    #[test]
    fn json_is_pythons() {
        let value = r#"{"b": [1, 2.5, none, true], "a": 'é"\n<&>', "c": {}}"#;
        assert_eq!(
            json(&format!("{{{{ {value} | tojson }}}}")),
            r#"{"b": [1, 2.5, null, true], "a": "é\"\n<&>", "c": {}}"#
        );
        assert_eq!(
            json(&format!("{{{{ {value} | tojson(indent=2, sort_keys=true) }}}}")),
            "{\n  \"a\": \"é\\\"\\n<&>\",\n  \"b\": [\n    1,\n    2.5,\n    null,\n    true\n  ],\n  \"c\": {}\n}"
        );
        assert_eq!(json("{{ [1, 'é'] | tojson(separators=[',', ':'], ensure_ascii=true) }}"), r#"[1,"\u00e9"]"#);
    }
}
