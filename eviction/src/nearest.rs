//! Suggests the known name nearest to an unknown one.

/// Largest part of the letters of a name that may be wrong.
const MOST_WRONG: f64 = 0.4;

/// The known name that is nearest to what was typed, by insertions, deletions, replacements and swaps of neighbours,
/// letters of either case alike; `None` where none is near.
pub fn nearest<'k>(given: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let given = given.to_lowercase();
    let far = |name: &&str| strsim::osa_distance(&given, name);
    let best = known.min_by_key(far)?;
    (far(&best) as f64 <= MOST_WRONG * best.chars().count() as f64).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let known = || ["window", "random", "h2o", "kv-key"].into_iter();
        assert_eq!(nearest("windwo", known()), Some("window"));
        assert_eq!(nearest("h20", known()), Some("h2o"));
        assert_eq!(nearest("kvkey", known()), Some("kv-key"));
        assert_eq!(nearest("snapkv", known()), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
