//! Problems of the usual benchmarks, from JSON lines, Parquet, CSV or a folder of such parts, under the field names that each of them uses.
//!
//! | set | problem | answer | id |
//! | --- | --- | --- | --- |
//! | ours, MATH-500 | `problem` | `answer` | `id`, `unique_id` |
//! | MATH | `problem` | last box of `solution`, with the boxes joined to it; so too where `answer` is empty | - |
//! | AIME | `problem`, `Problem` | `answer`, `Answer`, number or text | `id`, `ID` |
//! | GSM8K | `question` | `answer`, after `####` | - |
//! | SVAMP | `Body` + `Question` | `Answer`, a number | `ID` |
//! | MAWPS | `sQuestion` | `lSolutions`, a list | `iIndex` |
//! | `OlympiadBench` | `question` | `final_answer`, a list | `id` |
//! | MGSM | `question` | `answer_number` (its `answer` is an explanation) | - |
//! | sets for reinforcement learning | `problem`, or the last turn of `prompt` | `reward_model.ground_truth` | - |
//! | others | `problem`, `question` | `gold`, `ground_truth`, `gt` | `problem_id` |
//!
//! Ours may also say what the answer needs (`gold_spans`, see [`GoldSpan`]).
//!
//! An answer stays text: `025` keeps its zero and `70,000` its comma, since only the grader knows what they mean. A
//! problem without an id is named after its file and line.

use std::ops::Range;
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::rows::{self, Row};

/// Field names, in the order in which they are tried.
const ID: &[&str] = &["id", "unique_id", "ID", "problem_id", "iIndex"];
const PROBLEM: &[&str] = &["problem", "Problem", "question", "sQuestion"];
const ANSWER: &[&str] = &["answer", "Answer", "gold", "ground_truth", "gt"];
/// These hold several answers, or come before the explanation that is called `answer` beside them.
const LISTS: &[&str] = &["lSolutions", "final_answer", "answer_number"];
const DATASET: &[&str] = &["dataset", "source"];

/// What GSM8K puts before the answer.
const HASHES: &str = "####";

/// Bytes of a problem at most: far more than any model reads. A longer one is another kind of file.
const LONGEST_STATEMENT: usize = 1 << 20;

/// A value that the answer is known to need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoldSpan {
    /// How the reasoning states it: `e 5`. A trace mentions the value where its reasoning holds the tokens of this text.
    pub text: String,
    /// Where the worked solution states it: tokens, counted from the first of the prompt.
    pub mentions: Vec<Range<usize>>,
}

/// A problem and, where the set has one, its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Unique in its file.
    pub id: String,
    /// The set: as the file says, else the file's name.
    pub dataset: String,
    /// The statement.
    pub problem: String,
    /// The right answer.
    #[serde(rename = "answer")]
    pub gold: Option<String>,
    /// Difficulty, as the set words it.
    pub level: Option<String>,
    /// Area.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What the answer needs, value by value; `None` where the set does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gold_spans: Option<Vec<GoldSpan>>,
}

/// Writes problems as JSON lines that [`read_problems`] reads, whole or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn write_problems(path: &Path, problems: &[Problem]) -> Result<()> {
    epikv_schemas::fs::write_atomic(path, problem_lines(path, problems)?.as_bytes())?;
    Ok(())
}

/// The lines that [`write_problems`] writes.
///
/// # Errors
/// If a problem cannot be written as JSON; the error names the file.
pub fn problem_lines(path: &Path, problems: &[Problem]) -> Result<String> {
    let mut lines = String::new();
    for problem in problems {
        let line = serde_json::to_string(problem).map_err(std::io::Error::from);
        lines.push_str(&line.map_err(|source| Error::Io { path: path.to_owned(), source })?);
        lines.push('\n');
    }
    Ok(lines)
}

