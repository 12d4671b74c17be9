//! Running the binary in a fresh folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use epikv_schemas::{Provenance, Record, write_table};

/// A fresh folder to run in.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// Two problems that every test can use.
    pub(crate) fn problems(&self) -> PathBuf {
        self.write(
            "problems.jsonl",
            "{\"id\": \"a\", \"problem\": \"2+2?\", \"answer\": \"4\"}\n{\"id\": \"b\", \"problem\": \"3*3?\", \"answer\": \"9\"}\n",
        )
    }

    /// Runs the binary here; a command that runs a model and is given none gets a small random one.
    pub(crate) fn epikv(&self, args: &[&str]) -> Ran {
        let runs_a_model = matches!(args[0], "trace" | "label" | "correlate" | "evict" | "replay");
        let is_given = args.contains(&"--model") || args.contains(&"--config");
        let model: &[&str] = if runs_a_model && !is_given { &["--model", "random:0"] } else { &[] };
        let mut command = Command::new(env!("CARGO_BIN_EXE_epikv"));
        Ran(command.args(args).args(model).current_dir(self.0.path()).output().unwrap())
    }

    /// Starts the binary here with a small random model and does not wait for it.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.spawn(&[args, &["--model", "random:0"]].concat())
    }

    /// Starts the binary here and does not wait for it.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_epikv"));
        command.args(args).current_dir(self.0.path()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// A copy of the embedded model in the folder `model`.
    pub(crate) fn tiny_reasoner(&self) -> PathBuf {
        let (from, to) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tiny-reasoner"), self.path("model"));
        std::fs::create_dir(&to).unwrap();
        for file in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
            std::fs::copy(from.join(file), to.join(file)).unwrap();
        }
        to
    }

    /// Makes `traces.parquet` of the two problems.
    pub(crate) fn traces(&self) {
        self.problems();
        self.epikv(&["trace", "--problems", "problems.jsonl", "--out", "traces.parquet", "--max-new", "96", "--quiet"])
            .ok();
    }
}

/// A finished run.
#[derive(Debug)]
pub(crate) struct Ran(Output);

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().unwrap_or(-1)
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code(), 0, "{}", self.stderr());
        self
    }

    /// The run could not be: exit code 2, an `error:` line, and each of the given words.
    pub(crate) fn refused(self, words: &[&str]) -> Self {
        let text = self.stderr();
        assert_eq!(self.code(), 2, "{text}");
        assert!(text.starts_with("error: "), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        for word in words {
            assert!(text.contains(word), "{word:?} is not in\n{text}");
        }
        self
    }
}

/// The bytes of a file.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Writes other rows to a file of a run. Without a manifest it is read as it stands.
pub(crate) fn rewrite<R: Record>(path: &Path, rows: &[R], provenance: &Provenance) {
    write_table(path, rows, provenance).unwrap();
    let manifest = path.with_file_name("manifest.jsonl");
    if manifest.exists() {
        std::fs::remove_file(manifest).unwrap();
    }
}
