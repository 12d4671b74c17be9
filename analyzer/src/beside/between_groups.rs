//! Do problem sets and models agree on a coefficient?
//!
//! A group is a problem set under a model ([`Group`]); its members are the coefficients of its traces in Fisher's z. For each
//! column and each contrast over layers: Cochran's Q and I^2 over the groups with the mean under random effects
//! ([`epikv_stats::heterogeneity`]), and for each pair of groups the difference of their means with Welch's test and a
//! bootstrap that draws the traces of each group by themselves. A column of a layer is compared only between models of equal
//! depth. Small problem sets that belong together (`--pool`) have a row of Q of their own.

use epikv_stats::Confidence;
use epikv_stats::bootstrap::bootstrap_interval;
use epikv_stats::heterogeneity::{Difference, Heterogeneity, heterogeneity, welch};
use epikv_stats::moments::{mean, standard_error};
use epikv_stats::resample::resample_indices;
use rayon::prelude::*;

use crate::beside::groups::{ColumnKey, Contrast, Group};
use crate::study::bands::BAND_SIGNAL;
use crate::study::pools::Pool;
use crate::study::settings::Settings;
use crate::study::tested::p_text;

/// The set of all groups.
const ALL: &str = "all";

/// What is compared: a column, or a contrast over the layers of the step norm under its smoother.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct What {
    /// The column; no layer for a contrast.
    pub column: ColumnKey,
    /// The contrast; `None` for the column itself.
    pub contrast: Option<Contrast>,
}

impl What {
    /// Of the traces of a group, where they have it.
    fn of(&self, group: &Group) -> Vec<f64> {
        match self.contrast {
            None => group.columns.get(&self.column).into_iter().flatten().flatten().copied().collect(),
            Some(contrast) => {
                let traces = group.by_problem(&self.column.smoothing);
                traces.iter().flatten().filter_map(|z| contrast.of(z)).collect()
            }
        }
    }

    /// In words.
    fn name(&self) -> String {
        let ColumnKey { signal, layer, smoothing } = &self.column;
        match (layer, self.contrast) {
            (Some(layer), _) => format!("{signal} layer {layer} {smoothing}"),
            (None, Some(contrast)) => format!("{signal} {smoothing} {}", contrast.name()),
            (None, None) => format!("{signal} {smoothing}"),
        }
    }
}

/// How groups spread around their mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// `all`, or the name of a pool.
    pub set: String,
    /// What is compared.
    pub what: What,
    /// The groups, by name, with the mean of their problems in Fisher's z.
    pub means: Vec<(String, f64)>,
    /// Q, I^2 and the mean under random effects, in Fisher's z.
    pub found: Heterogeneity,
}

/// Two groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// What is compared.
    pub what: What,
    /// The groups, by name.
    pub groups: [String; 2],
    /// Problems of each.
    pub n: [usize; 2],
    /// Mean of the problems of each, in Fisher's z.
    pub means: [f64; 2],
    /// First less second.
    pub found: Difference,
    /// Its interval by the bootstrap of the problems of both; `None` where undefined.
    pub interval: Option<(f64, f64)>,
}

/// All groups against each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BetweenGroups {
    /// Over all groups and over each pool.
    pub spreads: Vec<Spread>,
    /// Each pair.
    pub pairs: Vec<Pair>,
}

/// Compares groups; fewer than two have nothing to compare.
pub fn between_groups(groups: &[Group], settings: &Settings) -> BetweenGroups {
    if groups.len() < 2 {
        return BetweenGroups::default();
    }
    let whats = whats(groups);
    let of = |what: &What| {
        let depth = |group: &Group| group.columns.keys().filter_map(|key| key.layer).max();
        let first = groups.first().and_then(depth);
        // A layer means the same only at equal depth.
        let has = |group: &&Group| what.column.layer.is_none() || depth(group) == first;
        let members: Vec<(&Group, Vec<f64>)> = groups.iter().filter(has).map(|group| (group, what.of(group))).collect();
        let pairs = members.iter().enumerate().flat_map(|(i, a)| members[i + 1..].iter().map(move |b| (a, b)));
        let pairs: Vec<Pair> = pairs.filter_map(|(a, b)| pair(what, a, b, settings)).collect();
        let pools = settings.pools.iter().map(|pool| (pool.name(), Some(pool)));
        let spreads: Vec<Spread> = std::iter::once((ALL.to_owned(), None))
            .chain(pools)
            .filter_map(|(name, pool)| spread(what, &name, pool, &members, settings.confidence))
            .collect();
        (spreads, pairs)
    };
    let (spreads, pairs): (Vec<_>, Vec<_>) = whats.par_iter().map(of).collect::<Vec<_>>().into_iter().unzip();
    BetweenGroups { spreads: spreads.concat(), pairs: pairs.concat() }
}

