//! Figures of policies: right answers, other outcomes, and times.

use std::collections::BTreeMap;

use epikv_schemas::EvictionRun;
use epikv_stats::Confidence;
use epikv_stats::mcnemar::mcnemar;
use epikv_stats::moments::mean;
use epikv_stats::paired::paired_difference;
use epikv_stats::tango::tango;
use serde::{Deserialize, Serialize};

use crate::claims::part::{ByProblem, Part, Scale, Test, Unequal};
use crate::claims::run::Run;

/// Means of bytes that differ by less than this share are equal.
const SAME_BYTES: f64 = 0.05;

/// What is held equal when two policies are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Of the score, or how it chooses: scope, protected tokens and held tokens are equal.
    Score,
    /// Of the scope: score and protected tokens are equal.
    Scope,
    /// Of whole policies in their own settings, at equal bytes.
    System,
    /// Of eviction itself: the other policy keeps everything.
    Eviction,
}

impl Effect {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Score => "score effect: equal scope, protection and held tokens",
            Self::Scope => "scope effect: equal score and protection",
            Self::System => "system effect: each policy's own settings, equal bytes",
            Self::Eviction => "effect of eviction: against the full cache",
        }
    }

    /// What is not equal between two runs of it.
    fn unequal(self, a: &EvictionRun, b: &EvictionRun, bytes: (Option<f64>, Option<f64>)) -> Option<Unequal> {
        let differs = |part: &str| part_of(&a.composition, part) != part_of(&b.composition, part);
        match self {
            Self::Score if differs("scope") => Some(Unequal::Scope),
            Self::Score | Self::Scope if differs("protect") => Some(Unequal::Protection),
            Self::Score | Self::Scope if differs("trigger") => Some(Unequal::Held),
            Self::System => match bytes {
                (Some(a), Some(b)) if (a - b).abs() <= SAME_BYTES * a.max(b) => None,
                _ => Some(Unequal::Held),
            },
            _ => None,
        }
    }
}

/// A part of a composition, such as `scope`.
fn part_of<'c>(composition: &'c str, part: &str) -> Option<&'c str> {
    composition
        .split(';')
        .find_map(|each| each.split_once('=').filter(|(name, _)| *name == part))
        .map(|(_, value)| value)
}

/// The runs that are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// Right answers.
    #[default]
    Right,
    /// Generations that ended at once, without text.
    Empty,
    /// Generations that repeat themselves to the limit.
    Loop,
}

impl Count {
    /// What is counted, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Right => "right answers",
            Self::Empty => "empty answers",
            Self::Loop => "answers that repeat themselves",
        }
    }

    fn of(self, run: &EvictionRun) -> Option<bool> {
        match self {
            Self::Right => run.correct,
            Self::Empty => run.n_new.map(|_| run.outcome == "empty"),
            Self::Loop => run.n_new.map(|_| run.outcome == "loop"),
        }
    }
}

/// Runs of a policy and budget on a problem set; those of other seeds of its draws are among them.
type Under<'r> = BTreeMap<Key<'r>, Vec<&'r EvictionRun>>;

/// Problem set, policy without its seed, and budget.
type Key<'r> = (&'r str, String, Option<&'r str>);

/// Runs under one policy and under another.
type Pair<'u, 'r> = [&'u [&'r EvictionRun]; 2];

fn by_policy(run: &Run) -> Under<'_> {
    let mut found = Under::new();
    for row in &run.runs {
        let key = (row.dataset.as_str(), without_seed(&row.policy), row.budget.as_deref());
        found.entry(key).or_default().push(row);
    }
    found
}

/// The name of a policy without the seed of its draws.
fn without_seed(policy: &str) -> String {
    policy.split(';').filter(|part| !part.starts_with("seed=")).collect::<Vec<_>>().join(";")
}

/// `*` is any policy but the other one.
fn is_meant(policy: &str, asked: &str, other: &str) -> bool {
    if asked == "*" { policy != other } else { policy == asked }
}

