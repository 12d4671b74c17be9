//! Change of a `[T, d]` tensor from each token of a row to the next, also across calls.

use candle_core::Tensor;

use crate::backend::operations::Backend;
use crate::cache::RowCache;
use crate::error::{Error, Result};
use crate::taps::point::{Reduce, TapPoint};

/// One value a token, null at the first token that a cache ever takes.
pub(super) type Steps = Vec<Option<f32>>;

/// Each of the reductions `reduces` of the steps at a point; the last token of a row is kept with its cache.
pub(super) fn steps(
    backend: &dyn Backend,
    point: TapPoint,
    reduces: &[Reduce],
    x: &Tensor,
    rows: &[usize],
    caches: &mut [&mut RowCache],
) -> Result<Vec<Steps>> {
    let key = match point {
        TapPoint::Embed => 0,
        TapPoint::ResidPost(layer) => layer + 1,
        TapPoint::FinalNorm => usize::MAX,
        _ => {
            return Err(Error::Request {
                what: "step between tokens",
                expected: "a point of shape [T, d]".to_owned(),
                got: format!("{point:?}"),
            });
        }
    };
    // Also of FinalNorm, whose numbers may be narrower.
    let x = backend.reduce(x, Reduce::Full)?;
    let mut all = vec![Steps::new(); reduces.len()];
    let mut first = 0;
    for (cache, &n) in caches.iter_mut().zip(rows).filter(|(_, n)| **n > 0) {
        let own = x.narrow(0, first, n)?;
        for (values, &reduce) in all.iter_mut().zip(reduces) {
            values.extend(backend.steps(&own, cache.previous.get(&key), reduce)?);
        }
        cache.previous.insert(key, own.narrow(0, n - 1, 1)?.force_contiguous()?);
        first += n;
    }
    Ok(all)
}
