//! `epikv label --summary`: summaries of the labels in several folders, side by side.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use epikv_labeler::{Known, Missed, Position, Share, missed, shares};
use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Provenance, Trace, read_table};
use serde::Serialize;
use serde_json::Value;

use super::FILES;
use crate::cli::ModelArgs;
use crate::output::Done;
use crate::setup;

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
    /// The needed values that were missed.
    missed: Vec<Missed>,
    /// Windows after which the reference answer can still be read, and how many of them flip.
    readable_after: (usize, usize),
}

/// Prints the summary of folders.
pub(super) fn run(folders: &[PathBuf], traces: Option<&Path>, args: &ModelArgs) -> Result<Done> {
    let traces = traces.map(read_table::<Trace>).transpose()?;
    let found = folders.iter().map(|f| of_folder(f, traces.as_ref(), args)).collect::<Result<Vec<OfFolder>>>()?;
    let text = if args.json { serde_json::to_string(&found)? + "\n" } else { markdown(&found)? };
    write!(std::io::stdout(), "{text}")?;
    Ok(Done::All)
}

fn of_folder(folder: &Path, traces: Option<&(Vec<Trace>, Provenance)>, args: &ModelArgs) -> Result<OfFolder> {
    let (windows, made_by): (Vec<LabelWindow>, Provenance) = read_table(&folder.join(FILES[0]))?;
    let tokens = read_table::<LabelToken>(&folder.join(FILES[1]))?.0;
    let labelled = read_table::<LabelTrace>(&folder.join(FILES[2]))?.0;
    let setting = |key: &str| made_by.get("run").map_or(Value::Null, |run| run[key].clone());
    let readable = windows.iter().filter(|window| window.readable_after == Some(true));
    let n_flipped = readable.clone().filter(|window| window.flipped == Some(true)).count();
    let known = traces.and_then(|(traces, _)| Known::of(&windows, &labelled, traces));
    Ok(OfFolder {
        folder: folder.to_owned(),
        filler: setting("filler").as_str().map(str::to_owned),
        window: setting("window").as_u64(),
        shares: shares(&windows, &tokens, &labelled, args.seed),
        position: Position::of(&tokens, &labelled),
        missed: match traces {
            Some(traces) => explained(known.as_ref(), &windows, &labelled, traces, args)?,
            None => Vec::new(),
        },
        known,
        readable_after: (readable.count(), n_flipped),
    })
}

/// Explains the needed values that were missed, in words that the tokenizer of the traces gives.
fn explained(
    known: Option<&Known>,
    windows: &[LabelWindow],
    labelled: &[LabelTrace],
    (traces, made_by): &(Vec<Trace>, Provenance),
    args: &ModelArgs,
) -> Result<Vec<Missed>> {
    if known.is_none_or(|known| known.by_mentions.values().all(|values| values.n_missed == 0)) {
        return Ok(Vec::new());
    }
    let tokenizer = setup::model(args)?.tokenizer;
    let made = made_by.get("model").and_then(|model| model["tokenizer_sha256"].as_str());
    if made.is_some_and(|made| made != tokenizer.sha256()) {
        tracing::warn!("missed values are explained with --model, the model that the traces were made with");
        return Ok(Vec::new());
    }
    missed(windows, labelled, traces, |ids| {
        let ids: Vec<u32> = ids.iter().map(|&id| u32::try_from(id)).collect::<Result<_, _>>()?;
        Ok(tokenizer.byte_offsets(&ids)?)
    })
}

/// Tables of shares, of positions and of known needs, and a line for each missed value.
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
    for (one, missed) in found.iter().flat_map(|one| one.missed.iter().map(move |missed| (one, missed))) {
        let windows = missed.windows.iter().map(|window| {
            let answer = window.answer.as_deref().unwrap_or("nothing");
            format!("{}-{} answered {answer}, its digits {}x outside", window.start, window.end, window.n_elsewhere)
        });
        let windows = windows.collect::<Vec<_>>().join("; ");
        let how = if missed.has_another_way { "another way to it" } else { "guessed" };
        let Missed { trace_id, text: value, .. } = missed;
        writeln!(text, "\n{}: {trace_id}: `{value}` missed by windows {windows}: {how}", one.folder.display())?;
    }
    Ok(text)
}
