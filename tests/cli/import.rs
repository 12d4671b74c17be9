//! `epikv trace --import`, and problem files of other forms.

use epikv_schemas::{Trace, read_table};

use crate::support::Place;

const LINE: &str = r#"{"id": "a", "problem": "1+1?", "gt": "2", "response": "<think>One and one.</think>\\boxed{2}", "model": "org/M"}"#;

#[test]
fn an_import_needs_the_model_that_wrote_the_traces() {
    let place = Place::new();
    place.write("in.jsonl", LINE);
    place.write("no-model.toml", "quiet = true\n");
    place
        .epikv(&["trace", "--import", "in.jsonl", "--out", "t.parquet", "--config", "no-model.toml"])
        .refused(&["--import: expected --model, got none", "hint: --model M names the model that wrote the traces"]);
    place.epikv(&["trace", "--model", "tiny", "--import", "in.jsonl", "--out", "t.parquet"]).refused(&[
        "in.jsonl",
        "which loses",
        "hint: --model must be the one that wrote the traces",
    ]);
    assert!(!place.path("t.parquet").exists());
}

#[test]
fn an_import_says_what_its_file_says() {
    let place = Place::new();
    place.write("in.jsonl", LINE);
    place.epikv(&["trace", "--model", "random:0", "--import", "in.jsonl", "--out", "t.parquet", "--quiet"]).ok();
    let (traces, provenance) = read_table::<Trace>(&place.path("t.parquet")).unwrap();
    let trace = &traces[0];
    assert_eq!((trace.model.as_deref(), trace.correct), (Some("org/M"), Some(true)));
    assert_eq!((trace.temperature, trace.top_p, trace.seed), (None, None, None));
    let model = provenance.get("model").unwrap();
    assert!(
        model["tokenizer_sha256"].is_string() && model.get("weights_sha256").is_none() && model.get("id").is_none()
    );
    let run = provenance.get("run").unwrap();
    // The row brings no prompt, so that it was made here.
    assert_eq!(run["n_prompts_made"], 1);
    assert!(run["prompt"]["instruction"].is_string() && run.get("temperature").is_none());

    place.write("own.jsonl", LINE.replace("\"id\"", "\"prompt\": \"1+1?\", \"id\""));
    place.epikv(&["trace", "--model", "random:0", "--import", "own.jsonl", "--out", "own.parquet", "--quiet"]).ok();
    let (_, provenance) = read_table::<Trace>(&place.path("own.parquet")).unwrap();
    assert!(provenance.get("run").unwrap().get("prompt").is_none());
}

#[test]
fn think_tags_are_named_by_a_flag() {
    let place = Place::new();
    place.write("in.jsonl", LINE.replace("<think>", "((").replace("</think>", "))"));
    let args =
        ["trace", "--model", "random:0", "--import", "in.jsonl", "--out", "t.parquet", "--quiet", "--think-tags"];
    place.epikv(&[&args[..], &["(("]].concat()).refused(&["OPEN,CLOSE"]);
    place.epikv(&[&args[..], &["((,))"]].concat()).ok();
    let (traces, _) = read_table::<Trace>(&place.path("t.parquet")).unwrap();
    assert_eq!((traces[0].boundary_kind.as_str(), traces[0].n_think_end), ("think_end", 1));
}

#[test]
fn problems_come_from_csv_and_from_a_folder_of_parts() {
    let place = Place::new();
    std::fs::create_dir(place.path("sums")).unwrap();
    place.write("sums/a.csv", "problem,answer\n\"1, 1?\",2\n");
    place.write("sums/b.jsonl", "{\"problem\": \"2+2?\", \"answer\": 4}\n");
    let args =
        ["trace", "--model", "random:0", "--problems", "sums", "--out", "t.parquet", "--max-new", "2", "--quiet"];
    place.epikv(&args).ok();
    let (traces, provenance) = read_table::<Trace>(&place.path("t.parquet")).unwrap();
    let golds: Vec<_> = traces.iter().map(|trace| (trace.dataset.as_str(), trace.gold.as_deref())).collect();
    assert_eq!(golds, [("sums", Some("2")), ("sums", Some("4"))]);
    assert_eq!(provenance.get("inputs").unwrap().as_array().unwrap().len(), 2);
    place.write("large.jsonl", "{\"id\":\"a\",\"problem\":\"p\",\"answer\":1e22}\n");
    place
        .epikv(&["trace", "--model", "random:0", "--problems", "large.jsonl", "--out", "l.parquet"])
        .refused(&["large.jsonl, line 1", "a number this large must be text"]);
}