/// Pairs of policies on the same problem set: budgets are equal, or the second has none.
fn pairs<'u, 'r>(under: &'u Under<'r>, a: &'u str, b: &'u str) -> impl Iterator<Item = (&'u Key<'r>, Pair<'u, 'r>)> {
    under.iter().filter(move |((_, policy, _), _)| is_meant(policy, a, b)).flat_map(move |(key, first)| {
        let same = move |(other, _): &(&'u Key<'r>, &Vec<&EvictionRun>)| {
            other.0 == key.0 && is_meant(&other.1, b, a) && (other.2 == key.2 || other.2.is_none())
        };
        under.iter().filter(same).map(move |(_, second)| (key, [first.as_slice(), second.as_slice()]))
    })
}

/// Share of counted runs under `a` less that under `b`, one part for each problem set and budget.
pub(crate) fn difference(run: &Run, a: &str, b: &str, count: Count, effect: Effect) -> Vec<Part> {
    let under = by_policy(run);
    let part = |(key, [first, second]): (&Key<'_>, Pair<'_, '_>)| {
        let problems = shared_problems(first, second, |row| count.of(row).map(|is| f64::from(u8::from(is))));
        let mut part = paired(&problems)?;
        let bytes = |rows: &[&EvictionRun]| {
            mean(&rows.iter().filter_map(|row| Some(row.peak_kv_bytes? as f64)).collect::<Vec<_>>())
        };
        part.unequal = effect.unequal(first.first()?, second.first()?, (bytes(first), bytes(second)));
        part.of = if [a, b].contains(&"*") {
            format!("{} against {}", key.1, without_seed(&second[0].policy))
        } else {
            String::new()
        };
        (part.dataset, part.budget) = (key.0.to_owned(), key.2.map(str::to_owned));
        Some(part)
    };
    pairs(&under, a, b).filter_map(part).collect()
}

/// The values of each problem that both have.
type Problems<'r> = BTreeMap<&'r str, [Vec<f64>; 2]>;

fn shared_problems<'r>(
    first: &[&'r EvictionRun],
    second: &[&'r EvictionRun],
    value: impl Fn(&EvictionRun) -> Option<f64>,
) -> Problems<'r> {
    let mut problems = Problems::new();
    for (side, rows) in [first, second].into_iter().enumerate() {
        for row in rows {
            if let Some(value) = value(row) {
                problems.entry(&row.problem_id).or_default()[side].push(value);
            }
        }
    }
    problems.retain(|_, sides| sides.iter().all(|side| !side.is_empty()));
    problems
}

/// Exact `McNemar` and Tango's interval for one run a problem; for more the exact sign flip of the differences of the
/// problems (a paired t test where it cannot be enumerated), and Student's t on them, no narrower than Tango's interval
/// for so many problems without a discordant one. `None` without a pair, or for one problem of several runs.
fn paired(problems: &Problems<'_>) -> Option<Part> {
    let share = |side: usize| -> Option<Vec<f64>> { problems.values().map(|sides| mean(&sides[side])).collect() };
    let (first, second) = (share(0)?, share(1)?);
    let n = problems.len();
    let found = paired_difference(&first, &second)?;
    let single = problems.values().all(|sides| sides.iter().all(|side| side.len() == 1));
    let (wins, losses) = first.iter().zip(&second).fold((0, 0), |(wins, losses), (first, second)| {
        (wins + u64::from(first > second), losses + u64::from(first < second))
    });
    let (p, lo, hi) = if single {
        let (lo, hi) = tango(wins, losses, n as u64, Confidence::P95)?;
        (mcnemar(wins, losses).p_exact, lo, hi)
    } else {
        let half = Confidence::P95.t(n as f64 - 1.0)? * found.se?;
        let (least, most) = tango(0, 0, n as u64, Confidence::P95)?;
        let (lo, hi) = (found.mean_diff - half, found.mean_diff + half);
        let bounds = (lo.min(found.mean_diff + least).max(-1.0), hi.max(found.mean_diff + most).min(1.0));
        (found.p_signflip_exact.or(found.p_t)?, bounds.0, bounds.1)
    };
    let percent = |shares: &[f64]| mean(shares).unwrap_or_default() * 100.0;
    let counts = format!(
        "{:.1} % and {:.1} %; higher on {wins}, lower on {losses} of {n} problems",
        percent(&first),
        percent(&second)
    );
    let part = Part::of_interval("", found.mean_diff, (lo, hi), Test::Exact { p }, n);
    Some(Part { counts, ..part })
}

