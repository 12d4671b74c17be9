//! Golden cases: one JSON object a line with `id, function, inputs, expected, tolerance`.
//!
//! Numbers that JSON lacks are the strings `"NaN"`, `"Infinity"`, `"-Infinity"`; an undefined result is `null`. A case
//! passes when every expected field satisfies `|got - want| <= abs + rel |want|`.

mod functions;

use epikv_stats::Confidence;
use serde_json::Value;

use functions::evaluate;

/// Why a case could not be run.
pub(crate) type Failure = String;

/// What came of a file of cases.
pub(crate) struct Outcome {
    /// Cases that passed.
    pub(crate) passed: usize,
    /// One line for each that did not.
    pub(crate) failures: Vec<String>,
}

/// Runs every line of `text`.
pub(crate) fn run(text: &str) -> Outcome {
    let mut outcome = Outcome { passed: 0, failures: Vec::new() };
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match run_line(line) {
            Ok(()) => outcome.passed += 1,
            Err((id, why)) => outcome.failures.push(format!("{} (line {}): {why}", id, i + 1)),
        }
    }
    outcome
}

fn run_line(line: &str) -> Result<(), (String, Failure)> {
    let case: Value = serde_json::from_str(line).map_err(|e| ("?".to_owned(), e.to_string()))?;
    let id = case["id"].as_str().unwrap_or("?").to_owned();
    let check = || -> Result<(), Failure> {
        let function = case["function"].as_str().ok_or("no function")?;
        let got = evaluate(function, &Inputs(&case["inputs"]))?;
        let tolerance =
            (case["tolerance"]["abs"].as_f64().unwrap_or(0.0), case["tolerance"]["rel"].as_f64().unwrap_or(0.0));
        let expected = case["expected"].as_object().ok_or("no expected values")?;
        for (field, want) in expected {
            let got = got.get(field).ok_or_else(|| format!("{field}: not computed"))?;
            compare(field, got, want, tolerance)?;
        }
        Ok(())
    };
    check().map_err(|why| (id, why))
}

fn compare(field: &str, got: &Value, want: &Value, tolerance: (f64, f64)) -> Result<(), Failure> {
    let differ = || Err(format!("{field}: got {got}, want {want}"));
    match (got, want) {
        (got, want) if is_undefined(got) && is_undefined(want) => Ok(()),
        (Value::Array(g), Value::Array(w)) if g.len() == w.len() => {
            g.iter().zip(w).enumerate().try_for_each(|(i, (g, w))| compare(&format!("{field}[{i}]"), g, w, tolerance))
        }
        (Value::Number(_), Value::Number(_)) => {
            let (g, w) = (number(got)?, number(want)?);
            if (g - w).abs() <= tolerance.0 + tolerance.1 * w.abs() {
                Ok(())
            } else {
                Err(format!("{field}: got {g:e}, want {w:e}, off by {:e}", g - w))
            }
        }
        _ if got == want => Ok(()),
        _ => differ(),
    }
}

/// `null`, `"NaN"`, or a column of nothing else.
fn is_undefined(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(s) => s == "NaN",
        Value::Array(items) => !items.is_empty() && items.iter().all(is_undefined),
        _ => false,
    }
}

fn number(value: &Value) -> Result<f64, Failure> {
    match value {
        Value::Null => Ok(f64::NAN),
        Value::Bool(b) => Ok(f64::from(u8::from(*b))),
        Value::String(s) => s.parse().map_err(|_| format!("not a number: {s}")),
        _ => value.as_f64().ok_or_else(|| format!("not a number: {value}")),
    }
}

/// The inputs of a case, by name.
pub(crate) struct Inputs<'a>(pub(crate) &'a Value);

impl Inputs<'_> {
    pub(crate) fn number(&self, name: &str) -> Result<f64, Failure> {
        self.0.get(name).map_or_else(|| Err(format!("no input {name}")), number)
    }

    pub(crate) fn number_or(&self, name: &str, default: f64) -> Result<f64, Failure> {
        self.0.get(name).map_or(Ok(default), number)
    }

    pub(crate) fn count(&self, name: &str) -> Result<u64, Failure> {
        to_count(self.number(name)?)
    }

    pub(crate) fn column(&self, name: &str) -> Result<Vec<f64>, Failure> {
        column(self.0.get(name).ok_or_else(|| format!("no input {name}"))?)
    }

    pub(crate) fn counts(&self, name: &str) -> Result<Vec<u64>, Failure> {
        self.column(name)?.into_iter().map(to_count).collect()
    }

    pub(crate) fn labels(&self, name: &str) -> Result<Vec<bool>, Failure> {
        Ok(self.column(name)?.into_iter().map(|v| v != 0.0).collect())
    }

    pub(crate) fn word(&self, name: &str, default: &'static str) -> String {
        self.0[name].as_str().unwrap_or(default).to_lowercase().replace('-', "_")
    }

    pub(crate) fn confidence(&self) -> Result<Confidence, Failure> {
        Confidence::new(self.number_or("confidence", 0.95)?).map_err(|e| e.to_string())
    }
}

pub(crate) fn column(value: &Value) -> Result<Vec<f64>, Failure> {
    value.as_array().ok_or_else(|| format!("not a column: {value}"))?.iter().map(number).collect()
}

fn to_count(value: f64) -> Result<u64, Failure> {
    if value >= 0.0 && value.fract() == 0.0 { Ok(value as u64) } else { Err(format!("not a count: {value}")) }
}
