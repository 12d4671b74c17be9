//! Do other layers predict the labels on harder problems?
//!
//! Every problem `i` has a difficulty `d_i` (its level, or else how long its traces reason on average) and a coefficient at
//! each layer of `hs_l2`, `z_il`, the mean of `atanh(rho_l)` over its traces. The question is whether the profile over layers changes with
//! difficulty, not whether all coefficients do, so a problem's mean over layers is subtracted first:
//!
//! ```text
//! y_il        = z_il - mean_l z_il
//! rho_l       = Spearman's rho over problems of y_il with d_i        interval: bootstrap over problems
//! interaction = sum_l rho_l^2                                        p: difficulties permuted over problems
//! ```
//!
//! `p_maxt` corrects the layers for one another by the same permutations. Beside the layers stand the contrasts of
//! [`Contrast`], which are asked for as they are.

use epikv_stats::permutation::{max_t_p, permutation_p};
use epikv_stats::resample::Draws as RandomDraws;
use epikv_stats::spearman;
use rayon::prelude::*;

use crate::beside::groups::{Contrast, Group};
use crate::study::problems::Problems;
use crate::study::resamples::Resamples;
use crate::study::settings::Settings;
use crate::study::tested::drawn_p_text;

/// Problems that a coefficient over problems needs.
const MIN_PROBLEMS: usize = 4;

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// All layers at once.
    Interaction,
    /// One layer, less the problem's mean over layers.
    Layer(usize),
    /// A contrast over layers.
    Contrast(Contrast),
}

/// One row: correlation of a number of a problem with difficulty. Undefined parts are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct WithDifficulty {
    /// The problem set.
    pub dataset: String,
    /// How the step norm was smoothed.
    pub smoothing: String,
    /// What it is about.
    pub unit: Unit,
    /// Problems with a difficulty and all coefficients.
    pub n_problems: usize,
    /// Their traces.
    pub n_traces: usize,
    /// Rho over problems with difficulty; for the interaction the sum of its squares over layers.
    pub statistic: Option<f64>,
    /// Interval of rho by the bootstrap over problems; `None` for the interaction.
    pub interval: Option<(f64, f64)>,
    /// p-value under permuted difficulties, two-sided for rho.
    pub p: Option<f64>,
    /// p-value of a layer corrected for all layers.
    pub p_maxt: Option<f64>,
}

/// Every smoother of the step norm in a group; `difficulty` has one entry a trace of its `problems`, `None` where it is
/// unknown. A problem has the mean over its traces.
///
/// # Panics
/// If there is not one entry a trace, or the group has other problems.
pub fn with_difficulty(
    group: &Group,
    problems: &Problems,
    difficulty: &[Option<f64>],
    settings: &Settings,
) -> Vec<WithDifficulty> {
    assert_eq!(problems.of_traces().len(), difficulty.len(), "one difficulty a trace");
    let of = |smoothing: &&str| of_smoothing(group, smoothing, problems, difficulty, settings);
    group.smoothings().iter().flat_map(of).collect()
}

