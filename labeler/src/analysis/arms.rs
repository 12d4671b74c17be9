//! Do the labels depend on the filler? A comparison of two runs over the same windows with different fillers.
//!
//! ```text
//! kappa = (p_o - p_e) / (1 - p_e)    p_o: share of windows on which both agree, p_e: the same by chance, from the
//!                                    share of flips of each
//! ```
//!
//! Windows of one trace are not independent, so the test is over traces: the sign test on the difference of the shares of
//! flips.
//!
//! # References
//! Cohen 1960, *Educational and Psychological Measurement* 20:37.

use std::collections::BTreeMap;

use epikv_schemas::LabelWindow;
use epikv_stats::signed::sign_test;
use serde::Serialize;

/// How two arms compare, over the windows that both decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmComparison {
    /// Fillers.
    pub arms: (String, String),
    /// Windows that both decided.
    pub n_windows: usize,
    /// Of these, windows that flip the answer in both.
    pub n_both: usize,
    /// In the first alone.
    pub n_only_first: usize,
    /// In the second alone.
    pub n_only_second: usize,
    /// Cohen's kappa; null where chance alone would agree fully.
    pub kappa: Option<f64>,
    /// Traces with such windows.
    pub n_traces: usize,
    /// Of these, traces of which the first flips more windows.
    pub n_first_more: usize,
    /// Of which the second does.
    pub n_second_more: usize,
    /// Two-sided sign test over traces; null where no trace differs.
    pub sign_p: Option<f64>,
}

/// Compares the windows of two runs.
pub fn compare_arms(first: (&str, &[LabelWindow]), second: (&str, &[LabelWindow])) -> ArmComparison {
    type Key<'a> = (&'a str, i32, i32);
    fn key(window: &LabelWindow) -> Key<'_> {
        (&window.trace_id, window.start, window.end)
    }
    let seconds: BTreeMap<Key<'_>, bool> = second.1.iter().filter_map(|w| Some((key(w), w.flipped?))).collect();
    let mut table = [[0_usize; 2]; 2];
    let mut of_traces: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for window in first.1 {
        if let (Some(a), Some(&b)) = (window.flipped, seconds.get(&key(window))) {
            table[usize::from(a)][usize::from(b)] += 1;
            let (difference, n) = of_traces.entry(&window.trace_id).or_default();
            *difference += i64::from(a) - i64::from(b);
            *n += 1;
        }
    }
    let differences: Vec<f64> = of_traces.values().map(|(difference, n)| *difference as f64 / *n as f64).collect();
    ArmComparison {
        arms: (first.0.to_owned(), second.0.to_owned()),
        n_windows: table.iter().flatten().sum(),
        n_both: table[1][1],
        n_only_first: table[1][0],
        n_only_second: table[0][1],
        kappa: kappa(table),
        n_traces: differences.len(),
        n_first_more: differences.iter().filter(|d| **d > 0.0).count(),
        n_second_more: differences.iter().filter(|d| **d < 0.0).count(),
        sign_p: sign_test(&differences),
    }
}

/// `table[a][b]`: windows by the labels of both.
fn kappa(table: [[usize; 2]; 2]) -> Option<f64> {
    let n = table.iter().flatten().sum::<usize>() as f64;
    let share = |count: usize| count as f64 / n;
    let observed = share(table[0][0] + table[1][1]);
    let (first, second) = (share(table[1][0] + table[1][1]), share(table[0][1] + table[1][1]));
    let chance = first * second + (1.0 - first) * (1.0 - second);
    (n > 0.0 && chance < 1.0).then(|| (observed - chance) / (1.0 - chance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kappa_is_that_of_the_textbook() {
        // 20 and 15 agree, 5 and 10 do not: p_o = 0.7, p_e = 0.5.
        assert!((kappa([[15, 10], [5, 20]]).expect("defined") - 0.4).abs() < 1e-12);
        assert_eq!(kappa([[9, 0], [0, 0]]), None, "nothing ever flips");
        assert_eq!(kappa([[0; 2]; 2]), None);
        assert_eq!(kappa([[3, 0], [0, 4]]), Some(1.0));
    }
}
