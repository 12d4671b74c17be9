//! Rows of the side studies: comparisons, kinds of tokens, difficulty, groups.

use epikv_schemas::{BandSurprisal, ComparisonRow, DifficultyRow, EnrichmentRow, GroupPair, HeterogeneityRow};
use epikv_signals::Smoother;
use epikv_stats::heterogeneity::Heterogeneity;

use crate::beside::between_groups::{BetweenGroups, Pair, Spread, What};
use crate::beside::compare::Comparison;
use crate::beside::difficulty::{Unit, WithDifficulty};
use crate::beside::enrichment::Enrichment;
use crate::beside::groups::Contrast;
use crate::beside::predictable::GivenSurprisal;
use crate::study::settings::Settings;

/// Rows of `comparisons`.
pub fn comparisons(found: &[Comparison]) -> Vec<ComparisonRow> {
    let row = |c: &Comparison| ComparisonRow {
        dataset: c.dataset.clone(),
        column_a: c.sides[0].to_string(),
        column_b: c.sides[1].to_string(),
        n_traces: c.n_traces as i32,
        n_problems: Some(c.n_problems as i32),
        n_tokens: c.n_tokens as i64,
        rho_a: c.rho[0],
        rho_b: c.rho[1],
        rho_ab: c.rho_between,
        difference: c.difference,
        boot_lo: c.interval.map(|i| i.0),
        boot_hi: c.interval.map(|i| i.1),
        n_larger: c.n_larger as i32,
        p_signed_rank: c.p_signed_rank,
        p_sign_flip: c.p_sign_flip,
        williams_t: c.williams.map(|t| t.statistic),
        williams_p: c.williams.map(|t| t.p),
        meng_z: c.meng.map(|t| t.statistic),
        meng_p: c.meng.map(|t| t.p),
        steiger_z: c.steiger.map(|t| t.statistic),
        steiger_p: c.steiger.map(|t| t.p),
    };
    found.iter().map(row).collect()
}

/// Rows of `enrichment`.
pub fn enrichment(found: &[Enrichment]) -> Vec<EnrichmentRow> {
    let row = |e: &Enrichment| EnrichmentRow {
        dataset: e.dataset.clone(),
        set: e.set.to_owned(),
        column: e.column.clone(),
        class: e.class.name().to_owned(),
        n_traces: e.n_traces as i32,
        n_problems: Some(e.n_problems as i32),
        n_tokens: e.n_tokens as i64,
        n_class: e.n_class as i64,
        n_set: e.n_set as i64,
        n_both: e.n_both as i64,
        expected: e.expected,
        ratio: e.ratio(),
        p_cross: e.tested.p_cross,
        p_shift: e.tested.p_shift,
        z_null: e.tested.z_null,
        q_bh: e.tested.q_bh,
    };
    found.iter().map(row).collect()
}

/// Rows of `band_surprisal`.
pub fn band_surprisal(found: &[GivenSurprisal], settings: &Settings) -> Vec<BandSurprisal> {
    let row = |given: &GivenSurprisal| BandSurprisal {
        dataset: given.dataset.clone(),
        smoothing: Smoother::Mean.name(settings.window),
        n_traces: given.n_traces as i32,
        n_problems: Some(given.n_problems as i32),
        rho: given.rho,
        boot_lo: given.interval.map(|i| i.0),
        boot_hi: given.interval.map(|i| i.1),
        rho_given: given.given,
        given_lo: given.given_interval.map(|i| i.0),
        given_hi: given.given_interval.map(|i| i.1),
    };
    found.iter().map(row).collect()
}

/// Rows of `difficulty`.
pub fn difficulty(found: &[WithDifficulty]) -> Vec<DifficultyRow> {
    let row = |d: &WithDifficulty| {
        let (unit, layer) = match d.unit {
            Unit::Interaction => ("interaction", None),
            Unit::Layer(layer) => ("layer", Some(layer as i16)),
            Unit::Contrast(contrast) => (contrast.name(), None),
        };
        DifficultyRow {
            dataset: d.dataset.clone(),
            smoothing: d.smoothing.clone(),
            unit: unit.to_owned(),
            layer,
            n_traces: d.n_traces as i32,
            n_problems: Some(d.n_problems as i32),
            statistic: d.statistic,
            boot_lo: d.interval.map(|i| i.0),
            boot_hi: d.interval.map(|i| i.1),
            p: d.p,
            p_maxt: d.p_maxt,
        }
    };
    found.iter().map(row).collect()
}

/// What is compared between groups, as the files name it.
fn contrast(what: &What) -> String {
    what.contrast.map_or("column", Contrast::name).to_owned()
}

/// Rows of `heterogeneity`.
pub fn heterogeneity(found: &BetweenGroups) -> Vec<HeterogeneityRow> {
    let row = |spread: &Spread| {
        let Heterogeneity { n_groups, q, p, i_squared, tau2, mean, lo, hi } = spread.found;
        HeterogeneityRow {
            groups: spread.set.clone(),
            signal: spread.what.column.signal.clone(),
            layer: spread.what.column.layer,
            smoothing: spread.what.column.smoothing.clone(),
            contrast: contrast(&spread.what),
            n_groups: n_groups as i32,
            q,
            p,
            i_squared,
            tau2,
            mean_z: mean,
            z_lo: lo,
            z_hi: hi,
            rho: mean.tanh(),
        }
    };
    found.spreads.iter().map(row).collect()
}

/// Rows of `group_pairs`.
pub fn group_pairs(found: &BetweenGroups) -> Vec<GroupPair> {
    let row = |pair: &Pair| GroupPair {
        signal: pair.what.column.signal.clone(),
        layer: pair.what.column.layer,
        smoothing: pair.what.column.smoothing.clone(),
        contrast: contrast(&pair.what),
        group_a: pair.groups[0].clone(),
        group_b: pair.groups[1].clone(),
        n_a: pair.n[0] as i32,
        n_b: pair.n[1] as i32,
        mean_a: pair.means[0],
        mean_b: pair.means[1],
        difference: pair.found.difference,
        se: pair.found.se,
        p_welch: pair.found.p,
        boot_lo: pair.interval.map(|i| i.0),
        boot_hi: pair.interval.map(|i| i.1),
    };
    found.pairs.iter().map(row).collect()
}
