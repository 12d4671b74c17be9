//! Studies at decision time under one budget: agreement of scores, their AUC, and the choice of layers; as rows and as
//! Markdown.

use std::collections::BTreeMap;

use epikv_schemas::{AgreementRow, Selection};
use epikv_signals::{EPIKV_LAYERS, map_layer};
use epikv_stats::moments::mean;

use crate::beside::agreement::{Agreement, agreements};
use crate::beside::replay::Limits;
use crate::beside::selection::{Candidate, FOLDS, Picked, Selected, pick, scores};
use crate::error::Result;
use crate::study::sample::Sample;
use crate::study::settings::Settings;

/// Pairs of scores that the page shows.
const SHOWN_PAIRS: usize = 12;

/// What was found under one budget.
#[derive(Debug, Clone, PartialEq)]
pub struct AtBudget {
    /// The budget, as typed.
    pub budget: String,
    /// Pairs of scores on each trace.
    pub agreements: Vec<Agreement>,
    /// By problem set, in order of their names.
    pub datasets: Vec<Decided>,
    /// Traces that the budget cannot hold.
    pub n_infeasible: usize,
}

/// One problem set under one budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The problem set.
    pub dataset: String,
    /// The recorded scores.
    pub scores: Vec<Selected>,
    /// All layers and pairs, and the choice; `None` where it was not asked for or there is none.
    pub layers: Option<(Vec<Selected>, Picked)>,
}