fn of_smoothing(
    group: &Group,
    smoothing: &str,
    problems: &Problems,
    difficulty: &[Option<f64>],
    settings: &Settings,
) -> Vec<WithDifficulty> {
    let of_problems = group.by_problem(smoothing);
    assert_eq!(of_problems.len(), problems.len(), "the problems of the group");
    let difficulty = problems.means_of_defined(difficulty);
    let mut n_samples = vec![0; problems.len()];
    problems.of_traces().iter().for_each(|&problem| n_samples[problem] += 1);
    let known = of_problems
        .into_iter()
        .zip(difficulty)
        .zip(n_samples)
        .filter_map(|((z, difficulty), n_samples)| Some(((z?, difficulty?), n_samples)));
    let (known, n_samples): (Vec<(Vec<f64>, f64)>, Vec<usize>) = known.unzip();
    let (z, difficulty): (Vec<Vec<f64>>, Vec<f64>) = known.into_iter().unzip();
    let n_layers = group.n_layers(smoothing);
    // One column a unit, `[units][problems]`.
    let of_layer = |layer: usize| -> Vec<f64> {
        let centred = |z: &Vec<f64>| z[layer] - z.iter().sum::<f64>() / n_layers as f64;
        z.iter().map(centred).collect()
    };
    let mut units: Vec<(Unit, Vec<f64>)> = (0..n_layers).map(|layer| (Unit::Layer(layer), of_layer(layer))).collect();
    for contrast in Contrast::ALL {
        let values: Option<Vec<f64>> = z.iter().map(|z| contrast.of(z)).collect();
        units.extend(values.map(|values| (Unit::Contrast(contrast), values)));
    }
    let rho = |difficulty: &[f64]| -> Vec<Option<f64>> {
        let of = |(_, values): &(Unit, Vec<f64>)| {
            if values.len() < MIN_PROBLEMS { None } else { spearman(values, difficulty) }
        };
        units.iter().map(of).collect()
    };
    let observed = rho(&difficulty);
    let null: Vec<Vec<Option<f64>>> = (0..settings.surrogates as u64)
        .into_par_iter()
        .map(|replicate| {
            let mut permuted = difficulty.clone();
            RandomDraws::new(settings.seed, replicate).shuffle(&mut permuted);
            rho(&permuted)
        })
        .collect();
    let layers = |rhos: &[Option<f64>]| rhos[..n_layers].to_vec();
    let of_layers: Vec<Vec<Option<f64>>> = null.iter().map(|rhos| layers(rhos)).collect();
    let p_maxt = max_t_p(&layers(&observed), &of_layers).unwrap_or_else(|| vec![None; n_layers]);
    let resamples = Resamples::new(settings.seed, settings.replicates);
    let row = |unit, statistic, interval, p, p_maxt| WithDifficulty {
        dataset: group.dataset.clone(),
        smoothing: smoothing.to_owned(),
        unit,
        n_problems: difficulty.len(),
        n_traces: n_samples.iter().sum(),
        statistic,
        interval,
        p,
        p_maxt,
    };
    let square =
        |rhos: &[Option<f64>]| rhos[..n_layers].iter().map(|rho| rho.map(|rho| rho * rho)).sum::<Option<f64>>();
    let interaction = square(&observed).filter(|_| n_layers > 1);
    let squares: Option<Vec<f64>> = null.iter().map(|rhos| square(rhos)).collect();
    let p = interaction.zip(squares).and_then(|(observed, null)| permutation_p(observed, &null));
    let mut rows = vec![row(Unit::Interaction, interaction, None, p, None)];
    let of_unit = |(at, (unit, values)): (usize, &(Unit, Vec<f64>))| {
        let null: Option<Vec<f64>> = null.iter().map(|rhos| rhos[at]).collect();
        let p = observed[at].zip(null).and_then(|(observed, null)| permutation_p(observed, &null));
        let draws = resamples.draws(values.len(), |counts| {
            let drawn = counts.iter().enumerate().flat_map(|(i, &count)| std::iter::repeat_n(i, count as usize));
            let (x, y): (Vec<f64>, Vec<f64>) = drawn.map(|i| (values[i], difficulty[i])).unzip();
            spearman(&x, &y)
        });
        let interval = observed[at].and_then(|rho| draws.interval(rho, settings.confidence));
        row(*unit, observed[at], interval, p, p_maxt.get(at).copied().flatten())
    };
    rows.extend(units.par_iter().enumerate().map(of_unit).collect::<Vec<_>>());
    rows
}