/// Reads the problems of a file: Parquet and CSV by the ends of their names, else JSON lines; or those of a folder of parts.
///
/// # Errors
/// Each names the file and the line: a line that is no JSON object, a row without a statement, an answer of another
/// kind, an id that comes twice; a file without problems.
pub fn read_problems(path: &Path) -> Result<Vec<Problem>> {
    let rows = rows::read(path, "problem")?;
    let problems = rows.iter().map(problem).collect::<Result<Vec<_>>>()?;
    rows::check_unique(&rows, problems.iter().map(|problem| problem.id.as_str()))?;
    Ok(problems)
}

fn problem(row: &Row) -> Result<Problem> {
    let id = row.text(ID)?.filter(|id| !id.trim().is_empty());
    let statement = statement(row)?;
    if statement.len() > LONGEST_STATEMENT {
        return Err(row.too_long(LONGEST_STATEMENT, statement.len()));
    }
    Ok(Problem {
        id: id.unwrap_or_else(|| row.name()),
        dataset: row.text(DATASET)?.unwrap_or_else(|| row.stem()),
        problem: statement,
        gold: gold(row)?,
        level: row.text(&["level", "difficulty"])?,
        subject: row.text(&["subject", "type", "Type"])?,
        gold_spans: gold_spans(row)?,
    })
}

/// A list of `{text, mentions: [{start, end}]}`. A traces file has flat token positions in its place, which name no text.
fn gold_spans(row: &Row) -> Result<Option<Vec<GoldSpan>>> {
    let Some((value, name)) = row.get(&["gold_spans"]) else { return Ok(None) };
    let unexpected = || row.unexpected(&name, "a list of {text, mentions: [{start, end}]}", value);
    let items = value.as_array().ok_or_else(unexpected)?;
    if items.iter().all(serde_json::Value::is_number) {
        return Ok(None);
    }
    let position = |span: &serde_json::Value, end: &str| usize::try_from(span[end].as_u64()?).ok();
    let mention = |span: &serde_json::Value| {
        let (start, end) = (position(span, "start")?, position(span, "end")?);
        (start < end).then_some(start..end)
    };
    let gold_span = |item: &serde_json::Value| {
        let text = item["text"].as_str().filter(|text| !text.trim().is_empty())?.to_owned();
        let mentions = item["mentions"].as_array()?.iter().map(mention).collect::<Option<_>>()?;
        Some(GoldSpan { text, mentions })
    };
    items.iter().map(gold_span).collect::<Option<_>>().map(Some).ok_or_else(unexpected)
}

/// SVAMP splits a problem into a story and a question, and leaves out the full stop between.
pub(crate) fn statement(row: &Row) -> Result<String> {
    let Some(body) = row.text(&["Body"])? else {
        return match (row.get(PROBLEM), row.get(&["prompt"]).and_then(|(turns, _)| last_turn(turns))) {
            (None, Some(text)) => Ok(text),
            _ => row.required_text(PROBLEM),
        };
    };
    let question = row.required_text(&["Question"])?;
    let body = body.trim();
    if body.is_empty() {
        return Ok(question.trim().to_owned());
    }
    let stop = if body.ends_with(['.', '!', '?', ',', ';', ':']) { "" } else { "." };
    Ok(format!("{body}{stop} {}", question.trim()))
}

