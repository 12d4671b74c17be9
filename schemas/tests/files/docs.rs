//! The documentation of the files is that of the definitions.

use std::path::Path;

use epikv_schemas::{
    describe::{json, page},
    registry,
};

#[test]
fn the_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/files.md");
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == page(),
        "docs/files.md is not what the definitions say; run\n    cargo run --release -- schema --markdown > docs/files.md"
    );
}

#[test]
fn every_record_file_is_registered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/records");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = names.filter(|name| name != "mod.rs").collect();
    let mut tables: Vec<String> = registry().iter().map(|table| format!("{}.rs", table.name)).collect();
    files.sort();
    tables.sort();
    assert_eq!(files, tables);
}

#[test]
fn json_names_what_a_program_needs() {
    let tables: Vec<_> = registry().iter().map(|table| json(table)).collect();
    let tokens = tables.iter().find(|table| table["name"] == "label_tokens").unwrap();
    assert_eq!(tokens["schema"], "label_tokens/1.0");
    assert_eq!(tokens["sort_key"][1], "pos");
    assert_eq!(tokens["columns"][3]["words"][0], "prompt");
    assert_eq!(tokens["columns"][5]["nullable"], true);
    assert_eq!(tokens["columns"][1]["unit"], "token index");
}
