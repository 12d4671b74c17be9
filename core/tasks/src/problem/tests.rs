//! Problems as their files have them.

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

    check(&json!({"problem": "p", "solution": r"so \boxed{x^{2}}", "type": "Algebra"}), "set-1", "p", Some("x^{2}"));
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
    for broken in [json!("e 5"), json!([{"text": "e 5"}]), json!([{"text": "e", "mentions": [{"start": 4, "end": 4}]}])]
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
