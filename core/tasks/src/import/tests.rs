//! Imports in both forms, what is refused, and the real traces.

use super::*;
use crate::error::Error;

fn import_lines(lines: &[serde_json::Value]) -> Result<Vec<Trace>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.jsonl");
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    std::fs::write(&path, text.join("\n")).unwrap();
    let tokenizer = Tokenizer::builtin_bytes().unwrap();
    let template = ChatTemplate::builtin().unwrap();
    import_with(&path, &tokenizer, Some(&template))
}

fn import_with(path: &Path, tokenizer: &Tokenizer, template: Option<&ChatTemplate>) -> Result<Vec<Trace>> {
    let prompt = PromptOptions::default();
    let vocab_size = tokenizer.vocab_size();
    let context = ImportContext { tokenizer, template, prompt: &prompt, vocab_size, tags: None };
    import_traces(path, &context).map(|imported| imported.traces)
}

#[test]
fn a_row_says_what_its_file_says_or_null() {
    let line = serde_json::json!({"question": "2+2?", "gt": "4", "response": "\\boxed{4}", "model": "org/Some-7B"});
    let trace = &import_lines(std::slice::from_ref(&line)).unwrap()[0];
    assert_eq!(
        (trace.model.as_deref(), trace.gold.as_deref(), trace.correct),
        (Some("org/Some-7B"), Some("4"), Some(true))
    );
    assert_eq!((trace.temperature, trace.top_p, trace.seed), (None, None, None));
    let line = serde_json::json!({"question": "q", "reward_model": {"ground_truth": "5"}, "output": "\\boxed{4}",
        "temperature": 0.6, "top_p": 0.95, "seed": 7});
    let trace = &import_lines(std::slice::from_ref(&line)).unwrap()[0];
    assert_eq!((trace.model.as_deref(), trace.correct), (None, Some(false)));
    assert_eq!((trace.temperature, trace.top_p, trace.seed), (Some(0.6), Some(0.95), Some(7)));
    let large = serde_json::from_str(r#"{"problem": "p", "gold": 1e22, "trace": "t"}"#).unwrap();
    assert!(import_lines(&[large]).unwrap_err().to_string().contains("a number this large must be text"));
}

#[test]
fn csv_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.csv");
    std::fs::write(&path, "problem,gt,response,temperature\n2+2?,4,\"So, </think>\\boxed{4}\",0.5\n").unwrap();
    let tokenizer = Tokenizer::builtin_bytes().unwrap();
    let traces = import_with(&path, &tokenizer, Some(&ChatTemplate::builtin().unwrap())).unwrap();
    assert_eq!((traces[0].text.as_str(), traces[0].correct), ("So, </think>\\boxed{4}", Some(true)));
    assert_eq!(traces[0].temperature, Some(0.5));
}

