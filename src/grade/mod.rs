//! `epikv grade`: two answers, or a file of pairs.

mod pairs;
mod table;

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use epikv_grader::{Mode, Verdict, compare, extract};
use serde_json::{Value, json};

use self::pairs::{Kind, Pair, read_pairs};
use self::table::Table;
use crate::cli::GradeArgs;
use crate::output::Done;

/// Compares what was given.
pub(crate) fn run(args: &GradeArgs) -> Result<Done> {
    match (&args.file, &args.pred, &args.gold) {
        (Some(file), ..) => many(&read_pairs(file)?, args),
        (None, Some(pred), Some(gold)) => {
            let kind = if args.text { Kind::Extract } else { Kind::Pair };
            one(&Graded::of(pred, gold, kind, args.mode()), args)
        }
        // The parser asks for both.
        _ => Ok(Done::All),
    }
}

/// Result of one pair.
#[derive(Debug)]
struct Graded {
    /// `None` where the text holds no answer.
    verdict: Option<Verdict>,
    explanation: String,
    /// The answer found in a text, and the name of the rule that found it.
    found: Option<(String, &'static str)>,
}

impl Graded {
    fn of(pred: &str, gold: &str, kind: Kind, mode: Mode) -> Self {
        if kind == Kind::Pair {
            return Self::compared(pred, gold, mode, None);
        }
        let Some(found) = extract(pred, mode) else {
            return Self { verdict: None, explanation: "no answer was found in the text".to_owned(), found: None };
        };
        Self::compared(&found.answer, gold, mode, Some((found.answer.to_string(), found.rule.name())))
    }

    fn compared(answer: &str, gold: &str, mode: Mode, found: Option<(String, &'static str)>) -> Self {
        let comparison = compare(answer, gold, mode);
        Self { verdict: Some(comparison.verdict), explanation: comparison.explanation, found }
    }

    /// A verdict's name in files, or `no_answer`.
    fn name(&self) -> &'static str {
        self.verdict.map_or("no_answer", Verdict::name)
    }

    fn is_same(&self) -> bool {
        self.verdict.is_some_and(Verdict::is_same)
    }

    fn is_unsure(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Unsure(_)))
    }

    fn json(&self, mode: Mode) -> Value {
        let reason = match self.verdict {
            Some(Verdict::Unsure(reason)) => Some(reason.name()),
            _ => None,
        };
        let found = self.found.as_ref().map(|(answer, rule)| json!({ "answer": answer, "rule": rule }));
        json!({
            "verdict": self.name(),
            "reason": reason,
            "explanation": self.explanation,
            "found": found,
            "mode": mode.name(),
            "grader": epikv_grader::VERSION,
        })
    }
}

fn one(graded: &Graded, args: &GradeArgs) -> Result<Done> {
    let mut out = crate::terminal::out();
    if args.json {
        writeln!(out, "{}", graded.json(args.mode()))?;
        return Ok(Done::All);
    }
    writeln!(out, "{}", graded.name())?;
    if args.explain {
        if let Some((answer, rule)) = &graded.found {
            writeln!(out, "found {answer:?} by the rule {rule}")?;
        }
        writeln!(out, "{} ({} mode)", graded.explanation, args.mode())?;
    }
    Ok(Done::All)
}

fn many(pairs: &[Pair], args: &GradeArgs) -> Result<Done> {
    let mode = args.mode();
    let started = Instant::now();
    let graded: Vec<Graded> = pairs.iter().map(|pair| Graded::of(&pair.pred, &pair.gold, pair.kind, mode)).collect();
    let table = Table::of(pairs, &graded, mode, started.elapsed());
    let mut out = crate::terminal::out();
    if args.json {
        let mut object = table.json();
        if args.explain {
            object["pairs"] = pairs.iter().zip(&graded).map(|(pair, graded)| listed(pair, graded, mode)).collect();
        }
        writeln!(out, "{object}")?;
        return Ok(Done::All);
    }
    write!(out, "{table}")?;
    if args.explain {
        for (pair, graded) in pairs.iter().zip(&graded).filter(|(pair, graded)| is_remarkable(pair, graded)) {
            let Pair { line, pred, gold, .. } = pair;
            writeln!(out, "\nline {line}: {}\n  {pred:?}\n  {gold:?}\n  {}", graded.name(), graded.explanation)?;
        }
    }
    Ok(Done::All)
}

/// A pair in the JSON object of a file.
fn listed(pair: &Pair, graded: &Graded, mode: Mode) -> Value {
    let mut object = graded.json(mode);
    object["line"] = pair.line.into();
    object["expected"] = pair.equal.into();
    object
}

/// Not as expected, or not decided.
fn is_remarkable(pair: &Pair, graded: &Graded) -> bool {
    graded.is_unsure() || pair.equal.is_some_and(|equal| equal != graded.is_same())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_searched_first() {
        let text = r"First \boxed{3}. Wait, \boxed{\dfrac72}.";
        let graded = Graded::of(text, "3.5", Kind::Extract, Mode::Strict);
        assert_eq!(graded.name(), "same_other_form");
        assert_eq!(graded.found, Some((r"\dfrac72".to_owned(), "boxed")));
        let cut = Graded::of(r"so \boxed{4} wait \boxed{5", "4", Kind::Extract, Mode::Strict);
        assert_eq!((cut.name(), cut.is_same()), ("no_answer", false));
    }

    #[test]
    fn the_reason_is_told() {
        let object = Graded::of("5", r"5 \text{ cm}", Kind::Pair, Mode::Strict).json(Mode::Strict);
        assert_eq!((object["verdict"].as_str(), object["reason"].as_str()), (Some("unsure"), Some("unit_missing")));
        assert_eq!(object["mode"], "strict");
    }
}
