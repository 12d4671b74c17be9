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

use crate::backend::operations::Backend;
use crate::cache::RowCache;
use crate::error::Result;
use crate::linear::Linear;

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
    backend: &dyn Backend,
    wanted: &[LogitTap],
    normed: &Tensor,
    tokens: &[u32],
    rows: &[usize],
    caches: &mut [&mut RowCache],
    head: &Linear,
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
            let logits = head.forward_f32(&states.narrow(0, from, n_block)?.contiguous()?)?;
            // State `at` comes after token `at - n_before` of the row.
            let block = from..from + n_block;
            let next = |at: usize| tokens.get(first + at + 1 - n_before).filter(|_| at + 1 - n_before < n).copied();
            let next: Vec<Option<u32>> = block.clone().map(next).collect();
            for ((at, next), found_at) in block.zip(&next).zip(backend.distributions(&logits, &next)?) {
                if let (Some(values), true) = (found.get_mut(&LogitTap::Surprisal), next.is_some()) {
                    values.push(found_at.surprisal);
                }
                if at >= n_before {
                    for (tap, value) in [(LogitTap::Entropy, found_at.entropy), (LogitTap::Margin, found_at.margin)] {
                        if let Some(values) = found.get_mut(&tap) {
                            values.push(Some(value));
                        }
                    }
                }
            }
        }
        cache.previous.insert(LAST_STATE, own.narrow(0, n - 1, 1)?.force_contiguous()?);
        first += n;
    }
    Ok(found)
}
