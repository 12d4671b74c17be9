//! Rows, and files that our own writer would not write.

use std::{fs::File, path::Path};

use arrow::record_batch::RecordBatch;
use epikv_schemas::{LabelToken, LabelWindow, Provenance, write_table};
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    file::{metadata::KeyValue, properties::WriterProperties},
};

pub(crate) fn token(trace_id: &str, pos: i32) -> LabelToken {
    LabelToken {
        trace_id: trace_id.into(),
        pos,
        token_id: 1000 + pos,
        region: "reason".into(),
        tested: true,
        important: Some(pos % 3 == 0),
        n_cover: 2,
        n_flip: 0,
    }
}

pub(crate) fn window(trace_id: &str, window: i32) -> LabelWindow {
    LabelWindow {
        trace_id: trace_id.into(),
        window,
        start: 16 * window,
        end: 16 * window + 32,
        filler: "eos".into(),
        filler_ids_sha: "00".into(),
        answer: Some("7".into()),
        outcome: "same".into(),
        flipped: Some(false),
        n_new: 9,
        hit_limit: false,
        min_margin: Some(0.5),
        answer_text: "The answer is \\boxed{7}".into(),
        logprob_drop: None,
        readable_after: None,
    }
}

/// Writes three tokens.
pub(crate) fn write_tokens(path: &Path) {
    let rows = [token("a", 0), token("a", 1), token("b", 0)];
    write_table(path, &rows, &Provenance::new()).unwrap();
}

/// Writes a file again with another `epi.schema` value (as JSON text) and changed columns.
pub(crate) fn rewrite(path: &Path, schema: Option<&str>, change: impl Fn(RecordBatch) -> RecordBatch) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(|batch| change(batch.unwrap())).collect();
    let metadata = schema.map(|schema| vec![KeyValue::new("epi.schema".into(), schema.to_owned())]);
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), Some(properties)).unwrap();
    for batch in &batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
}

/// The batch with one column replaced, added (if it has a new name) or, with `None`, left out.
pub(crate) fn with_column(batch: &RecordBatch, name: &str, array: Option<arrow::array::ArrayRef>) -> RecordBatch {
    let schema = batch.schema();
    let named = schema.fields().iter().map(|field| field.name().as_str()).zip(batch.columns().iter().cloned());
    let mut columns: Vec<_> = named.filter(|(other, _)| *other != name).collect();
    columns.extend(array.map(|array| (name, array)));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}