/// Every column of any group, and the contrasts under every smoother of the step norm.
fn whats(groups: &[Group]) -> Vec<What> {
    let columns = groups.iter().flat_map(|group| group.columns.keys());
    let columns = columns.map(|column| What { column: column.clone(), contrast: None });
    let contrasts = groups.iter().flat_map(|group| group.smoothings().into_iter()).flat_map(|smoothing| {
        let column = ColumnKey { signal: BAND_SIGNAL.to_owned(), layer: None, smoothing: smoothing.to_owned() };
        Contrast::ALL.map(|contrast| What { column: column.clone(), contrast: Some(contrast) })
    });
    let mut all: Vec<What> = columns.chain(contrasts).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn spread(
    what: &What,
    name: &str,
    pool: Option<&Pool>,
    members: &[(&Group, Vec<f64>)],
    confidence: Confidence,
) -> Option<Spread> {
    let inside = |group: &Group| pool.is_none_or(|pool| pool.members.contains(&group.dataset));
    let figures = members
        .iter()
        .filter(|(group, _)| inside(group))
        .filter_map(|(group, z)| Some((group.name(), mean(z)?, standard_error(z).filter(|se| *se > 0.0)?)));
    let figures: Vec<(String, f64, f64)> = figures.collect();
    let found = heterogeneity(&figures.iter().map(|(_, mean, se)| (*mean, *se)).collect::<Vec<_>>(), confidence)?;
    let means = figures.into_iter().map(|(name, mean, _)| (name, mean)).collect();
    Some(Spread { set: name.to_owned(), what: what.clone(), means, found })
}

fn pair(what: &What, a: &(&Group, Vec<f64>), b: &(&Group, Vec<f64>), settings: &Settings) -> Option<Pair> {
    let found = welch(&a.1, &b.1)?;
    Some(Pair {
        what: what.clone(),
        groups: [a.0.name(), b.0.name()],
        n: [a.1.len(), b.1.len()],
        means: [mean(&a.1)?, mean(&b.1)?],
        found,
        interval: interval(found.difference, &a.1, &b.1, settings),
    })
}

/// The `BCa` interval of the difference of two means whose members are drawn apart.
fn interval(difference: f64, a: &[f64], b: &[f64], settings: &Settings) -> Option<(f64, f64)> {
    let drawn = |x: &[f64], replicate: u64, side: u64| {
        let indices = resample_indices(settings.seed, 2 * replicate + side, x.len());
        indices.iter().map(|&i| x[i]).sum::<f64>() / x.len() as f64
    };
    let replicates: Vec<f64> =
        (0..settings.replicates as u64).map(|replicate| drawn(a, replicate, 0) - drawn(b, replicate, 1)).collect();
    let (sum_a, sum_b): (f64, f64) = (a.iter().sum(), b.iter().sum());
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let without_a = a.iter().map(|x| (sum_a - x) / (n_a - 1.0) - sum_b / n_b);
    let without_b = b.iter().map(|x| sum_a / n_a - (sum_b - x) / (n_b - 1.0));
    let jackknife: Vec<f64> = without_a.chain(without_b).collect();
    bootstrap_interval(difference, &replicates, &jackknife, settings.confidence)?.bca
}

impl BetweenGroups {
    /// What the page says: bands, trend and scores under the first smoother shown, and how many columns differ at all.
    pub fn markdown(&self, settings: &Settings) -> String {
        const LEVEL: f64 = 0.05;
        let smoothed = settings.shown_smoothing();
        let is_shown = |what: &What| match what.contrast {
            Some(_) => what.column.smoothing == smoothed,
            None => what.column.layer.is_none() && what.column.smoothing == "raw",
        };
        let mut lines: Vec<String> = Vec::new();
        for spread in self.spreads.iter().filter(|spread| is_shown(&spread.what)) {
            let Heterogeneity { q, p, i_squared, mean, lo, hi, n_groups, .. } = spread.found;
            let means: Vec<String> = spread.means.iter().map(|(name, z)| format!("{name} {:+.3}", z.tanh())).collect();
            lines.push(format!(
                "- {} over {n_groups} groups ({}): Q {q:.1}, p {}, I^2 {:.0} %, random effects {:+.3} [{:+.3}, {:+.3}]; {}",
                spread.what.name(),
                spread.set,
                p_text(Some(p)),
                100.0 * i_squared,
                mean.tanh(),
                lo.tanh(),
                hi.tanh(),
                means.join(", ")
            ));
        }
        let of_all: Vec<&Spread> = self.spreads.iter().filter(|spread| spread.set == ALL).collect();
        if lines.is_empty() && of_all.is_empty() {
            return String::new();
        }
        let n_differing = of_all.iter().filter(|spread| spread.found.p <= LEVEL).count();
        lines.push(format!(
            "- Q rejects equal means at {LEVEL} for {n_differing} of {} columns and contrasts; 5 in 100 would be chance",
            of_all.len()
        ));
        format!("## Between problem sets and models\n\n{}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use epikv_signals::DEFAULT_WINDOW;

    use super::*;
    use crate::beside::groups::tests::group;
    use crate::study::settings::tests::settings;

    fn traces(level: f64, n: usize, n_layers: usize) -> Vec<Vec<f64>> {
        let noise = |i: usize, l: usize| ((i * 7919 + l * 104_729) % 997) as f64 / 997.0 - 0.5;
        (0..n).map(|i| (0..n_layers).map(|l| level + 0.2 * noise(i, l)).collect()).collect()
    }

    fn settings_with(pools: Vec<Pool>) -> Settings {
        Settings { replicates: 300, window: DEFAULT_WINDOW, pools, ..settings() }
    }

    #[test]
    fn groups_that_differ_are_found_and_pools_have_their_own_row() {
        let groups = [
            group("m", "aime24", &traces(0.1, 7, 4)),
            group("m", "aime25", &traces(0.1, 5, 4)),
            group("m", "math", &traces(0.6, 20, 4)),
        ];
        let pool = Pool { members: vec!["aime24".to_owned(), "aime25".to_owned()] };
        let settings = settings_with(vec![pool]);
        let found = between_groups(&groups, &settings);
        let of = |set: &str| -> Vec<&Spread> { found.spreads.iter().filter(|spread| spread.set == set).collect() };
        // Four layers and four contrasts; `a_less_b` and `trend` do not depend on the level.
        assert_eq!((of("all").len(), of("aime24+aime25").len(), found.pairs.len()), (8, 8, 3 * 8));
        for spread in of("all") {
            let level = !matches!(spread.what.contrast, Some(Contrast::ALessB | Contrast::Trend));
            assert_eq!(spread.found.p < 1e-6, level, "{spread:?}");
        }
        assert!(of("aime24+aime25").iter().all(|spread| spread.found.p > 0.05 && spread.means.len() == 2));
        let pair = found.pairs.iter().find(|pair| pair.what.contrast == Some(Contrast::BandA) && pair.n == [7, 20]);
        let pair = pair.expect("aime24 and math");
        let (lo, hi) = pair.interval.expect("traces");
        assert!((pair.found.difference + 0.5).abs() < 0.1 && lo < pair.found.difference && pair.found.difference < hi);
        assert!(hi < -0.3 && pair.found.p < 1e-4, "{pair:?}");
        let page = found.markdown(&settings);
        assert!(page.contains("hs_l2 mean64 band_a over 3 groups (all)"), "{page}");
    }

    #[test]
    fn models_of_other_depth_share_contrasts_and_no_layer() {
        let groups = [group("small", "math", &traces(0.2, 6, 4)), group("large", "math", &traces(0.2, 6, 8))];
        let found = between_groups(&groups, &settings_with(Vec::new()));
        assert!(found.pairs.iter().all(|pair| pair.what.contrast.is_some()) && found.pairs.len() == 4);
        assert_eq!(found.pairs[0].groups, ["small, math", "large, math"]);
        assert_eq!(between_groups(&groups[..1], &settings_with(Vec::new())), BetweenGroups::default());
    }
}
