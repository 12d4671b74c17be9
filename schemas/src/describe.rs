//! Documentation of the tables, as Markdown and as JSON. Both are generated from the definitions that the files use.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::{
    records::registry,
    role::Role,
    spec::{ColumnSpec, TableSpec},
};

const INTRODUCTION: &str = "\
# Record files

Generated from the definitions in `schemas/src/records/`; do not edit. To regenerate:

```
cargo run --release -- schema --markdown > docs/files.md
```

All files are Parquet: zstd level 3, data pages V1, byte stream split for floats, delta encoding for token indices,
dictionaries for short text, statistics and page index except for free text, rows sorted by the key named below, row
groups of at most 131072 rows (1024 traces) that end where the first key column changes. Undefined is null, never NaN.

The `epi.` keys of the key-value metadata hold one JSON value each: the tool, model, run and inputs that made the file, and
under `epi.schema` the table and its version as a JSON string, `name/major.minor`. A reader takes columns that an older minor
version lacks as null, ignores columns that a newer one added, and refuses another major version. Data files hold only what
determines their values, so that the same command gives the same bytes; `*_timings` files hold what differs from run to
run, and `manifest.jsonl` gets one JSON line each time a file is finished: `file`, `rows`, `sha256`, `bytes` and notes of the
run. Where a file was made more than once its last line counts.

The files of a run appear together. While `commit.json` stands in a folder, a run was stopped between its files: the same
command completes it, and epikv refuses the files that it names until then. A file that differs from its last line in
`manifest.jsonl` is refused; a file that no manifest lists is read as it is. The same finished command does nothing again.
";

/// All tables as one Markdown page, which is `docs/files.md`.
pub fn page() -> String {
    registry().iter().fold(INTRODUCTION.to_owned(), |page, table| page + "\n" + &markdown(table))
}

/// A table as a section of Markdown.
pub fn markdown(table: &TableSpec) -> String {
    let rows = if table.unique { "One row for each" } else { "Rows sorted by" };
    let mut text = format!(
        "## {}\n\n{}\n\nSchema `{}`. {rows} `{}`.\n\n| column | type | null | unit | meaning |\n| --- | --- | --- | --- | --- |\n",
        table.name,
        table.doc.trim(),
        table.id(),
        table.sort_key.join("`, `"),
    );
    for column in table.columns {
        let null = if column.nullable { "yes" } else { "no" };
        let cells = [file_name(column), format!("`{}`", column.kind.name()), null.to_owned(), column.unit().to_owned()];
        let meaning = column.doc.trim().replace('|', "\\|");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {meaning}{} |", cells.join(" | "), words(column));
    }
    text
}

/// A table as one JSON object.
pub fn json(table: &TableSpec) -> Value {
    let column = |column: &ColumnSpec| {
        let mut object = json!({
            "name": column.name,
            "type": column.kind.name(),
            "nullable": column.nullable,
            "per_layer": column.per_layer,
            "unit": column.unit(),
            "doc": column.doc.trim(),
        });
        if let Role::Word(words) = column.role {
            object["words"] = json!(words);
        }
        object
    };
    json!({
        "name": table.name,
        "schema": table.id(),
        "file": table.file_name(),
        "doc": table.doc.trim(),
        "sort_key": table.sort_key,
        "unique": table.unique,
        "columns": table.columns.iter().map(column).collect::<Vec<_>>(),
    })
}

fn file_name(column: &ColumnSpec) -> String {
    if column.per_layer { format!("`{}_l00`, ...", column.name) } else { format!("`{}`", column.name) }
}

fn words(column: &ColumnSpec) -> String {
    match column.role {
        Role::Word(words) => format!(" One of `{}`.", words.join("`, `")),
        _ => String::new(),
    }
}
