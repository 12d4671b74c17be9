//! `epikv export`: labelled traces as one self-contained HTML page.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Result, bail};
use epikv_notebooks_export::traces_page;
use epikv_schemas::{LabelWindow, Trace, fs, read_table};

use crate::cli::ExportArgs;
use crate::inputs;
use crate::output::{Done, check_alone};

/// The file of a label folder that is read.
const WINDOWS: &str = "label_windows.parquet";

/// Writes the page.
pub(crate) fn run(args: &ExportArgs) -> Result<Done> {
    let out = &args.out;
    if out.extension().is_none_or(|extension| extension != "html") {
        bail!("--out {}: expected a file name that ends in .html", out.display());
    }
    let (mut traces, _) = inputs::traces(&args.traces, None)?;
    if let Some(missing) = args.trace.iter().find(|id| traces.iter().all(|trace| trace.trace_id != **id)) {
        bail!("--trace {missing}: expected a trace of {}, got none of that name", args.traces.display());
    }
    traces.truncate(args.limit.unwrap_or(usize::MAX));
    traces.retain(|trace| args.trace.is_empty() || args.trace.contains(&trace.trace_id));
    let windows_file = args.labels.join(WINDOWS);
    let mut windows: BTreeMap<String, Vec<LabelWindow>> = BTreeMap::new();
    for window in read_table::<LabelWindow>(&windows_file)?.0 {
        windows.entry(window.trace_id.clone()).or_default().push(window);
    }
    let labelled = traces.iter().filter_map(|trace| Some((trace, windows.get(&trace.trace_id)?.as_slice())));
    let labelled: Vec<(&Trace, &[LabelWindow])> = labelled.collect();
    if labelled.is_empty() {
        bail!(
            "{}: expected windows of at least one of {} traces of {}, got none",
            windows_file.display(),
            traces.len(),
            args.traces.display()
        );
    }
    let page = traces_page(&labelled)?;
    check_alone(out, page.as_bytes(), args.fresh)?;
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_folder(folder)?;
    }
    fs::write_atomic(out, page.as_bytes())?;
    let (n, n_without) = (labelled.len(), traces.len() - labelled.len());
    writeln!(crate::terminal::err(), "{n} traces with windows, {n_without} without -> {}", out.display())?;
    Ok(Done::All)
}