/// Compares scores under a budget; `limits` has one entry a sample, `None` where the budget cannot hold what is protected.
///
/// # Errors
/// If the window of the smoothers is empty.
///
/// # Panics
/// If there is not one entry a sample.
pub fn decide(
    samples: &[Sample],
    budget: &str,
    limits: &[Option<Limits>],
    with_layers: bool,
    settings: &Settings,
) -> Result<AtBudget> {
    assert_eq!(samples.len(), limits.len(), "limits of every sample");
    let feasible: Vec<(&Sample, Limits)> =
        samples.iter().zip(limits).filter_map(|(sample, limits)| Some((sample, (*limits)?))).collect();
    let mut names: Vec<&str> = feasible.iter().map(|(sample, _)| sample.dataset.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let (all, all_limits): (Vec<&Sample>, Vec<Limits>) = feasible.iter().copied().unzip();
    let of_dataset = |name: &str| {
        let own = feasible.iter().copied().filter(|(sample, _)| sample.dataset == name);
        let (own, limits): (Vec<&Sample>, Vec<Limits>) = own.unzip();
        let layers = if with_layers { pick(&own, &limits, settings)? } else { None };
        Ok(Decided { dataset: name.to_owned(), scores: scores(&own, &limits, settings), layers })
    };
    Ok(AtBudget {
        budget: budget.to_owned(),
        agreements: agreements(&all, &all_limits),
        datasets: names.into_iter().map(of_dataset).collect::<Result<_>>()?,
        n_infeasible: samples.len() - feasible.len(),
    })
}

impl AtBudget {
    /// Rows of `agreement`.
    pub fn agreement_rows(&self) -> Vec<AgreementRow> {
        let row = |agreement: &Agreement| {
            let top = agreement.found.top;
            AgreementRow {
                trace_id: agreement.trace_id.clone(),
                dataset: agreement.dataset.clone(),
                score_a: agreement.scores[0].to_owned(),
                score_b: agreement.scores[1].to_owned(),
                budget: self.budget.clone(),
                n: agreement.n as i32,
                k: agreement.k as i32,
                spearman: agreement.found.spearman,
                kendall: agreement.found.kendall_tau_b,
                overlap: top.map(|t| t.overlap as i32),
                overlap_share: top.map(|t| t.precision),
                jaccard: top.map(|t| t.jaccard),
                chance: top.map(|t| t.expected_precision),
                hypergeom_p: top.map(|t| t.hypergeom_p),
            }
        };
        self.agreements.iter().map(row).collect()
    }

    /// Rows of `selection`.
    pub fn selection_rows(&self) -> Vec<Selection> {
        let mut rows = Vec::new();
        for decided in &self.datasets {
            let picked = decided.layers.as_ref().map(|(_, picked)| picked);
            let layers = decided.layers.iter().flat_map(|(layers, _)| layers);
            for selected in decided.scores.iter().chain(layers) {
                let own = picked.filter(|picked| picked.best == selected.candidate);
                let (kind, plus, minus) = match selected.candidate {
                    Candidate::Score(_) => ("score", None, None),
                    Candidate::Random(_) | Candidate::Baseline(_) => ("baseline", None, None),
                    Candidate::Plus(a) => ("layer", Some(a), None),
                    Candidate::Minus(b) => ("layer", None, Some(b)),
                    Candidate::Pair(a, b) => ("pair", Some(a), Some(b)),
                };
                rows.push(Selection {
                    dataset: decided.dataset.clone(),
                    budget: self.budget.clone(),
                    candidate: name(selected.candidate),
                    kind: kind.to_owned(),
                    layer_plus: plus.map(|layer| layer as i16),
                    layer_minus: minus.map(|layer| layer as i16),
                    n_traces: selected.n_traces as i32,
                    n_problems: Some(selected.n_problems as i32),
                    auc: selected.auc,
                    auc_lo: selected.interval.map(|i| i.0),
                    auc_hi: selected.interval.map(|i| i.1),
                    picked: own.is_some(),
                    auc_held_out: own.and_then(|picked| picked.held_out),
                });
            }
        }
        rows
    }

    /// What the page says.
    pub fn markdown(&self) -> String {
        let mut lines = vec![format!("## At the moments of eviction, budget {}\n", self.budget)];
        if self.n_infeasible > 0 {
            lines.push(format!("- {} traces do not fit: prompt and recent tokens fill the budget", self.n_infeasible));
        }
        for decided in &self.datasets {
            lines.extend(decided.lines());
        }
        lines.extend(self.pair_lines());
        lines.join("\n")
    }

    /// Pairs of scores, mean over traces, those that agree most first.
    fn pair_lines(&self) -> Vec<String> {
        let mut by_pair: BTreeMap<[&str; 2], [Vec<f64>; 3]> = BTreeMap::new();
        for agreement in &self.agreements {
            let of_pair = by_pair.entry(agreement.scores).or_default();
            if let (Some(rho), Some(top)) = (agreement.found.spearman, agreement.found.top) {
                for (all, value) in of_pair.iter_mut().zip([rho, top.precision, top.expected_precision]) {
                    all.push(value);
                }
            }
        }
        let means = |all: &[Vec<f64>; 3]| Some((mean(&all[0])?, mean(&all[1])?, mean(&all[2])?));
        let mut pairs: Vec<_> = by_pair.iter().filter_map(|(pair, all)| Some((pair, means(all)?))).collect();
        pairs.sort_by(|(_, a), (_, b)| b.1.total_cmp(&a.1));
        let line = |([a, b], (rho, overlap, chance)): &(&[&str; 2], (f64, f64, f64))| {
            format!(
                "- {a} and {b} keep {:.0} % of their tokens alike (chance {:.0} %), rho {rho:+.2}",
                100.0 * overlap,
                100.0 * chance
            )
        };
        pairs.iter().take(SHOWN_PAIRS).map(line).collect()
    }
}

/// Layers of the model, from its candidates.
fn layers_of(all: &[Selected]) -> usize {
    all.iter().filter(|selected| matches!(selected.candidate, Candidate::Plus(_))).count()
}

impl Decided {
    /// Where the published pair of layers lies among all pairs: what a pair drawn by lot would give. `None` where pairs were
    /// not asked for or the model maps both layers to one.
    pub(crate) fn placebo(&self, n_layers: usize) -> Option<String> {
        let (all, _) = self.layers.as_ref()?;
        let [a, b] = EPIKV_LAYERS.map(|layer| map_layer(layer, n_layers));
        let pairs: Vec<(Candidate, f64)> = all
            .iter()
            .filter(|selected| matches!(selected.candidate, Candidate::Pair(..)))
            .filter_map(|selected| Some((selected.candidate, selected.auc?)))
            .collect();
        let auc = pairs.iter().find(|(candidate, _)| *candidate == Candidate::Pair(a, b))?.1;
        let better = pairs.iter().filter(|(_, other)| *other > auc).count();
        let mut sorted: Vec<f64> = pairs.iter().map(|(_, auc)| *auc).collect();
        sorted.sort_by(f64::total_cmp);
        Some(format!(
            "{}: the published pair, layers {a} and {b}, has AUC {auc:.3} and is number {} of {} pairs (median {:.3})",
            self.dataset,
            better + 1,
            pairs.len(),
            sorted[sorted.len() / 2]
        ))
    }

    fn lines(&self) -> Vec<String> {
        let mut scores: Vec<&Selected> = self.scores.iter().filter(|s| s.auc.is_some()).collect();
        scores.sort_by(|a, b| b.auc.unwrap_or(0.0).total_cmp(&a.auc.unwrap_or(0.0)));
        let line = |selected: &&Selected| {
            let interval = selected.interval.map_or_else(|| "[-]".to_owned(), |(lo, hi)| format!("[{lo:.3}, {hi:.3}]"));
            let (auc, n) = (selected.auc.unwrap_or(0.5), selected.n_problems);
            format!("- {}: {} has AUC {auc:.3} {interval} over {n} problems", self.dataset, name(selected.candidate))
        };
        let mut lines: Vec<String> = scores.iter().map(line).collect();
        if let Some((layers, picked)) = &self.layers {
            let held_out = match picked.held_out {
                Some(auc) => format!("{auc:.3} on problems that had no part in choosing ({FOLDS} splits)"),
                None => format!("too few problems for {FOLDS} splits"),
            };
            let by_fold: Vec<String> = picked.by_fold.iter().map(|candidate| name(*candidate)).collect();
            lines.extend(self.placebo(layers_of(layers)).map(|place| format!("- {place}")));
            lines.push(format!(
                "- {}: of all layers and pairs the best is {}, AUC {:.3} where it was chosen, {held_out}; chosen by split: {}",
                self.dataset,
                name(picked.best),
                picked.auc,
                by_fold.join(", ")
            ));
        }
        lines
    }
}

/// As the files name it.
fn name(candidate: Candidate) -> String {
    match candidate {
        Candidate::Score(name) | Candidate::Baseline(name) => name.to_owned(),
        Candidate::Random(name) => format!("random:{name}"),
        Candidate::Plus(a) => format!("z{a}"),
        Candidate::Minus(b) => format!("-z{b}"),
        Candidate::Pair(a, b) => format!("z{a}-z{b}"),
    }
}
