//! Reductions of logits to numbers of each token, block by block.
//!
//! ```text
//! surprisal(t) = -ln p(token t | tokens before t)        from the logits before t; null at the first token
//! entropy(t)   = -sum_v p_v ln p_v                       of the distribution over the token after t
//! margin(t)    = largest logit - second largest          likewise
//! ```
//!
//! The logits of a block of tokens exist for as long as they are reduced, so that a vocabulary of 128 thousand costs 16 MB
//! and not a gigabyte.

use std::collections::BTreeMap;

use candle_core::Tensor;

use crate::cache::RowCache;
use crate::error::Result;
use crate::ops::{from_rows, with_f32};

/// Tokens whose logits exist together.
const BLOCK: usize = 32;

/// Key of the last normed state of a row, kept with its cache for the surprisal of the next token.
pub(crate) const LAST_STATE: usize = usize::MAX - 1;

/// A reduction of logits, one number a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogitTap {
    /// `-ln p` of the token itself, in nats. Null at the first token that a cache ever takes.
    Surprisal,
    /// Entropy of the distribution after the token, in nats.
    Entropy,
    /// Largest less second largest logit after the token.
    Margin,
}

/// Reduces the logits of packed tokens.
///
/// `normed` is the state after the final norm, `[T, d]`; `head` turns rows of it into logits `[rows, vocab]`.
pub(crate) fn logit_taps(
    wanted: &[LogitTap],
    normed: &Tensor,
    tokens: &[u32],
    rows: &[usize],
    caches: &mut [&mut RowCache],
    head: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<BTreeMap<LogitTap, Vec<Option<f32>>>> {
    let mut found: BTreeMap<LogitTap, Vec<Option<f32>>> = wanted.iter().map(|&tap| (tap, Vec::new())).collect();
    let mut first = 0;
    for (cache, &n) in caches.iter_mut().zip(rows).filter(|(_, n)| **n > 0) {
        let own = normed.narrow(0, first, n)?;
        let before = cache.previous.get(&LAST_STATE);
        let n_before = usize::from(before.is_some());
        // The state before the row's first token gives its surprisal.
        let states = match before {
            Some(before) => Tensor::cat(&[before, &own], 0)?,
            None => own.clone(),
        };
        if let (Some(surprisals), None) = (found.get_mut(&LogitTap::Surprisal), before) {
            surprisals.push(None);
        }
        for from in (0..states.dim(0)?).step_by(BLOCK) {
            let n_block = BLOCK.min(states.dim(0)? - from);
            let logits = head(&states.narrow(0, from, n_block)?.contiguous()?)?;
            let vocab = logits.dim(1)?;
            with_f32(&logits, |all| {
                for (i, row) in all.chunks_exact(vocab).enumerate() {
                    // State `at` comes after token `at - n_before` of the row.
                    let at = from + i;
                    let next = tokens.get(first + at + 1 - n_before).filter(|_| at + 1 - n_before < n);
                    let distribution = Distribution::of(row);
                    if let (Some(values), Some(&id)) = (found.get_mut(&LogitTap::Surprisal), next) {
                        values.push(row.get(id as usize).map(|&logit| distribution.surprisal(logit)));
                    }
                    if at >= n_before {
                        for (tap, value) in
                            [(LogitTap::Entropy, distribution.entropy), (LogitTap::Margin, distribution.margin)]
                        {
                            if let Some(values) = found.get_mut(&tap) {
                                values.push(Some(value));
                            }
                        }
                    }
                }
            })?;
        }
        let last = with_f32(&own.narrow(0, n - 1, 1)?, <[f32]>::to_vec)?;
        let d = last.len();
        cache.previous.insert(LAST_STATE, from_rows(last, &[1, d])?);
        first += n;
    }
    Ok(found)
}

/// What is kept of one row of logits.
struct Distribution {
    /// `ln sum_v exp(logit_v)`.
    log_sum: f64,
    entropy: f32,
    margin: f32,
}

impl Distribution {
    /// Sums in f64 in the order of the vocabulary.
    fn of(logits: &[f32]) -> Self {
        let (mut best, mut second) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        for &logit in logits {
            if logit > best {
                (best, second) = (logit, best);
            } else if logit > second {
                second = logit;
            }
        }
        let (mut sum, mut weighted) = (0.0_f64, 0.0_f64);
        for &logit in logits {
            let below = f64::from(logit - best);
            let weight = below.exp();
            sum += weight;
            weighted += if weight > 0.0 { weight * below } else { 0.0 };
        }
        // -sum p ln p with ln p = below - ln sum.
        let entropy = (sum.ln() - weighted / sum).max(0.0);
        Self { log_sum: f64::from(best) + sum.ln(), entropy: entropy as f32, margin: best - second }
    }

    fn surprisal(&self, logit: f32) -> f32 {
        (self.log_sum - f64::from(logit)).max(0.0) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let even = Distribution::of(&[1.0; 4]);
        assert!((f64::from(even.entropy) - 4.0_f64.ln()).abs() < 1e-6);
        assert!((f64::from(even.surprisal(1.0)) - 4.0_f64.ln()).abs() < 1e-6);
        assert!(even.margin.abs() < 1e-6);
        let certain = Distribution::of(&[200.0, -f32::MAX, 3.0]);
        assert_eq!((certain.entropy, certain.margin, certain.surprisal(200.0)), (0.0, 197.0, 0.0));
        assert!((certain.surprisal(3.0) - 197.0).abs() < 1e-4);
    }
}
