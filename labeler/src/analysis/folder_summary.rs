//! What the labels in some folders say, side by side.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use epikv_model::tokenizer::Tokenizer;
use epikv_schemas::Trace;
use serde::Serialize;
use serde_json::Value;

use crate::analysis::known::Known;
use crate::analysis::missed::{Missed, missed};
use crate::analysis::position::Position;
use crate::analysis::shares::{Share, shares};
use crate::error::Error;
use crate::files::folder;

/// The labels of a folder in a few numbers.
#[derive(Debug, Serialize)]
pub struct FolderSummary {
    /// The folder.
    pub folder: PathBuf,
    /// What was done to the windows.
    pub filler: Option<String>,
    /// Tokens of a window.
    pub window: Option<u64>,
    /// Shares of important tokens, by data set, mapping and division.
    pub shares: Vec<Share>,
    /// Where the important tokens stand.
    pub position: Position,
    /// Against what the answers are known to need; null without traces that say so.
    pub known: Option<Known>,
    /// The needed values that were missed.
    pub missed: Vec<Missed>,
    /// Windows after which the reference answer can still be read, and how many of them flip.
    pub readable_after: (usize, usize),
}

impl FolderSummary {
    /// Reads the labels of a folder. With `traces`, they are held against what the answers are known to need, and each needed
    /// value that was missed is explained in words that `tokenizer` gives. It is asked for only where a value was missed; `None`
    /// leaves the values unexplained.
    ///
    /// # Errors
    /// If a file cannot be read, or the tokenizer fails.
    pub fn read<E: From<Error>>(
        folder: &Path,
        traces: Option<&[Trace]>,
        seed: u64,
        tokenizer: impl FnOnce() -> Result<Option<Tokenizer>, E>,
    ) -> Result<Self, E> {
        let (windows, made_by) = folder::windows(folder)?;
        let tokens = folder::tokens(folder)?;
        let labelled = folder::traces(folder)?;
        let setting = |key: &str| made_by.get("run").map_or(Value::Null, |run| run[key].clone());
        let readable = windows.iter().filter(|window| window.readable_after == Some(true));
        let n_flipped = readable.clone().filter(|window| window.flipped == Some(true)).count();
        let known = traces.and_then(|traces| Known::of(&windows, &labelled, traces));
        let has_missed = known.as_ref().is_some_and(|known| known.by_mentions.values().any(|n| n.n_missed > 0));
        let tokenizer = if has_missed { tokenizer()? } else { None };
        let explain = |tokenizer: Tokenizer| {
            missed(&windows, &labelled, traces.unwrap_or_default(), |ids| {
                let ids: Vec<u32> = ids.iter().map(|&id| id as u32).collect();
                tokenizer.byte_offsets(&ids).map_err(Error::from)
            })
        };
        Ok(Self {
            folder: folder.to_owned(),
            filler: setting("filler").as_str().map(str::to_owned),
            window: setting("window").as_u64(),
            shares: shares(&windows, &tokens, &labelled, seed),
            position: Position::of(&tokens, &labelled),
            missed: tokenizer.map(explain).transpose()?.unwrap_or_default(),
            known,
            readable_after: (readable.count(), n_flipped),
        })
    }
}

/// Tables of shares, of positions and of known needs, and a line for each missed value.
pub fn markdown(found: &[FolderSummary]) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    // Writing into a string does not fail.
    let mut text = String::from(
        "| labels | dataset | mapping | divided by | traces | share | 95 % interval |\n\
         | --- | --- | --- | --- | ---: | ---: | --- |\n",
    );
    for one in found {
        for Share { dataset, mapping, divided_by, n_traces, share, interval } in &one.shares {
            let bounds = interval.map_or("-".to_owned(), |(low, high)| format!("{low:.3} to {high:.3}"));
            let (name, share) = (one.folder.display(), number(*share));
            let _ =
                writeln!(text, "| {name} | {dataset} | {mapping} | {divided_by} | {n_traces} | {share} | {bounds} |");
        }
    }
    text.push_str(
        "\n| labels | rho of label and position | important share by tenth of the reasoning | answer readable after | of these flip |\n\
         | --- | ---: | --- | ---: | ---: |\n",
    );
    for one in found {
        let deciles: Vec<String> = one.position.by_decile.iter().map(|share| number(*share)).collect();
        let (rho, (n, n_flipped)) = (number(one.position.rho), one.readable_after);
        let _ = writeln!(text, "| {} | {rho} | {} | {n} | {n_flipped} |", one.folder.display(), deciles.join(" "));
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
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            one.folder.display(),
            one.filler.as_deref().unwrap_or("-"),
            one.window.map_or("-".to_owned(), |window| window.to_string()),
            number(known.recall()),
            number(known.precision()),
            number(known.auc),
            missed.join(", ")
        );
    }
    for (one, missed) in found.iter().flat_map(|one| one.missed.iter().map(move |missed| (one, missed))) {
        let windows = missed.windows.iter().map(|window| {
            let answer = window.answer.as_deref().unwrap_or("nothing");
            format!("{}-{} answered {answer}, its digits {}x outside", window.start, window.end, window.n_elsewhere)
        });
        let windows = windows.collect::<Vec<_>>().join("; ");
        let how = if missed.has_another_way { "another way to it" } else { "guessed" };
        let Missed { trace_id, text: value, .. } = missed;
        let _ = writeln!(text, "\n{}: {trace_id}: `{value}` missed by windows {windows}: {how}", one.folder.display());
    }
    text
}
