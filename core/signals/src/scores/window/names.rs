//! What stands in brackets behind the name of a score by an observation window: `window16+mean5`, the parts that differ from
//! the published ones.

use super::attention::{Pool, WindowAttention};

/// Tokens of a window, or of a pool, at most.
const LARGEST: usize = 1 << 16;

/// The parts of a score that differ from a published one.
pub(super) fn argument(published: WindowAttention, how: WindowAttention) -> String {
    let mut parts = Vec::new();
    if how.rows != published.rows {
        parts.push(format!("window{}", how.rows));
    }
    if how.pool != published.pool {
        parts.push(match how.pool {
            Pool::None => "largest1".to_owned(),
            Pool::Mean(width) => format!("mean{width}"),
            Pool::Largest(width) => format!("largest{width}"),
        });
    }
    if let Some(lambda) = how.lambda.filter(|_| how.lambda != published.lambda) {
        parts.push(format!("lambda{}", f64::from(lambda) / 1000.0));
    }
    parts.join("+")
}

/// A published score with the parts that are given replaced; `None` for a part that is wrong.
pub(super) fn replaced(published: WindowAttention, parts: &str) -> Option<WindowAttention> {
    let mut how = published;
    let number = |digits: &str| digits.parse().ok().filter(|n| (1..=LARGEST).contains(n));
    for part in parts.split('+').filter(|_| !parts.is_empty()) {
        if let Some(rows) = part.strip_prefix("window") {
            how.rows = number(rows)?;
        } else if let Some(width) = part.strip_prefix("mean") {
            how.pool = pool(number(width)?, Pool::Mean)?;
        } else if let Some(width) = part.strip_prefix("largest") {
            how.pool = pool(number(width)?, Pool::Largest)?;
        } else {
            let lambda: f64 = part.strip_prefix("lambda")?.parse().ok()?;
            // Thousandths, as they are stored.
            let thousandths = (lambda * 1000.0).round();
            how.lambda = how.lambda.and((0.0..=1000.0).contains(&thousandths).then_some(thousandths as u16));
            how.lambda?;
        }
    }
    Some(how)
}

/// A pool of an odd width; that of 1 has one name.
fn pool(width: usize, of: fn(usize) -> Pool) -> Option<Pool> {
    match width {
        1 => Some(Pool::None),
        _ => (width % 2 == 1).then(|| of(width)),
    }
}
