//! The names of scores by an observation window: `snapkv`, or `snapkv(window16+mean5)` with what differs.

use epikv_signals::{Pool, WindowAttention};

/// The published ones.
const NAMED: [(&str, WindowAttention); 4] = [
    ("snapkv", WindowAttention::SNAPKV),
    ("snapkv-decode", WindowAttention::SNAPKV_DECODE),
    ("r-kv", WindowAttention::R_KV),
    ("vase", WindowAttention::VASE),
];

/// Tokens of a window, or of a pool, at most.
const LARGEST: usize = 1 << 16;

/// The name of a score: the published one of the same kind, and what differs from it.
pub(crate) fn name(how: WindowAttention) -> String {
    let same = |base: &WindowAttention| {
        (base.seen, base.group, base.lambda.is_some()) == (how.seen, how.group, how.lambda.is_some())
    };
    let (name, base) = NAMED.into_iter().find(|(_, base)| same(base)).unwrap_or(NAMED[0]);
    let mut parts = Vec::new();
    if how.rows != base.rows {
        parts.push(format!("window{}", how.rows));
    }
    if how.pool != base.pool {
        parts.push(match how.pool {
            Pool::None => "largest1".to_owned(),
            Pool::Mean(width) => format!("mean{width}"),
            Pool::Largest(width) => format!("largest{width}"),
        });
    }
    if let Some(lambda) = how.lambda.filter(|_| how.lambda != base.lambda) {
        parts.push(format!("lambda{}", f64::from(lambda) / 1000.0));
    }
    if parts.is_empty() { name.to_owned() } else { format!("{name}({})", parts.join("+")) }
}

/// The score of a published name with the parts in brackets replaced.
pub(crate) fn parse(name: &str, parts: Option<&str>) -> Option<WindowAttention> {
    let (_, mut how) = NAMED.into_iter().find(|(known, _)| *known == name)?;
    let number = |digits: &str| digits.parse().ok().filter(|n| (1..=LARGEST).contains(n));
    for part in parts.into_iter().flat_map(|parts| parts.split('+')) {
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