/// Decoding seconds, and the part of them that chooses what to evict, by generation.
type Times<'r> = BTreeMap<(&'r str, &'r str, Option<&'r str>, i32), [f64; 2]>;

fn times(run: &Run) -> Times<'_> {
    let mut times = Times::new();
    for row in &run.timings {
        let seconds = [row.wall_s - row.prefill_s, row.score_s + row.select_s + row.move_s];
        times.insert((&row.problem_id, &row.policy, row.budget.as_deref(), row.sample), seconds);
    }
    times
}

/// Decoding seconds a generated token under `slow`, over those under `fast`: the geometric mean over problems, one part for
/// each problem set and budget.
pub(crate) fn time_ratio(run: &Run, fast: &str, slow: &str) -> Vec<Part> {
    let (under, times) = (by_policy(run), times(run));
    let seconds = |row: &EvictionRun| {
        let [decoding, _] =
            times.get(&(row.problem_id.as_str(), row.policy.as_str(), row.budget.as_deref(), row.sample))?;
        let seconds = decoding / f64::from(row.n_new.filter(|n| *n > 0)?);
        (seconds > 0.0).then_some(seconds)
    };
    let part = |(key, [first, second]): (&Key<'_>, Pair<'_, '_>)| {
        let problems = shared_problems(first, second, seconds);
        let logs: Vec<f64> =
            problems.values().filter_map(|[fast, slow]| Some((mean(slow)? / mean(fast)?).ln())).collect();
        let of = if [fast, slow].contains(&"*") {
            format!("{} against {}", without_seed(&second[0].policy), key.1)
        } else {
            String::new()
        };
        let part = Part::of_mean(key.0, of, Scale::Log, &logs)?;
        Some(Part { budget: key.2.map(str::to_owned), ..part })
    };
    pairs(&under, fast, slow).filter_map(part).collect()
}

