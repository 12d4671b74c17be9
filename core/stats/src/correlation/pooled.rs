//! Pooled rank statistics under resampling of traces: one sort, then a linear pass a replicate.
//!
//! Ranks change with the resample, but the order of the values does not. All tokens are sorted once; a replicate gives
//! each token the multiplicity `c` of its trace and walks the sorted tokens, so that a tie group holds
//! `sum(c)` tokens and the usual sums (see [`crate::rank_sum`]) come out exact. With all multiplicities 1 the result
//! equals the plain pooled statistic.
//!
//! Pooled rho mixes level shifts between traces with ranking inside traces; publish the within-trace figure beside it.

use crate::correlation::rank_sum::{BinaryRanks, add_group};
use crate::ranks::radix::{key_of, ordered_key, sort_tagged, tagged};

const IMPORTANT: u32 = 1;
const GROUP_END: u32 = 2;
const TRACE_SHIFT: u32 = 2;

/// The tokens of all traces in the order of their signal. 4 bytes a token.
#[derive(Debug, Clone)]
pub struct PooledSort {
    /// Trace index, end-of-tie-group mark and label, packed.
    tokens: Vec<u32>,
    n_traces: usize,
}

impl PooledSort {
    /// Sorts the pooled tokens. Each trace is `(signal [n_i], important [n_i])`. Cost `O(n)`.
    ///
    /// Undefined (`None`) when a signal holds a `NaN`.
    ///
    /// # Panics
    ///
    /// If the two columns of a trace differ in length, or with 2^30 traces or more.
    pub fn new(traces: &[(&[f32], &[bool])]) -> Option<Self> {
        assert!(traces.len() < 1 << 30, "a trace index has 30 bits");
        let total = traces.iter().map(|(signal, _)| signal.len()).sum();
        let mut keyed: Vec<u64> = Vec::with_capacity(total);
        for (trace, (signal, important)) in traces.iter().enumerate() {
            assert_eq!(signal.len(), important.len(), "one label a token");
            if signal.iter().any(|x| x.is_nan()) {
                return None;
            }
            let tag = (trace as u32) << TRACE_SHIFT;
            keyed.extend(signal.iter().zip(*important).map(|(&x, &one)| tagged(ordered_key(x), tag | u32::from(one))));
        }
        sort_tagged(&mut keyed);
        let mut tokens: Vec<u32> = keyed.iter().map(|&k| k as u32).collect();
        for (i, token) in tokens.iter_mut().enumerate() {
            if keyed.get(i + 1).is_none_or(|next| key_of(*next) != key_of(keyed[i])) {
                *token |= GROUP_END;
            }
        }
        Some(Self { tokens, n_traces: traces.len() })
    }

    /// The number of traces.
    pub fn n_traces(&self) -> usize {
        self.n_traces
    }

    /// The pooled statistic with every trace taken once.
    pub fn observed(&self) -> BinaryRanks {
        self.with_multiplicity(&vec![1; self.n_traces])
    }

    /// The pooled statistic with trace `i` taken `counts[i]` times (0 leaves it out). `counts` is `[n_traces]`.
    /// Cost `O(n)`.
    ///
    /// # Panics
    ///
    /// If `counts` is not one count a trace.
    pub fn with_multiplicity(&self, counts: &[u32]) -> BinaryRanks {
        assert_eq!(counts.len(), self.n_traces, "one multiplicity a trace");
        let mut sums = BinaryRanks::default();
        let mut group = [0_u64; 2];
        for &token in &self.tokens {
            let count = u64::from(counts[(token >> TRACE_SHIFT) as usize]);
            group[(token & IMPORTANT) as usize] += count;
            if token & GROUP_END != 0 {
                let [zeros, ones] = std::mem::take(&mut group);
                add_group_if_any(&mut sums, zeros, ones);
            }
        }
        sums
    }

    /// The statistic with one trace left out, for the jackknife of `BCa`.
    ///
    /// # Panics
    ///
    /// If there is no such trace.
    pub fn without(&self, trace: usize) -> BinaryRanks {
        let mut counts = vec![1; self.n_traces];
        counts[trace] = 0;
        self.with_multiplicity(&counts)
    }
}

fn add_group_if_any(sums: &mut BinaryRanks, zeros: u64, ones: u64) {
    if zeros + ones > 0 {
        let before = sums.n;
        add_group(sums, before, zeros, ones);
        sums.n += zeros + ones;
        sums.n_pos += ones;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlation::rank_sum::RankScratch;

    type Columns = (&'static [f32], &'static [bool]);
    const A: ([f32; 4], [bool; 4]) = ([1.0, 2.0, 2.0, -0.0], [true, false, true, false]);
    const B: ([f32; 3], [bool; 3]) = ([2.0, 0.0, 5.0], [false, true, true]);

    fn plain(parts: &[(&[f32], &[bool])]) -> BinaryRanks {
        let signal: Vec<f32> = parts.iter().flat_map(|p| p.0).copied().collect();
        let labels: Vec<bool> = parts.iter().flat_map(|p| p.1).copied().collect();
        BinaryRanks::from_f32(&signal, &labels, &mut RankScratch::default()).expect("no NaN")
    }

    #[test]
    fn equals_ranking_the_resample() {
        let [a, b]: [Columns; 2] = [(&A.0, &A.1), (&B.0, &B.1)];
        let sorted = PooledSort::new(&[a, b]).expect("no NaN");
        assert_eq!(sorted.observed(), plain(&[a, b]));
        assert_eq!(sorted.with_multiplicity(&[2, 1]), plain(&[a, a, b]));
        assert_eq!(sorted.with_multiplicity(&[0, 3]), plain(&[b, b, b]));
        assert_eq!(sorted.without(1), plain(&[a]));
    }

    #[test]
    fn nan_is_undefined() {
        assert!(PooledSort::new(&[(&[f32::NAN], &[true])]).is_none());
    }
}
