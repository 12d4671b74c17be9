//! One problem: drawn and solved.

use super::chain::{N_DIGITS, Operation, Sign, Value, draw_chain};
use super::draws::Draws;
use super::level::Level;
use super::vocabulary::N_LETTERS;

/// Tokens of `e = c + d = 83 + 71 so e 54 .`; a product has one less.
const STEP_TOKENS: usize = 16;
/// Tokens of `wait check e = c + d = 83 + 71 so e 54 . yes .`.
const CHECK_TOKENS: usize = 20;

/// Steps at the end that a question leaves out.
const LAST_STEPS: usize = 3;

/// A chain of letters and a question about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TinyProblem {
    /// `tiny-LEVEL-SEED-INDEX`.
    pub id: String,
    /// How long it is.
    pub level: Level,
    /// Number of the letter of the first value: 0 for `a`, 26 for `A`.
    pub first_letter: usize,
    /// Values of the letters from the first on; two are given.
    pub values: Vec<Value>,
    /// Operations, used in turn.
    pub rule: Vec<Operation>,
    /// Indices into the values that are checked again, ascending.
    pub checked: Vec<usize>,
    /// Indices into the values that the answer combines, each with its sign; the first is `+`.
    pub query: Vec<(Sign, usize)>,
}

impl TinyProblem {
    /// The problem with number `index` of a seed; the same on every machine. Its result is the value of no letter, so that
    /// it cannot be read off the trace.
    pub fn generate(level: Level, seed: u64, index: u64) -> Self {
        let mut draws = Draws::new(seed, index, level as u32);
        loop {
            let problem = Self::draw(level, seed, index, &mut draws);
            if !problem.values.contains(&problem.gold()) {
                return problem;
            }
        }
    }

    /// The same, except that the result may be some letter's value by chance, which does not matter to lessons.
    pub(super) fn any(level: Level, seed: u64, index: u64) -> Self {
        Self::draw(level, seed, index, &mut Draws::new(seed, index, level as u32))
    }

    fn draw(level: Level, seed: u64, index: u64, draws: &mut Draws) -> Self {
        let ranges = level.ranges();
        let (n_derived, n_checked) = loop {
            let n_tokens = draws.between(ranges.n_tokens.0, ranges.n_tokens.1);
            let n_derived = draws.between(ranges.n_derived.0, ranges.n_derived.1);
            let n_checked = n_tokens.saturating_sub(n_derived * STEP_TOKENS) / CHECK_TOKENS;
            let total = n_derived * STEP_TOKENS + n_checked * CHECK_TOKENS;
            // Up to half of the letters where there is a choice; long traces need more.
            let most = if level == Level::Long { n_derived } else { n_derived.div_ceil(2) };
            if n_checked <= most && (ranges.n_tokens.0..=ranges.n_tokens.1).contains(&total) {
                break (n_derived, n_checked);
            }
        };
        let (rule, values) = draw_chain(draws, n_derived);
        let derived: Vec<usize> = (2..values.len()).collect();
        let mut checked = draws.choose(n_checked, &derived);
        checked.sort_unstable();
        let first_letter = draws.below(N_LETTERS - values.len() + 1);
        let query = draw_query(draws, may_be_asked(&derived), ranges.n_queried, ranges.gap);
        let id = format!("tiny-{}-{seed}-{index}", level.name());
        Self { id, level, first_letter, values, rule, checked, query }
    }

    /// The same chain with another question.
    pub(super) fn with_query(&self, draws: &mut Draws) -> Self {
        let derived: Vec<usize> = (2..self.values.len()).collect();
        let ranges = self.level.ranges();
        Self { query: draw_query(draws, may_be_asked(&derived), ranges.n_queried, ranges.gap), ..self.clone() }
    }

    /// What the box holds.
    pub fn gold(&self) -> Value {
        self.query.iter().fold([0; N_DIGITS], |sum, (sign, i)| sign.apply(sum, self.values[*i]))
    }

    /// Letter number of a value.
    pub(super) fn letter(&self, index: usize) -> usize {
        self.first_letter + index
    }

    /// The operation that makes a derived value.
    pub(super) fn operation(&self, index: usize) -> Operation {
        self.rule[(index - 2) % self.rule.len()]
    }
}

/// Values that a question may name. A window over the last ones hides the end of the reasoning too, and the model then
/// simply writes it again.
fn may_be_asked(derived: &[usize]) -> &[usize] {
    &derived[..derived.len() - LAST_STEPS.min(derived.len() / 5)]
}

/// Derived values at least `gap` letters apart, in random order; fewer if they do not fit.
fn draw_query(draws: &mut Draws, derived: &[usize], n: (usize, usize), gap: usize) -> Vec<(Sign, usize)> {
    let n = draws.between(n.0, n.1).min((derived.len() - 1) / gap.max(1) + 1);
    loop {
        let mut chosen = draws.choose(n, derived);
        chosen.sort_unstable();
        if chosen.windows(2).all(|pair| pair[1] - pair[0] >= gap) {
            let order = draws.choose(n, &chosen);
            let sign = |draws: &mut Draws, k: usize| match k {
                0 => Sign::Plus,
                _ => draws.pick(&[Sign::Plus, Sign::Minus]),
            };
            return order.into_iter().enumerate().map(|(k, i)| (sign(draws, k), i)).collect();
        }
    }
}