/// Share of the decoding time in which a policy scores, chooses and frees: the mean over problems.
pub(crate) fn overhead(run: &Run, policy: &str) -> Vec<Part> {
    let times = times(run);
    let part = |((dataset, _, budget), rows): (&Key<'_>, &Vec<&EvictionRun>)| {
        let mut problems = ByProblem::new();
        for row in rows {
            let key = (row.problem_id.as_str(), row.policy.as_str(), row.budget.as_deref(), row.sample);
            if let Some([decoding, choosing]) = times.get(&key).filter(|[decoding, _]| *decoding > 0.0) {
                problems.entry(&row.problem_id).or_default().push(choosing / decoding);
            }
        }
        let part = Part::of_problems(dataset, String::new(), Scale::Plain, &problems)?;
        Some(Part { budget: budget.map(str::to_owned), ..part })
    };
    by_policy(run).iter().filter(|((_, name, _), _)| name == policy).filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Problem `i` under a policy, right or not.
    fn rows(policy: &str, scope: &str, right: &[bool]) -> Vec<EvictionRun> {
        let row = |(i, right): (usize, &bool)| EvictionRun {
            problem_id: format!("p{i:02}"),
            policy: policy.to_owned(),
            budget: Some("64".to_owned()),
            composition: format!("score={policy};protect=prompt;trigger=each;scope={scope}"),
            dataset: "tiny".to_owned(),
            outcome: if *right { "correct" } else { "loop" }.to_owned(),
            correct: Some(*right),
            n_new: Some(10),
            peak_kv_bytes: Some(1000),
            ..EvictionRun::default()
        };
        right.iter().enumerate().map(row).collect()
    }

    fn timings(runs: &[EvictionRun], seconds: impl Fn(usize) -> f64) -> Vec<epikv_schemas::EvictionTiming> {
        let row = |(i, run): (usize, &EvictionRun)| epikv_schemas::EvictionTiming {
            problem_id: run.problem_id.clone(),
            policy: run.policy.clone(),
            budget: run.budget.clone(),
            wall_s: seconds(i) + 1.0,
            prefill_s: 1.0,
            score_s: seconds(i) * 0.01,
            ..epikv_schemas::EvictionTiming::default()
        };
        runs.iter().enumerate().map(row).collect()
    }

    #[test]
    fn right_answers_are_paired_by_problem_and_named_by_what_is_equal() {
        let (a, b) = (rows("a", "global", &[true; 12]), rows("b", "global", &[false; 12]));
        let run = Run { runs: [a.clone(), b].concat(), ..Run::default() };
        let parts = difference(&run, "a", "b", Count::Right, Effect::Score);
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].estimate, parts[0].n, parts[0].unequal), (1.0, 12, None));
        assert!(matches!(parts[0].test, Test::Exact { p } if (p - 2.0_f64.powi(-11)).abs() < 1e-15), "{parts:?}");
        let loops = difference(&run, "b", "a", Count::Loop, Effect::System);
        assert_eq!((loops[0].estimate, loops[0].unequal), (1.0, None));
        // The same pair by head and globally is no score effect, and it is one of scope.
        let run = Run { runs: [a, rows("c", "per-head", &[false; 12])].concat(), ..Run::default() };
        let of = |effect| difference(&run, "a", "c", Count::Right, effect)[0].unequal;
        assert_eq!([of(Effect::Score), of(Effect::Scope)], [Some(Unequal::Scope), None]);
    }

    #[test]
    fn samples_and_seeds_of_a_problem_are_no_independent_pairs() {
        // Four problems of eight samples each, all won: as pairs McNemar says 2^-31, as problems it is 2 / 2^4.
        let mut runs = Vec::new();
        for sample in 0..8 {
            let seed = if sample == 0 { "a".to_owned() } else { format!("a;seed={sample}") };
            let row = |row: EvictionRun| EvictionRun { policy: seed.clone(), ..row };
            runs.extend(rows("a", "global", &[true; 4]).into_iter().map(row));
        }
        runs.extend(rows("b", "global", &[false; 4]));
        let run = Run { runs, ..Run::default() };
        let parts = difference(&run, "a", "b", Count::Right, Effect::Score);
        assert_eq!((parts.len(), parts[0].n), (1, 4));
        assert!(matches!(parts[0].test, Test::Exact { p } if (p - 0.125).abs() < 1e-15), "{parts:?}");
        assert!(parts[0].lo < parts[0].hi);
    }

    #[test]
    fn times_are_ratios_a_token_and_shares() {
        let (a, b) = (rows("a", "global", &[true; 6]), rows("b", "global", &[true; 6]));
        let run = Run {
            timings: [timings(&a, |i| 1.0 + i as f64), timings(&b, |i| 2.0 + 2.02 * i as f64)].concat(),
            runs: [a, b].concat(),
            ..Run::default()
        };
        let ratio = &time_ratio(&run, "a", "b")[0];
        assert!(ratio.lo > 2.0 && ratio.hi < 2.02 && ratio.n == 6, "{ratio:?}");
        let any = time_ratio(&run, "*", "b");
        assert_eq!((any.len(), any[0].of.as_str()), (1, "b against a"));
        let share = &overhead(&run, "a")[0];
        assert!((share.estimate - 0.01).abs() < 1e-12, "{share:?}");
    }
}
