//! Two folders of results, file by file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::table::{self, TableReport};

/// What came out of comparing two folders.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Each file that both have, with what was found.
    tables: Vec<(PathBuf, TableReport)>,
    /// Files of the old folder that the new one lacks.
    missing: Vec<PathBuf>,
    /// Files that only the new folder has.
    added: Vec<PathBuf>,
}

impl Report {
    /// Whether everything that the old folder has is in the new one.
    pub(crate) fn is_equal(&self) -> bool {
        self.missing.is_empty() && self.tables.iter().all(|(_, table)| table.differences.is_empty())
    }

    /// The differences with file, row, column and both values.
    pub(crate) fn differences(&self) -> Vec<String> {
        let missing = self.missing.iter().map(|file| format!("{}: not in the new results", file.display()));
        let found = self.tables.iter().flat_map(|(file, table)| {
            table.differences.iter().map(move |difference| format!("{}: {difference}", file.display()))
        });
        missing.chain(found).collect()
    }

    /// Columns, rows and files that only the new folder has.
    pub(crate) fn additions(&self) -> Vec<String> {
        let mut all: Vec<String> = self.added.iter().map(|file| format!("{}: new file", file.display())).collect();
        for (file, table) in &self.tables {
            all.extend(table.new_columns.iter().map(|column| format!("{}: new column {column}", file.display())));
            if table.new_rows > 0 {
                all.push(format!("{}: {} new rows", file.display(), table.new_rows));
            }
        }
        all
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        // Tables in parts are shown as one.
        let mut shown: BTreeMap<String, (usize, usize, usize, usize)> = BTreeMap::new();
        for (file, table) in &self.tables {
            let file = file.display().to_string();
            let label = file.split_once('-').map_or(file.clone(), |(table, _)| format!("{table}-*.parquet"));
            let (files, rows, columns, aside) = shown.entry(label).or_default();
            (*files, *rows, *columns, *aside) = (*files + 1, *rows + table.rows, table.columns, *aside + table.aside);
        }
        for (label, (files, rows, columns, aside)) in shown {
            let files = if files > 1 { format!("{files} files, ") } else { String::new() };
            let aside = if aside > 0 { format!(", {aside} set aside") } else { String::new() };
            writeln!(out, "{label}: {files}{rows} rows, {columns} columns{aside}")?;
        }
        for addition in self.additions() {
            writeln!(out, "{addition}")?;
        }
        let differences = self.differences();
        for difference in &differences {
            writeln!(out, "DIFFERENT {difference}")?;
        }
        let values: usize = self.tables.iter().map(|(_, table)| table.rows * table.columns).sum();
        let files = self.tables.len();
        if differences.is_empty() {
            writeln!(out, "equal: {values} values in {files} files")
        } else {
            writeln!(out, "not equal: {} differences shown, {values} values in {files} files", differences.len())
        }
    }
}

/// Compares all data files of two folders.
///
/// # Errors
/// If there are none in the old folder, or one can't be read.
pub(crate) fn compare(old: &Path, new: &Path) -> Result<Report> {
    let (of_old, of_new) = (data_files(old)?, data_files(new)?);
    ensure!(!of_old.is_empty(), "{}: expected data files, found none", old.display());
    let mut report = Report {
        missing: of_old.difference(&of_new).cloned().collect(),
        added: of_new.difference(&of_old).cloned().collect(),
        ..Report::default()
    };
    for file in of_old.intersection(&of_new) {
        let found = table::compare(&old.join(file), &new.join(file));
        report.tables.push((file.clone(), found.with_context(|| file.display().to_string())?));
    }
    Ok(report)
}

/// Parquet files but those of times, by their path in the folder. Hidden folders hold unfinished work and are left out.
fn data_files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("reading {}", next.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.extend((!name.starts_with('.')).then_some(path));
            } else if name.ends_with(".parquet") && !name.ends_with("_timings.parquet") {
                found.insert(path.strip_prefix(folder)?.to_owned());
            }
        }
    }
    Ok(found)
}