/// The text of the last turn of a conversation.
fn last_turn(turns: &serde_json::Value) -> Option<String> {
    let text = turns.as_array()?.last()?["content"].as_str()?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// `ground_truth` within `reward_model`.
pub(crate) fn rewarded(row: &Row) -> Result<Option<String>> {
    let Some((model, _)) = row.get(&["reward_model"]) else { return Ok(None) };
    match &model["ground_truth"] {
        serde_json::Value::Null => Ok(None),
        truth => Ok(Some(row.texts(truth, "reward_model.ground_truth")?.join(", "))),
    }
}

fn gold(row: &Row) -> Result<Option<String>> {
    let given = |text: &String| !text.trim().is_empty();
    if let Some((list, name)) = row.get(LISTS) {
        let items = row.texts(list, &name)?;
        if name == "lSolutions" && !items.iter().any(given) {
            return Err(row.unexpected(&name, "a list of numbers", list));
        }
        if items.iter().any(given) {
            return Ok(Some(items.join(", ")));
        }
    }
    if let Some(answer) = row.text(ANSWER)? {
        let answer = answer.rsplit_once(HASHES).map_or(answer.as_str(), |(_, after)| after).trim();
        if !answer.is_empty() {
            return Ok(Some(answer.to_owned()));
        }
    }
    if let Some(truth) = rewarded(row)?.filter(given) {
        return Ok(Some(truth));
    }
    // MATH as first published has no answer but the box of its solution.
    let solution = row.get(&["solution"]).and_then(|(value, _)| value.as_str());
    Ok(solution.and_then(|text| epikv_grader::boxed(text).map(std::borrow::Cow::into_owned)))
}

/// For tests: one problem from one object.
#[cfg(test)]
fn one(value: &serde_json::Value) -> Result<Problem> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.jsonl");
    std::fs::write(&path, value.to_string()).unwrap();
    read_problems(&path).map(|mut problems| problems.remove(0))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::Error;

    #[track_caller]
    fn check(value: &Value, id: &str, problem: &str, gold: Option<&str>) {
        let found = one(value).unwrap();
        assert_eq!((found.id.as_str(), found.problem.as_str(), found.gold.as_deref()), (id, problem, gold));
    }

    #[test]
    fn field_names_of_the_usual_sets() {
        let math = json!({"problem": "p", "solution": r"so \boxed{3}", "answer": r"\frac{1}{2}", "unique_id": "test/1.json",
            "subject": "Algebra", "level": 2});
        check(&math, "test/1.json", "p", Some(r"\frac{1}{2}"));
        let found = one(&math).unwrap();
        assert_eq!((found.level.as_deref(), found.subject.as_deref()), (Some("2"), Some("Algebra")));

        check(
            &json!({"problem": "p", "solution": r"so \boxed{x^{2}}", "type": "Algebra"}),
            "set-1",
            "p",
            Some("x^{2}"),
        );
        check(&json!({"ID": "2024-I-1", "Problem": "p", "Answer": 25}), "2024-I-1", "p", Some("25"));
        check(&json!({"id": 7, "problem": "p", "answer": "025"}), "7", "p", Some("025"));
        check(&json!({"question": "q", "answer": "1 * 2 = <<1*2=2>>2\n#### 70,000"}), "set-1", "q", Some("70,000"));
        check(&json!({"question": "q", "answer": "#### -3\n"}), "set-1", "q", Some("-3"));
        let svamp =
            json!({"ID": "chal-1", "Body": "A pack costs 76", "Question": "How much?", "Answer": 51.0, "Type": "Sub"});
        check(&svamp, "chal-1", "A pack costs 76. How much?", Some("51"));
        check(&json!({"iIndex": 3, "sQuestion": "q", "lSolutions": [0.5]}), "3", "q", Some("0.5"));
        check(&json!({"id": "a", "problem": "p", "answer": null}), "a", "p", None);
    }

    #[test]
    fn golds_of_other_fields() {
        let gold = |value: Value| one(&value).unwrap().gold;
        assert_eq!(gold(json!({"question": "q", "final_answer": ["3", "$4$"]})).as_deref(), Some("3, $4$"));
        assert_eq!(gold(json!({"question": "q", "final_answer": ["2"], "answer": "long"})).as_deref(), Some("2"));
        assert_eq!(gold(json!({"question": "q", "final_answer": null, "answer": "7"})).as_deref(), Some("7"));
        assert_eq!(
            gold(json!({"question": "q", "answer": "Step by step: 1.", "answer_number": 11})).as_deref(),
            Some("11")
        );
        let turns = json!([{"role": "system", "content": "s"}, {"role": "user", "content": "2+2?"}]);
        let rewarded = json!({"prompt": turns, "reward_model": {"style": "rule", "ground_truth": "4"}});
        check(&rewarded, "set-1", "2+2?", Some("4"));
        assert_eq!(gold(json!({"problem": "p", "reward_model": {"ground_truth": [1, 2]}})).as_deref(), Some("1, 2"));
        assert_eq!(gold(json!({"problem": "p", "gt": "025"})).as_deref(), Some("025"));
        let boxes = r"(x-1)(x-2)=0, so $x=\boxed{1}$, $\boxed{2}$.";
        assert_eq!(gold(json!({"problem": "p", "solution": boxes})).as_deref(), Some("1, 2"));
        assert_eq!(gold(json!({"problem": "p", "answer": " ", "solution": boxes})).as_deref(), Some("1, 2"));
        assert_eq!(gold(json!({"problem": "p", "answer": "3", "solution": boxes})).as_deref(), Some("3"));
        let empty = json!({"ID": "a", "Body": " ", "Question": "How much?", "Answer": 5.0});
        check(&empty, "a", "How much?", Some("5"));
    }

    #[test]
    fn a_number_too_large_for_a_float_must_be_text() {
        for field in ["answer", "answer_number", "gt"] {
            let error = serde_json::from_str(&format!(r#"{{"problem": "p", "{field}": 1e22}}"#)).unwrap();
            let error = one(&error).unwrap_err().to_string();
            assert!(error.contains("line 1") && error.contains("a number this large must be text"), "{error}");
            assert!(error.contains(&format!("`{field}`")), "{error}");
        }
        let digits = serde_json::from_str(r#"{"problem": "p", "answer": 123456789012345678901234}"#).unwrap();
        assert!(one(&digits).unwrap_err().to_string().contains("a number this large must be text"));
        assert_eq!(
            one(&json!({"problem": "p", "answer": u64::MAX})).unwrap().gold.as_deref(),
            Some("18446744073709551615")
        );
        assert_eq!(one(&json!({"problem": "p", "answer": "1e22"})).unwrap().gold.as_deref(), Some("1e22"));
    }

    #[test]
    fn csv_and_folders_of_parts() {
        let folder = tempfile::tempdir().unwrap();
        let set = folder.path().join("sums");
        std::fs::create_dir(&set).unwrap();
        std::fs::write(set.join("b.csv"), "problem,answer\n\"2, 3?\",025\nq,\n").unwrap();
        std::fs::write(set.join("a.jsonl"), "{\"problem\": \"p\"}\n").unwrap();
        std::fs::write(set.join("README.md"), "no part").unwrap();
        let problems = read_problems(&set).unwrap();
        let ids: Vec<_> = problems.iter().map(|problem| (problem.id.as_str(), problem.dataset.as_str())).collect();
        assert_eq!(ids, [("a-1", "sums"), ("b-1", "sums"), ("b-2", "sums")]);
        assert_eq!((problems[1].problem.as_str(), problems[1].gold.as_deref()), ("2, 3?", Some("025")));
        assert_eq!(problems[2].gold, None);
        std::fs::write(set.join("c.csv"), "problem,answer\np\n").unwrap();
        let error = read_problems(&set).unwrap_err().to_string();
        assert!(error.contains("c.csv, record 2: expected 2 fields"), "{error}");
    }

    #[test]
    fn the_set_is_named_by_the_file_or_its_name() {
        assert_eq!(one(&json!({"problem": "p"})).unwrap().dataset, "set");
        assert_eq!(one(&json!({"problem": "p", "source": "AIME 2024"})).unwrap().dataset, "AIME 2024");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = one(&json!({"id": "a", "text": "p"})).unwrap_err().to_string();
        assert!(error.contains("line 1: expected `problem` or `Problem`") && error.contains("got the fields id, text"));
        assert!(one(&json!({"problem": " "})).unwrap_err().to_string().contains("empty"));
        assert!(one(&json!({"problem": "p", "answer": [1]})).unwrap_err().to_string().contains("in `answer`, got [1]"));
        assert!(one(&json!({"sQuestion": "p", "lSolutions": []})).is_err());
    }

    #[test]
    fn ids_must_differ() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.jsonl");
        std::fs::write(&path, "{\"id\": 1, \"problem\": \"p\"}\n\n{\"id\": \"1\", \"problem\": \"q\"}\n").unwrap();
        let error = read_problems(&path).unwrap_err();
        assert!(matches!(error, Error::DuplicateId { line: 3, first: 1, .. }), "{error}");
    }

    /// A Parquet file with the same column names; our own traces are one.
    #[test]
    fn parquet_has_the_same_columns() {
        let tokenizer = epikv_model::tokenizer::Tokenizer::builtin_bytes().unwrap();
        let problem = one(&json!({"id": "a", "problem": "2+2?", "answer": "4", "dataset": "sums"})).unwrap();
        let generation = crate::trace::Generation {
            prompt: None,
            token_ids: &[52],
            n_prompt: 0,
            finish_reason: crate::trace::FinishReason::Eos,
            sampling: crate::trace::Sampling::default(),
        };
        let trace = crate::trace::build_trace("sums/a".to_owned(), &problem, &generation, &tokenizer).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("traces.parquet");
        let mut provenance = epikv_schemas::Provenance::new();
        provenance.set("run", json!({"seed": 0}));
        epikv_schemas::write_table(&path, &[trace], &provenance).unwrap();
        let problems = read_problems(&path).unwrap();
        assert_eq!(problems[0].problem, problem.problem);
        assert_eq!((problems[0].id.as_str(), problems[0].dataset.as_str()), ("a", "sums"));
    }

    #[test]
    fn what_the_answer_needs_is_read_and_written() {
        let needs = json!([{"text": "e 5", "mentions": [{"start": 40, "end": 42}, {"start": 57, "end": 59}]}]);
        let problem = one(&json!({"problem": "p", "answer": "5", "level": "long", "gold_spans": needs})).unwrap();
        let spans = problem.gold_spans.as_deref().unwrap();
        assert_eq!((spans[0].text.as_str(), &spans[0].mentions[..]), ("e 5", &[40..42, 57..59][..]));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("problems.jsonl");
        write_problems(&path, std::slice::from_ref(&problem)).unwrap();
        assert_eq!(read_problems(&path).unwrap(), [problem]);

        let flat = one(&json!({"problem": "p", "gold_spans": [3, 5]})).unwrap();
        assert_eq!(flat.gold_spans, None, "the form of a traces file");
        for broken in
            [json!("e 5"), json!([{"text": "e 5"}]), json!([{"text": "e", "mentions": [{"start": 4, "end": 4}]}])]
        {
            let error = one(&json!({"problem": "p", "gold_spans": broken})).unwrap_err().to_string();
            assert!(error.contains("in `gold_spans`"), "{error}");
        }
    }

    /// The files that the project tests on, where they are there.
    #[test]
    fn shared_files_read_whole() {
        let folder = crate::shared::folder("data");
        let Some(folder) = folder else { return };
        let expected = [
            ("aime24", 30),
            ("aime25", 30),
            ("aime26", 30),
            ("aime_1983_2023", 975),
            ("amc23", 40),
            ("gsm8k_test", 1319),
            ("gsm8k_train_1500", 1500),
            ("hmmt25", 60),
            ("math500", 500),
            ("math_test", 5000),
            ("math_train_2000", 2000),
            ("mawps_addsub", 395),
            ("mawps_multiarith", 600),
            ("mawps_singleeq", 508),
            ("mawps_singleop", 562),
            ("svamp", 1000),
        ];
        for (name, n) in expected {
            let problems = read_problems(&folder.join(format!("{name}.jsonl"))).unwrap();
            assert_eq!(problems.len(), n, "{name}");
            // One training problem of MATH has an empty answer in its source.
            let without_gold = problems.iter().filter(|problem| problem.gold.is_none()).count();
            assert_eq!(without_gold, usize::from(name == "math_train_2000"), "{name}");
        }
    }
}