/// What the page says of the smoother shown: the interaction and the contrasts, and each layer that survives the correction.
pub fn markdown(found: &[WithDifficulty], what: &str, settings: &Settings) -> String {
    const LEVEL: f64 = 0.05;
    let line = |row: &WithDifficulty| {
        let statistic = row.statistic?;
        let interval = row.interval.map_or_else(|| "[-]".to_owned(), |(lo, hi)| format!("[{lo:+.2}, {hi:+.2}]"));
        let start = format!("- {}, hs_l2 {}", row.dataset, row.smoothing);
        match row.unit {
            Unit::Interaction => Some(format!(
                "{start}: layer x difficulty over {} problems, sum of squared rho {statistic:.2}, p {}",
                row.n_problems,
                drawn_p_text(row.p, settings.surrogates)
            )),
            Unit::Contrast(contrast) => Some(format!(
                "{start}: {} correlates with difficulty at {statistic:+.2} {interval}, p {}",
                contrast.name(),
                drawn_p_text(row.p, settings.surrogates)
            )),
            Unit::Layer(layer) => row.p_maxt.filter(|p| *p <= LEVEL).map(|p_maxt| {
                format!(
                    "{start}: layer {layer} correlates with difficulty at {statistic:+.2} {interval}, p {} of all \
                     layers",
                    drawn_p_text(Some(p_maxt), settings.surrogates)
                )
            }),
        }
    };
    let shown = settings.shown_smoothing();
    let lines: Vec<String> = found.iter().filter(|row| row.smoothing == shown).filter_map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("## Layers and difficulty\n\nDifficulty is {what}.\n\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::groups::tests::group;
    use crate::study::settings::tests::settings;

    /// Traces whose best layer moves from the first to the last as they become harder, by `strength`.
    fn traces(strength: f64) -> (Vec<Vec<f64>>, Vec<Option<f64>>) {
        let noise = |i: usize, l: usize| 0.5 * ((i * 7919 + l * 104_729) as f64).sin();
        let hard = |i: usize| i as f64 / 23.0 - 0.5;
        let z = |i: usize| (0..8).map(|l| 0.2 * noise(i, l) + strength * hard(i) * (l as f64 - 3.5) / 3.5).collect();
        ((0..24).map(z).collect(), (0..24).map(|i| Some(hard(i))).collect())
    }

    fn found(strength: f64) -> Vec<WithDifficulty> {
        let (traces, difficulty) = traces(strength);
        let settings = Settings { surrogates: 199, replicates: 200, ..settings() };
        with_difficulty(&group("m", "d", &traces), &Problems::each(traces.len()), &difficulty, &settings)
    }

    fn get(found: &[WithDifficulty], unit: Unit) -> &WithDifficulty {
        found.iter().find(|row| row.unit == unit).expect("a row")
    }

    #[test]
    fn a_profile_that_moves_is_told_from_one_that_does_not() {
        let moving = found(1.0);
        assert_eq!(moving.len(), 1 + 8 + 4);
        assert_eq!(get(&moving, Unit::Interaction).p, Some(1.0 / 200.0));
        let trend = get(&moving, Unit::Contrast(Contrast::Trend));
        let (lo, hi) = trend.interval.expect("24 traces");
        assert!(trend.statistic > Some(0.9) && 0.7 < lo && lo < hi, "{trend:?}");
        assert!(get(&moving, Unit::Layer(0)).statistic < Some(-0.8));
        assert!(get(&moving, Unit::Layer(7)).p_maxt <= Some(0.01));
        let settings = Settings { window: epikv_signals::DEFAULT_WINDOW, ..settings() };
        assert!(markdown(&moving, "made", &settings).contains("layer 7 correlates with difficulty"));
        let still = found(0.0);
        assert!(get(&still, Unit::Interaction).p > Some(0.05), "{:?}", get(&still, Unit::Interaction));
    }

    #[test]
    fn what_all_layers_share_is_no_interaction() {
        let (mut traces, difficulty) = traces(0.0);
        for (trace, difficulty) in traces.iter_mut().zip(&difficulty) {
            for z in trace.iter_mut() {
                *z += 3.0 * difficulty.expect("known");
            }
        }
        let settings = Settings { surrogates: 199, replicates: 0, ..settings() };
        let shifted = with_difficulty(&group("m", "d", &traces), &Problems::each(traces.len()), &difficulty, &settings);
        let of = |unit| get(&shifted, unit);
        assert!(of(Unit::Contrast(Contrast::BandA)).statistic > Some(0.9));
        let (got, want) = (of(Unit::Interaction).statistic, get(&found(0.0), Unit::Interaction).statistic);
        assert!((got.expect("defined") - want.expect("defined")).abs() < 1e-9, "the mean over layers is taken away");
    }

    #[test]
    fn too_few_traces_give_nothing() {
        let (traces, mut difficulty) = traces(1.0);
        difficulty[3..].fill(None);
        let found = with_difficulty(&group("m", "d", &traces), &Problems::each(traces.len()), &difficulty, &settings());
        assert!(
            found
                .iter()
                .all(|row| row.n_problems == 3 && row.n_traces == 3 && row.statistic.is_none() && row.p.is_none())
        );
        assert_eq!(markdown(&found, "made", &Settings { window: epikv_signals::DEFAULT_WINDOW, ..settings() }), "");
    }
}
