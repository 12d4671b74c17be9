//! Training text: tokens, and the weight of each in the loss.

use super::chain::draw_value;
use super::draws::Draws;
use super::level::Level;
use super::problem::TinyProblem;
use super::vocabulary::{BOS, EQUALS, N_LETTERS, content, is_digit};
use super::write::named;

/// Kinds of the random numbers of lessons, beside the levels.
const REPEATS: u32 = 100;
const QUERIES: u32 = 101;
const TABLE: u32 = 102;
const NAMES: u32 = 103;

/// Questions that [`Lesson::Queries`] adds.
const N_QUERIES: usize = 10;

/// What the name of [`Lesson::Queries`] ends in.
const QUERIES_NAME: &str = "+queries";

/// A kind of training sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lesson {
    /// Random letters, digits and signs, said two or three times: forces heads that look up what followed last time, and
    /// keeps the signs apart, which nothing else does before sums are known.
    Repeats,
    /// Letters with values, said again in other orders: forces heads that look up the value of a letter.
    Names,
    /// Values stated as a chain states them, without the chain, and questions about them: forces heads that look up the
    /// value of a letter however far back it stands.
    Table,
    /// A problem with its solution.
    Problem(Level),
    /// The same, followed by more questions about the same values and their answers. An answer is a few tokens behind
    /// hundreds of the chain, so recall over a distance is learned many times faster from this.
    Queries(Level),
}

impl Lesson {
    /// `repeats`, `names`, `table`, the name of a level, or that and `+queries`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.strip_suffix(QUERIES_NAME) {
            Some(level) => Level::from_name(level).map(Self::Queries),
            None if name == "repeats" => Some(Self::Repeats),
            None if name == "names" => Some(Self::Names),
            None if name == "table" => Some(Self::Table),
            None => Level::from_name(name).map(Self::Problem),
        }
    }

    /// Sequence `index` of a seed: tokens, and weights that are 0 for what is given and `answer_weight` from the closing
    /// tag on.
    pub fn sequence(self, seed: u64, index: u64, answer_weight: f32) -> (Vec<u32>, Vec<f32>) {
        match self {
            Self::Repeats => repeats(seed, index),
            Self::Names => names(seed, index),
            Self::Table => table(seed, index, answer_weight),
            Self::Problem(level) => solved(&TinyProblem::any(level, seed, index), answer_weight),
            Self::Queries(level) => {
                let problem = TinyProblem::any(level, seed, index);
                let (mut tokens, mut weights) = solved(&problem, answer_weight);
                ask(&problem, &mut Draws::new(seed, index, QUERIES), answer_weight, &mut tokens, &mut weights);
                (tokens, weights)
            }
        }
    }
}

/// Adds questions about the values of a problem and their answers.
fn ask(problem: &TinyProblem, draws: &mut Draws, answer_weight: f32, tokens: &mut Vec<u32>, weights: &mut Vec<f32>) {
    for _ in 0..N_QUERIES {
        let answer = problem.with_query(draws).answer();
        // Letters and signs of the question are given; values and what follows are to be predicted.
        let asked = answer.iter().position(|id| *id == EQUALS).unwrap_or(0);
        let given = |(at, id): (usize, &u32)| at < asked && !is_digit(*id);
        weights.extend(answer.iter().enumerate().map(|at| if given(at) { 0.0 } else { answer_weight }));
        tokens.extend(answer);
    }
}

/// The statements are given, the answers are to be predicted.
fn table(seed: u64, index: u64, answer_weight: f32) -> (Vec<u32>, Vec<f32>) {
    let mut draws = Draws::new(seed, index, TABLE);
    let level = draws.pick(&Level::ALL);
    let problem = TinyProblem::any(level, seed, index);
    let mut tokens = vec![BOS];
    tokens.extend(problem.statements());
    let mut weights = vec![0.0; tokens.len()];
    ask(&problem, &mut draws, answer_weight, &mut tokens, &mut weights);
    (tokens, weights)
}

/// The first time all is given, then only letters are.
fn names(seed: u64, index: u64) -> (Vec<u32>, Vec<f32>) {
    let mut draws = Draws::new(seed, index, NAMES);
    let (n, times) = (draws.between(4, 20), draws.between(2, 3));
    let letters: Vec<usize> = (0..N_LETTERS).collect();
    let known: Vec<_> = draws.choose(n, &letters).into_iter().map(|l| named(l, draw_value(&mut draws))).collect();
    let (mut tokens, mut weights) = (vec![BOS], vec![0.0]);
    for time in 0..times {
        for name in draws.choose(n, &known) {
            tokens.extend(name);
            weights.extend(name.map(|id| if time > 0 && is_digit(id) { 1.0 } else { 0.0 }));
        }
    }
    (tokens, weights)
}

/// Prompt and solution.
fn solved(problem: &TinyProblem, answer_weight: f32) -> (Vec<u32>, Vec<f32>) {
    let mut tokens = problem.prompt();
    let mut weights = vec![0.0; tokens.len()];
    let (solution, answer) = (problem.solution(), problem.answer());
    let boundary = solution.len() - answer.len();
    weights.extend((0..solution.len()).map(|i| if i < boundary { 1.0 } else { answer_weight }));
    tokens.extend(solution);
    (tokens, weights)
}

/// The first time is given, the others are to be predicted.
fn repeats(seed: u64, index: u64) -> (Vec<u32>, Vec<f32>) {
    let mut draws = Draws::new(seed, index, REPEATS);
    let (length, times) = (draws.between(12, 40), draws.between(2, 3));
    let all: Vec<u32> = content().collect();
    let once: Vec<u32> = (0..length).map(|_| draws.pick(&all)).collect();
    let mut tokens = vec![BOS];
    tokens.extend(once.iter().cycle().take(length * times));
    let weights = (0..tokens.len()).map(|i| if i > length + 1 { 1.0 } else { 0.0 }).collect();
    (tokens, weights)
}
