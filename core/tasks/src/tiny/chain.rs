//! The chain of values and the rule that makes it.

use std::collections::BTreeSet;

use super::draws::Draws;
use super::vocabulary;

/// Digits of a value. Whoever guesses a hidden value of two digits is right once in a hundred times.
pub(super) const N_DIGITS: usize = 2;

/// A value: its digits, which take part in every operation each for itself.
pub type Value = [u8; N_DIGITS];

/// Factors that make no two digits one, modulo 10. As a product takes the earlier value, every operation can be undone and
/// no rule runs into a constant.
const FACTORS: [u8; 3] = [3, 7, 9];

/// Values in a row that are equal, at most.
const LONGEST_RUN: usize = 2;

/// Different values of a long chain, at least. Even starts make all digits even, for example, and then a hidden value is
/// guessed more often.
const FEWEST_VALUES: usize = 12;

/// Plus or minus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// `+`.
    Plus,
    /// `-`.
    Minus,
}

impl Sign {
    pub(super) fn token(self) -> u32 {
        match self {
            Self::Plus => vocabulary::PLUS,
            Self::Minus => vocabulary::MINUS,
        }
    }

    /// `a + b` or `a - b`, each digit modulo 10: nothing is carried.
    pub(super) fn apply(self, a: Value, b: Value) -> Value {
        std::array::from_fn(|i| match self {
            Self::Plus => (a[i] + b[i]) % 10,
            Self::Minus => (a[i] + 10 - b[i]) % 10,
        })
    }
}

/// How the next value comes from the previous two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Both, added or subtracted.
    Combine(Sign),
    /// The earlier one, multiplied by a constant.
    Multiply(u8),
}

impl Operation {
    pub(super) fn apply(self, before: Value, last: Value) -> Value {
        match self {
            Self::Combine(sign) => sign.apply(before, last),
            Self::Multiply(factor) => before.map(|digit| digit * factor % 10),
        }
    }
}

/// A rule: one to three operations, all different, so that the next one follows from the last.
fn draw_rule(draws: &mut Draws) -> Vec<Operation> {
    let (plus, minus) = (Operation::Combine(Sign::Plus), Operation::Combine(Sign::Minus));
    let times = Operation::Multiply(draws.pick(&FACTORS));
    let n = draws.between(1, 3);
    loop {
        let rule = draws.choose(n, &[plus, minus, times]);
        if rule != [times] {
            return rule;
        }
    }
}

/// Any digits.
pub(super) fn draw_value(draws: &mut Draws) -> Value {
    std::array::from_fn(|_| draws.below(10) as u8)
}

/// A rule, two start values and `n_derived` more, without long constant runs and with many different values.
pub(super) fn draw_chain(draws: &mut Draws, n_derived: usize) -> (Vec<Operation>, Vec<Value>) {
    loop {
        let rule = draw_rule(draws);
        let mut values = vec![draw_value(draws), draw_value(draws)];
        for operation in rule.iter().cycle().take(n_derived) {
            let [.., before, last] = values.as_slice() else { unreachable!("starts with two values") };
            values.push(operation.apply(*before, *last));
        }
        let n_different = values[2..].iter().collect::<BTreeSet<_>>().len();
        let enough = n_different >= FEWEST_VALUES.min(n_derived.div_ceil(2));
        if enough && values.chunk_by(|a, b| a == b).all(|run| run.len() <= LONGEST_RUN) {
            return (rule, values);
        }
    }
}
