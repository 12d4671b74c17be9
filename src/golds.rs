//! Checks of the grader on gold answers: each equals itself in a box, and no two of the built-in ones are equal.

use epikv_grader::{Mode, compare, extract};

use crate::check::Check;

/// One answer of each kind, all different.
const BUILT_IN: &str = include_str!("../data/golds.txt");

/// The built-in golds, one a line.
pub(crate) fn built_in() -> Vec<&'static str> {
    BUILT_IN.lines().filter(|line| !line.is_empty()).collect()
}

/// Each gold, boxed in a sentence, is found again and is itself.
pub(crate) fn reflexive<S: AsRef<str>>(what: &'static str, golds: &[S]) -> Check {
    let good = golds.iter().filter(|gold| is_itself(gold.as_ref())).count();
    Check::share(what, good, golds.len())
}

/// No two golds are taken for one another.
pub(crate) fn distinct(golds: &[&str]) -> Check {
    let pairs = golds.iter().enumerate().flat_map(|(at, a)| golds[..at].iter().map(move |b| (a, b)));
    let (mut apart, mut all) = (0, 0);
    for (a, b) in pairs {
        all += 1;
        apart += usize::from(!compare(a, b, Mode::Lenient).verdict.is_same());
    }
    Check::share("pairs of different golds that the grader tells apart", apart, all)
}

/// Whether a gold is found in a box and is the same as itself, in both modes.
pub(crate) fn is_itself(gold: &str) -> bool {
    let text = format!(r"So the answer is $\boxed{{{gold}}}$.");
    [Mode::Strict, Mode::Lenient]
        .into_iter()
        .all(|mode| extract(&text, mode).is_some_and(|found| compare(&found.answer, gold, mode).verdict.is_same()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_golds_pass() {
        let golds = built_in();
        assert!(golds.len() >= 60, "{}", golds.len());
        for check in [reflexive("golds", &golds), distinct(&golds)] {
            assert!(check.good, "{}", check.line());
        }
    }
}
