//! One run of a command that writes a folder: its files, what their provenance says, and its lines in the manifest.

use std::path::Path;

use anyhow::Result;
use epikv_analyzer::figure::png;
use epikv_model::Model;
use epikv_schemas::{PartInfo, Provenance, Record};
use serde_json::{Value, json};

use crate::inputs::{fingerprint, listed};
use crate::output::RunFolder;
use crate::setup;

/// A run under way. Its files appear together, by [`Job::finish`]; a run that fails leaves those of the one before.
#[derive(Debug)]
pub(crate) struct Job {
    folder: RunFolder,
    provenance: Provenance,
}

impl Job {
    /// A run that writes `files`. It refuses to replace them unless `fresh`.
    pub(crate) fn open(command: &str, folder: &Path, files: &[&str], fresh: bool) -> Result<Self> {
        Ok(Self::of(command, RunFolder::open(folder, files, fresh)?))
    }

    /// A run that goes on where the one before it was: `files` are replaced by larger ones, and with `fresh` removed first.
    pub(crate) fn resume(command: &str, folder: &Path, files: &[&str], fresh: bool) -> Result<Self> {
        Ok(Self::of(command, RunFolder::extend(folder, files, fresh)?))
    }

    fn of(command: &str, mut folder: RunFolder) -> Self {
        folder.note("command", json!(command));
        let mut provenance = Provenance::new();
        provenance.set("tool", setup::tool());
        Self { folder, provenance }
    }

    /// Adds to the provenance of the tables written from now on.
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.provenance.set(key, value);
    }

    /// The model that made the tables.
    pub(crate) fn set_model(&mut self, model: &Model) -> Result<()> {
        self.set("model", model.provenance()?);
        Ok(())
    }

    /// The files that the tables are made of.
    pub(crate) fn set_inputs<P: AsRef<Path>>(&mut self, paths: impl IntoIterator<Item = P>) -> Result<()> {
        let paths: Vec<P> = paths.into_iter().collect();
        let inputs = paths.iter().map(|path| fingerprint(path.as_ref())).collect::<Result<_>>()?;
        self.set("inputs", Value::Array(inputs));
        self.note("inputs", listed(&paths)?);
        Ok(())
    }

    /// Adds to what the manifest says of the run: what changes no value.
    pub(crate) fn note(&mut self, key: &str, value: Value) {
        self.folder.note(key, value);
    }

    /// Writes a table under its own name, with the provenance as it is now.
    pub(crate) fn table<R: Record>(&mut self, rows: &[R]) -> Result<()> {
        self.table_as(&format!("{}.parquet", R::table().name), rows)
    }

    /// Writes a table where there is one.
    pub(crate) fn table_if<R: Record>(&mut self, rows: Option<Vec<R>>) -> Result<()> {
        rows.map_or(Ok(()), |rows| self.table(&rows))
    }

    /// Writes a table under another name.
    pub(crate) fn table_as<R: Record>(&mut self, file: &str, rows: &[R]) -> Result<()> {
        self.folder.write(file, rows, &self.provenance)
    }

    /// Writes text or a picture.
    pub(crate) fn file(&mut self, file: &str, content: impl AsRef<[u8]>) -> Result<()> {
        self.folder.write_bytes(file, content.as_ref())
    }

    /// Writes a file by a function that is given its path.
    pub(crate) fn file_by(&mut self, file: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.folder.write_by(file, write)
    }

    /// Writes a figure as SVG and PNG, and its numbers as CSV.
    pub(crate) fn figure(&mut self, name: &str, svg: &str, csv: &str) -> Result<()> {
        self.file(&format!("{name}.svg"), svg)?;
        self.file(&format!("{name}.png"), png(svg)?)?;
        self.file(&format!("{name}.csv"), csv)
    }

    /// Lists a file that stands in its place already.
    pub(crate) fn list(&mut self, part: PartInfo) {
        self.folder.list(part);
    }

    /// Moves all files in place and lists them.
    pub(crate) fn finish(self) -> Result<()> {
        self.folder.finish()
    }
}
