//! The lag profile of a column: is the signal high before the important tokens, on them, or after them?
//!
//! ```text
//! rho(lag) = Spearman's rho of the signal at t + lag with the label of t, within traces
//! ```
//!
//! pooled over problems as the coefficient at lag 0 is. A positive lag takes the signal after the token. A smoother sees
//! the tokens before, so that its profile is shifted to positive lags and as wide as its window: a large coefficient of
//! a smoothed signal need not come from the token itself. Shifted positions outside the decoded tokens are left out,
//! since smoothers start again where decoding does.

use epikv_stats::pool::clipped_z;
use epikv_stats::{RankScratch, moments};

use crate::study::join::{Labelled, Mask};
use crate::study::problems::Problems;
use crate::study::trace_rho::TraceRho;

/// Rho at one lag.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LagRho {
    /// Tokens from the label to the signal; positive where the signal is later.
    pub lag: i32,
    /// Tokens of the traces that count.
    pub n_tokens: u64,
    /// Problems with a trace whose own coefficient is defined.
    pub n_eff: usize,
    /// Rho within traces; `None` without such a trace.
    pub rho: Option<f64>,
}

/// A smoothed series with the labels of its trace.
pub(crate) struct Series<'s> {
    /// One value a token of the trace, `[n]`.
    pub values: &'s [Option<f32>],
    /// The tokens that count.
    pub mask: &'s Mask,
    /// Tokens of the prompt.
    pub n_prompt: usize,
}

/// 0 and the powers of two up to `max`, before and after: `-2, -1, 0, 1, 2` for 3. None for 0.
pub fn lags(max: usize) -> Vec<i32> {
    let powers: Vec<i32> = (0..31).map(|i| 1 << i).take_while(|&lag| lag as usize <= max).collect();
    if powers.is_empty() {
        return Vec::new();
    }
    powers.iter().rev().map(|lag| -lag).chain([0]).chain(powers.iter().copied()).collect()
}

/// The profile over all traces of a problem set.
///
/// Cost: a ranking of every trace at each lag.
pub(crate) fn profile(traces: &[Series<'_>], problems: &Problems, max_lag: usize) -> Vec<LagRho> {
    let mut scratch = RankScratch::default();
    let mut at = |lag: i32| {
        let found: Vec<Option<TraceRho>> =
            traces.iter().map(|trace| TraceRho::of(&trace.shifted(lag), &mut scratch).ok()).collect();
        let of_traces: Vec<Option<f64>> = found.iter().map(|trace| trace.map(|t| clipped_z(t.rho).0)).collect();
        let z: Vec<f64> = problems.means_of_defined(&of_traces).into_iter().flatten().collect();
        LagRho {
            lag,
            n_tokens: found.iter().flatten().map(|trace| trace.n_tokens).sum(),
            n_eff: z.len(),
            rho: moments::mean(&z).map(f64::tanh),
        }
    };
    lags(max_lag).into_iter().map(&mut at).collect()
}

/// The lag with the largest |rho|; of equal ones the nearest to 0, and then the earlier.
pub fn peak(profile: &[LagRho]) -> Option<(i32, f64)> {
    let mut defined: Vec<(i32, f64)> = profile.iter().filter_map(|at| Some((at.lag, at.rho?))).collect();
    defined.sort_by_key(|(lag, _)| (lag.abs(), *lag));
    defined.into_iter().reduce(|best, next| if next.1.abs() > best.1.abs() { next } else { best })
}

impl Series<'_> {
    fn shifted(&self, lag: i32) -> Labelled {
        let value = |pos: usize| {
            let at = pos.checked_add_signed(lag as isize)?;
            if at < self.n_prompt { None } else { *self.values.get(at)? }
        };
        Labelled::new(self.mask.tokens().iter().map(|&(pos, one)| (value(pos), one)))
    }
}

#[cfg(test)]
mod tests {
    use epikv_stats::spearman;

    use super::*;
    use crate::record::Recording;
    use crate::shared::label;

    const N: usize = 120;
    const N_PROMPT: usize = 8;

    fn important(pos: usize) -> bool {
        pos * 7919 % 31 < 9
    }

    fn mask() -> Mask {
        let recording =
            Recording { trace_id: "t".to_owned(), token_ids: vec![1; N], n_prompt: N_PROMPT, columns: Vec::new() };
        let labels: Vec<_> = (N_PROMPT..N - 5).map(|pos| label(pos as i32, 1, true, Some(important(pos)))).collect();
        Mask::new(&recording, &labels).expect("its labels")
    }

    /// Three tokens late, and noise.
    fn values() -> Vec<Option<f32>> {
        let late = |pos: usize| f32::from(u8::from(pos >= 3 && important(pos - 3)));
        (0..N).map(|pos| (pos != 50).then(|| late(pos) + (pos * 104_729 % 97) as f32 / 80.0)).collect()
    }

    #[test]
    fn the_profile_is_the_definition_and_peaks_where_the_signal_stands() {
        let (mask, values) = (mask(), values());
        let found = profile(&[Series { values: &values, mask: &mask, n_prompt: N_PROMPT }], &Problems::each(1), 40);
        assert_eq!(found.iter().map(|at| at.lag).collect::<Vec<_>>(), lags(40));
        for at in &found {
            let pairs: Vec<(f64, f64)> = (N_PROMPT..N - 5)
                .filter_map(|pos| {
                    let shifted = pos as i32 + at.lag;
                    let inside = (N_PROMPT as i32..N as i32).contains(&shifted);
                    let value = if inside { values[shifted as usize] } else { None };
                    Some((f64::from(value?), f64::from(u8::from(important(pos)))))
                })
                .collect();
            let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            assert_eq!((at.n_tokens, at.n_eff), (x.len() as u64, 1));
            let want = spearman(&x, &y).expect("defined");
            assert!((at.rho.expect("defined") - want).abs() < 1e-12, "lag {}", at.lag);
        }
        let near: Vec<Option<f32>> = (0..N).map(|pos| values.get(pos + 1).copied().flatten()).collect();
        let found = profile(&[Series { values: &near, mask: &mask, n_prompt: N_PROMPT }], &Problems::each(1), 4);
        assert_eq!(peak(&found).map(|(lag, rho)| (lag, rho > 0.5)), Some((2, true)));
    }

    #[test]
    fn lags_are_powers_of_two() {
        assert_eq!(lags(3), [-2, -1, 0, 1, 2]);
        assert_eq!((lags(0), lags(64).len()), (Vec::new(), 15));
        assert_eq!(peak(&[]), None);
    }
}
