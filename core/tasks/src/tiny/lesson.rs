//! What a model is trained on: tokens, and the weight of each as something to predict.

use super::draws::Draws;
use super::level::Level;
use super::problem::TinyProblem;
use super::vocabulary::{BOS, THINK_END, values};

/// Kind of the random numbers of [`Lesson::Repeats`], beside the levels.
const REPEATS: u32 = 100;

/// A kind of training sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lesson {
    /// Random letters and digits, said two or three times: forces heads that look up what followed last time.
    Repeats,
    /// A problem with its solution.
    Problem(Level),
}

impl Lesson {
    /// `repeats`, or the name of a level.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "repeats" { Some(Self::Repeats) } else { Level::from_name(name).map(Self::Problem) }
    }

    /// Sequence `index` of a seed: tokens, and weights that are 0 for what is given and `answer_weight` from the closing
    /// tag on.
    pub fn sequence(self, seed: u64, index: u64, answer_weight: f32) -> (Vec<u32>, Vec<f32>) {
        match self {
            Self::Repeats => repeats(seed, index),
            Self::Problem(level) => {
                let problem = TinyProblem::generate(level, seed, index);
                let mut tokens = problem.prompt();
                let mut weights = vec![0.0; tokens.len()];
                let solution = problem.solution();
                let boundary = solution.iter().position(|id| *id == THINK_END).unwrap_or(solution.len());
                weights.extend((0..solution.len()).map(|i| if i < boundary { 1.0 } else { answer_weight }));
                tokens.extend(solution);
                (tokens, weights)
            }
        }
    }
}

/// The first time is given, the others are to be predicted.
fn repeats(seed: u64, index: u64) -> (Vec<u32>, Vec<f32>) {
    let mut draws = Draws::new(seed, index, REPEATS);
    let (length, times) = (draws.between(12, 40), draws.between(2, 3));
    let all: Vec<u32> = values().collect();
    let once: Vec<u32> = (0..length).map(|_| draws.pick(&all)).collect();
    let mut tokens = vec![BOS];
    tokens.extend(once.iter().cycle().take(length * times));
    let weights = (0..tokens.len()).map(|i| if i > length + 1 { 1.0 } else { 0.0 }).collect();
    (tokens, weights)
}
