//! What the published code of other policies keeps of the stored tensors of a kvpress prompt.

use std::path::Path;

use anyhow::{Result, ensure};
use epikv_model::backend::DeviceName;
use epikv_model::cache::HeadView;
use epikv_signals::{Group, Pool, Seen, WindowAttention};
use serde_json::Value;

use crate::check::{Check, Outcome, lacking};
use crate::read::{Tensors, count, ids, json, list, list_or_none, members, numbers, word};
use crate::window::{PROBABILITY, highest, scores};

/// Runs `originals.json.gz` of a folder.
pub(crate) fn run(folder: &Path, _device: DeviceName, outcome: &mut Outcome) -> Result<()> {
    let reference = json(&folder.join("originals.json.gz"))?;
    let tensors = Tensors::open(&folder.join(word(&reference["meta"]["tensors"])?))?;
    for (policy, cases) in members(&reference["policies"])? {
        for (at, run) in list_or_none(cases, "runs").iter().enumerate() {
            outcome.case(format_args!("{policy} {at}: {}", run["params"]), |check| match policy.as_str() {
                "snapkv" => snapkv(run, &tensors, check),
                other => lacking(format!("{other} as its authors wrote it")),
            });
        }
        for (at, _) in list_or_none(cases, "budget_table").iter().enumerate() {
            outcome.case(format_args!("{policy}, budgets {at}"), |_| lacking("budgets by layer"));
        }
    }
    Ok(())
}

/// `SnapKV`, whose sets are for each query head, which is a group of one.
fn snapkv(run: &Value, tensors: &Tensors, check: &mut Check) -> Result<()> {
    let params = &run["params"];
    let (layer, rows, width) = (count(&run["layer"])?, count(&params["window_size"])?, count(&params["kernel_size"])?);
    let pool = match word(&params["pooling"])? {
        "avgpool" => Pool::Mean(width),
        "maxpool" => Pool::Largest(width),
        other => return lacking(format!("pooling by {other}")),
    };
    let how = WindowAttention { rows, seen: Seen::Held, group: Group::Mean, pool, lambda: None };
    let keys = tensors.heads(&format!("layer{layer}.key"))?;
    let queries = tensors.heads(&format!("layer{layer}.query"))?;
    let group = queries.n_heads() / keys.n_heads();
    let (n, slots): (usize, Vec<u32>) = (keys.rows, (0..keys.rows as u32).collect());
    ensure!(rows <= n, "expected a window within {n} tokens, got {rows}");
    for head in 0..queries.n_heads() {
        let held = HeadView { keys: keys.head(head / group), values: &[], slots: &slots, head_dim: keys.d };
        let own = scores(how, held, &queries, head..head + 1)?;
        let want = numbers(&run["pooled_scores"][head])?;
        check.equal(format_args!("head {head}, count of scores"), &want.len(), &(n - rows));
        for (place, want) in want.iter().enumerate() {
            // It sums over the rows of the window.
            let (got, tolerance) = (own[place] * rows as f64, PROBABILITY * rows as f64);
            check.near(format_args!("head {head}, score of {place}"), got, *want, tolerance);
        }
        let ranks: Vec<f32> = own.iter().map(|&score| score as f32).collect();
        let kept = highest(&ranks, count(&params["max_capacity_prompt"])?);
        let (certain, tied) = (ids(&run["certain"][head])?, ids(&run["tied"][head])?);
        check.holds(format_args!("all of {certain:?} in head {head}"), certain.iter().all(|pos| kept.contains(pos)));
        let allowed = |pos: &u32| *pos as usize >= n - rows || certain.contains(pos) || tied.contains(pos);
        check.holds(format_args!("the rest of head {head} among {tied:?}"), kept.iter().all(allowed));
        let theirs = ids(&run["kept_sorted"][head])?;
        check.equal(format_args!("head {head}, count of kept"), &kept.len(), &theirs.len());
        check.holds(format_args!("kept set {theirs:?} of head {head}"), theirs.iter().all(allowed));
        check.holds(format_args!("certain tokens kept, head {head}"), certain.iter().all(|pos| theirs.contains(pos)));
        let is_tied = run["cut_has_tie"][head] == true;
        if !is_tied {
            check.equal(format_args!("head {head}, kept set"), &kept, &theirs);
        }
    }
    check.equal("query heads", &list(&run["kept_sorted"])?.len(), &queries.n_heads());
    Ok(())
}
