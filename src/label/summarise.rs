//! `epikv label --summary`: what the labels in some folders say, side by side.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use epikv_labeler::{Known, Position, Share, shares};
use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Provenance, Trace, read_table};
use serde::Serialize;
use serde_json::Value;

use super::FILES;
use crate::cli::ModelArgs;
use crate::output::Done;

/// The labels of a folder in a few numbers.
#[derive(Debug, Serialize)]
struct OfFolder {
    folder: PathBuf,
    /// What was done to the windows.
    filler: Option<String>,
    /// Tokens of a window.
    window: Option<u64>,
    shares: Vec<Share>,
    position: Position,
    /// Against what the answers are known to need; null without traces that say so.
    known: Option<Known>,
    /// Windows after which the reference answer can still be read, and how many of them flip.
    readable_after: (usize, usize),
}

/// Prints the summary of folders.
pub(super) fn run(folders: &[PathBuf], traces: Option<&Path>, args: &ModelArgs) -> Result<Done> {
    let traces = traces.map(read_table::<Trace>).transpose()?.map(|(traces, _)| traces);
    let found =
        folders.iter().map(|f| of_folder(f, traces.as_deref(), args.seed)).collect::<Result<Vec<OfFolder>>>()?;
    let text = if args.json { serde_json::to_string(&found)? + "\n" } else { markdown(&found)? };
    write!(std::io::stdout(), "{text}")?;
    Ok(Done::All)
}

fn of_folder(folder: &Path, traces: Option<&[Trace]>, seed: u64) -> Result<OfFolder> {
    let (windows, made_by): (Vec<LabelWindow>, Provenance) = read_table(&folder.join(FILES[0]))?;
    let tokens = read_table::<LabelToken>(&folder.join(FILES[1]))?.0;
    let labelled = read_table::<LabelTrace>(&folder.join(FILES[2]))?.0;
    let setting = |key: &str| made_by.get("run").map_or(Value::Null, |run| run[key].clone());
    let readable = windows.iter().filter(|window| window.readable_after == Some(true));
    let n_flipped = readable.clone().filter(|window| window.flipped == Some(true)).count();
    Ok(OfFolder {
        folder: folder.to_owned(),
        filler: setting("filler").as_str().map(str::to_owned),
        window: setting("window").as_u64(),
        shares: shares(&windows, &tokens, &labelled, seed),
        position: Position::of(&tokens, &labelled),
        known: traces.and_then(|traces| Known::of(&windows, &labelled, traces)),
        readable_after: (readable.count(), n_flipped),
    })
}

/// Tables of shares, of positions and of known needs.
fn markdown(found: &[OfFolder]) -> Result<String> {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let mut text = String::from(
        "| labels | dataset | mapping | divided by | traces | share | 95 % interval |\n\
         | --- | --- | --- | --- | ---: | ---: | --- |\n",
    );
    for one in found {
        for Share { dataset, mapping, divided_by, n_traces, share, interval } in &one.shares {
            let bounds = interval.map_or("-".to_owned(), |(low, high)| format!("{low:.3} to {high:.3}"));
            let (name, share) = (one.folder.display(), number(*share));
            writeln!(text, "| {name} | {dataset} | {mapping} | {divided_by} | {n_traces} | {share} | {bounds} |")?;
        }
    }
    text.push_str(
        "\n| labels | rho of label and position | important share by tenth of the reasoning | answer readable after | of these flip |\n\
         | --- | ---: | --- | ---: | ---: |\n",
    );
    for one in found {
        let deciles: Vec<String> = one.position.by_decile.iter().map(|share| number(*share)).collect();
        let (rho, (n, n_flipped)) = (number(one.position.rho), one.readable_after);
        writeln!(text, "| {} | {rho} | {} | {n} | {n_flipped} |", one.folder.display(), deciles.join(" "))?;
    }
    if found.iter().any(|one| one.known.is_some()) {
        text.push_str(
            "\n| labels | filler | window | recall | precision | AUC | missed by number of mentions |\n\
             | --- | --- | ---: | ---: | ---: | ---: | --- |\n",
        );
    }
    for one in found {
        let Some(known) = &one.known else { continue };
        let missed: Vec<String> = known
            .by_mentions
            .iter()
            .map(|(n, values)| format!("{n}x: {} of {}", values.n_missed, values.n_hidden))
            .collect();
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            one.folder.display(),
            one.filler.as_deref().unwrap_or("-"),
            one.window.map_or("-".to_owned(), |window| window.to_string()),
            number(known.recall()),
            number(known.precision()),
            number(known.auc),
            missed.join(", ")
        )?;
    }
    Ok(text)
}