#[test]
fn a_tokenizer_that_loses_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"?": 0, "So": 1, "four": 2}, "unk_token": "?"},
    });
    std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    let path = folder.path().join("set.jsonl");
    std::fs::write(&path, r#"{"problem": "p", "prompt": "So", "trace": "So word"}"#).unwrap();
    let error = import_with(&path, &tokenizer, None).unwrap_err();
    assert!(matches!(error, Error::LosesText { lost: 4, of: 6, .. }), "{error}");
    assert!(error.to_string().contains("loses 4 of 6 characters (66.7 %)"), "{error}");
    std::fs::write(&path, r#"{"problem": "p", "prompt": "So", "trace": "So four"}"#).unwrap();
    assert!(import_with(&path, &tokenizer, None).is_ok());
}

#[test]
fn text_with_a_prompt() {
    let line = serde_json::json!({"id": "a/1", "model": "m", "problem": "2+2?", "gold": "4", "prompt": "2+2? <think>\n",
        "trace": "So.</think>\n\\boxed{4}", "answer": "7", "is_correct": false, "temperature": 0.5});
    let trace = &import_lines(&[line]).unwrap()[0];
    assert_eq!((trace.trace_id.as_str(), trace.problem_id.as_str(), trace.dataset.as_str()), ("a/1", "a/1", "set"));
    // The tag is one token, the rest one a byte.
    assert_eq!((trace.n_prompt, trace.boundary, trace.n_answer), (7, 12, 9));
    assert_eq!(trace.prompt.as_deref(), Some("2+2? <think>\n"));
    assert_eq!((trace.answer.as_deref(), trace.correct), (Some("4"), Some(true)));
    assert_eq!((trace.finish_reason.as_str(), trace.temperature), ("imported", Some(0.5)));
}

#[test]
fn text_without_a_prompt_gets_one_from_the_template() {
    let line = serde_json::json!({"problem": "2+2?", "ground_truth": "4", "generated_text": "\\boxed{4}"});
    let trace = &import_lines(std::slice::from_ref(&line)).unwrap()[0];
    assert!(trace.prompt.as_deref().unwrap().starts_with("<s><|user|>2+2?"));
    assert_eq!(trace.trace_id, "set-1");
}

#[test]
fn token_ids_count_before_text() {
    let line = serde_json::json!({"problem": "2+2?", "ground_truth": "4", "generated_text": "ignored",
        "token_ids": [257, 50, 120, 260, 52], "prompt_len": 2, "correct": true, "pred_answer": "4", "dataset": "math"});
    let trace = &import_lines(&[line]).unwrap()[0];
    assert_eq!(trace.token_ids, [257, 50, 120, 260, 52]);
    assert_eq!((trace.text.as_str(), trace.dataset.as_str(), trace.prompt.as_deref()), ("x</think>4", "math", None));
    assert_eq!((trace.n_prompt, trace.boundary, trace.correct), (2, 4, Some(true)));
}

#[test]
fn what_is_refused_is_named() {
    let ids = |ids: &[i64], n: u32| serde_json::json!({"problem": "p", "token_ids": ids, "prompt_len": n});
    let error = import_lines(&[ids(&[1, 2], 1), ids(&[1, 264], 1)]).unwrap_err();
    assert!(matches!(error, Error::TokenOutOfVocabulary { line: 2, id: 264, at: 1, vocab_size: 264, .. }), "{error}");
    assert!(error.to_string().contains("set.jsonl, line 2"));
    assert!(import_lines(&[ids(&[1], 2)]).unwrap_err().to_string().contains("at most 1 tokens, got 2"));
    let bare = serde_json::json!({"problem": "p"});
    assert!(import_lines(&[bare]).unwrap_err().to_string().contains("`trace` or `text`"));
    let no_length = serde_json::json!({"problem": "p", "token_ids": [1]});
    assert!(import_lines(&[no_length]).unwrap_err().to_string().contains("`prompt_len` or `n_prompt`"));
    let twice = serde_json::json!({"id": "a", "problem": "p", "prompt": "p", "trace": "t"});
    assert!(matches!(import_lines(&[twice.clone(), twice]), Err(Error::DuplicateId { line: 2, .. })));
}

/// 40 traces of two R1 distillations. Their prompts open the think tag and mention a box; 28 of them have a box before
/// the closing tag, which must not be taken for the answer. Any tokenizer must find the same text spans.
#[test]
fn real_traces_split_after_their_one_closing_tag() {
    let Some(folder) = crate::shared::folder("data") else { return };
    let path = folder.join("traces_real.jsonl");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/model/tokenizers/llama3-r1");
    for tokenizer in [Tokenizer::builtin_bytes().unwrap(), Tokenizer::from_folder(&golden).unwrap()] {
        let traces = import_with(&path, &tokenizer, None).unwrap();
        let rows = rows::read(&path, "trace").unwrap();
        assert_eq!((traces.len(), rows.len()), (40, 40));
        for (trace, row) in traces.iter().zip(&rows) {
            check_real(trace, row, &tokenizer);
        }
    }
}

fn check_real(trace: &Trace, row: &Row, tokenizer: &Tokenizer) {
    let id = &trace.trace_id;
    let text = row.text(&["trace"]).unwrap().unwrap();
    let (_, answer_text) = text.rsplit_once("</think>").unwrap();
    assert_eq!((trace.boundary_kind.as_str(), trace.n_think_end), ("think_end", 1), "{id}");
    assert_eq!(trace.reason_start, trace.n_prompt, "{id}");
    assert_eq!(trace.text, text, "{id}");

    let ids: Vec<u32> = trace.token_ids.iter().map(|id| u32::try_from(*id).unwrap()).collect();
    let boundary = usize::try_from(trace.boundary).unwrap();
    let prompt = row.text(&["prompt"]).unwrap().unwrap();
    let read = tokenizer.decode(&ids[..usize::try_from(trace.n_prompt).unwrap()]).unwrap();
    assert_eq!(read.strip_prefix("<|begin_of_text|>").unwrap_or(&read), prompt, "{id}");
    // White space that shares a token with the answer's first word stays with the answer.
    let decoded = tokenizer.decode(&ids[boundary..]).unwrap();
    assert_eq!(decoded.trim_start(), answer_text.trim_start(), "{id}");
    let before = tokenizer.decode(&ids[..boundary]).unwrap();
    assert!(before.trim_end().ends_with("</think>"), "{id}");

    let boxed = epikv_grader::last_box(answer_text).unwrap();
    assert_eq!(trace.answer.as_deref(), Some(boxed), "{id}");
    let stated = row.text(&["answer"]).unwrap().unwrap();
    assert_eq!(boxed, stated, "{id}");
    assert_eq!(trace.correct, row.get(&["is_correct"]).and_then(|(value, _)| value.as_bool()), "{id}");
}
