//! A disk that fills up, played by a limit on the size of files.
#![cfg(unix)]

use std::{fs, path::Path, process::Command};

use epikv_schemas::{Error, LabelWindow, Manifest, Provenance, fs as files, read_table, write_table};
use epikv_words::Hint;
use serde_json::Map;

use crate::tools::{window, write_tokens};

/// Tells the copy of this program that runs under the limit where to work.
const FOLDER: &str = "EPIKV_TEST_LIMITED_FOLDER";

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    write_tokens(&folder.path().join("old.parquet"));
    // Without the trap the signal of the limit would end the program; with it, writing fails as on a full disk.
    let script = r#"trap '' XFSZ; ulimit -f 16; exec "$0" --exact disk::under_the_limit"#;
    let program = std::env::current_exe().unwrap();
    let run = Command::new("sh").args(["-c", script]).arg(program).env(FOLDER, folder.path()).output().unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && output.contains("1 passed"), "{output}{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn under_the_limit() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let path = folder.join("old.parquet");
    let before = fs::read(&path).unwrap();

    // Digests do not compress.
    let digest =
        |number: i32| format!("{:?}", files::write_atomic(&folder.join("scratch"), &number.to_le_bytes()).unwrap());
    let rows: Vec<LabelWindow> =
        (0..3000).map(|at| LabelWindow { answer_text: digest(at), ..window("a", at) }).collect();
    for _ in 0..2 {
        let error = write_table(&path, &rows, &Provenance::new()).unwrap_err();
        assert!(matches!(error, Error::Io { action: "write to", .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("free some space"));
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    }

    let small = write_table(&folder.join("small.parquet"), &rows[..2], &Provenance::new()).unwrap();
    assert_eq!(read_table::<LabelWindow>(&folder.join("small.parquet")).unwrap().0, rows[..2]);
    let mut manifest = Manifest::open(folder).unwrap();
    let failed = (0..1000).find_map(|_| manifest.append(small.clone(), Map::new()).err());
    assert!(matches!(failed, Some(Error::Io { action: "append to", .. })), "{failed:?}");
    let read = Manifest::open(folder).unwrap();
    assert_eq!(read.entries(), manifest.entries());
    assert!(fs::read(read.path()).unwrap().ends_with(b"\n"), "the failed line is gone");
}
