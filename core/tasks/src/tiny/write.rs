//! A problem as tokens: statement, reasoning and answer, and where each value is stated.

use super::chain::Operation;
use super::problem::TinyProblem;
use super::vocabulary::{
    BOX_END, BOX_START, CHECK, EOS, EQUALS, QUESTION, SEMICOLON, SO, STOP, THINK_END, TIMES, WAIT, YES, digit, letter,
    text,
};
use crate::problem::GoldSpan;

/// `c 8 ; d 7 ; + - ; wait f ; h ? g + e`.
pub(super) fn statement(problem: &TinyProblem) -> Vec<u32> {
    let name = |index: usize| letter(problem.letter(index));
    let mut ids = Vec::new();
    for start in 0..2 {
        ids.extend([name(start), digit(problem.values[start]), SEMICOLON]);
    }
    for operation in &problem.rule {
        match operation {
            Operation::Combine(sign) => ids.push(sign.token()),
            Operation::Multiply(factor) => ids.extend([TIMES, digit(*factor)]),
        }
    }
    ids.push(SEMICOLON);
    if !problem.checked.is_empty() {
        ids.push(WAIT);
        ids.extend(problem.checked.iter().map(|&i| name(i)));
        ids.push(SEMICOLON);
    }
    ids.extend([name(problem.values.len() - 1), QUESTION]);
    query(problem, 0, &mut ids, |i| [name(i)]);
    ids
}

/// The query from term `from` on, each term by `term`.
fn query<const N: usize>(problem: &TinyProblem, from: usize, ids: &mut Vec<u32>, term: impl Fn(usize) -> [u32; N]) {
    for (k, (sign, index)) in problem.query.iter().enumerate().skip(from) {
        if k > 0 {
            ids.push(sign.token());
        }
        ids.extend(term(*index));
    }
}

/// Reasoning and answer, with the places that state a value.
pub(super) struct Solution {
    pub(super) tokens: Vec<u32>,
    /// Index of the value, and the first token of `e 5`, counted from the first of the solution.
    pub(super) stated: Vec<(usize, usize)>,
}

/// Tokens of `e 5`.
const STATED_TOKENS: usize = 2;

pub(super) fn solution(problem: &TinyProblem) -> Solution {
    let mut solution = Solution { tokens: Vec::new(), stated: Vec::new() };
    for index in 2..problem.values.len() {
        solution.step(problem, index);
        if problem.checked.binary_search(&index).is_ok() {
            solution.tokens.extend([WAIT, CHECK]);
            solution.step(problem, index);
            solution.tokens.extend([YES, STOP]);
        }
    }
    solution.tokens.extend(answer(problem));
    solution
}

/// `so e 5 .` for each derived value.
pub(super) fn statements(problem: &TinyProblem) -> Vec<u32> {
    (2..problem.values.len()).flat_map(|i| [SO, letter(problem.letter(i)), digit(problem.values[i]), STOP]).collect()
}

/// `</think> p 4 + f 9 - m 1 = 4 + 9 - 1 = 3 - 1 = \boxed{ 2 } <eos>`.
pub(super) fn answer(problem: &TinyProblem) -> Vec<u32> {
    let name = |i: usize| letter(problem.letter(i));
    let value = |i: usize| digit(problem.values[i]);
    let mut ids = vec![THINK_END];
    query(problem, 0, &mut ids, |i| [name(i), value(i)]);
    ids.push(EQUALS);
    query(problem, 0, &mut ids, |i| [value(i)]);
    let mut sum = problem.query.first().map_or(0, |(_, i)| problem.values[*i]);
    for (k, (sign, index)) in problem.query.iter().enumerate().skip(1) {
        sum = sign.apply(sum, problem.values[*index]);
        ids.push(EQUALS);
        if k + 1 < problem.query.len() {
            ids.push(digit(sum));
            query(problem, k + 1, &mut ids, |i| [value(i)]);
        }
    }
    ids.extend([BOX_START, digit(sum), BOX_END, EOS]);
    ids
}

impl Solution {
    /// `e = c + d = 8 + 7 so e 5 .`.
    fn step(&mut self, problem: &TinyProblem, index: usize) {
        let name = |i: usize| letter(problem.letter(i));
        let value = |i: usize| digit(problem.values[i]);
        let operation = problem.operation(index);
        let (first, sign, second) = match operation {
            Operation::Combine(sign) => (index - 2, sign.token(), Some(index - 1)),
            Operation::Multiply(_) => (index - 2, TIMES, None),
        };
        let factor = match operation {
            Operation::Multiply(factor) => digit(factor),
            Operation::Combine(_) => 0,
        };
        self.tokens.extend([name(index), EQUALS, name(first), sign, second.map_or(factor, name), EQUALS]);
        self.tokens.extend([value(first), sign, second.map_or(factor, value), SO]);
        self.stated.push((index, self.tokens.len()));
        self.tokens.extend([name(index), value(index), STOP]);
    }
}

/// Where the reasoning states each queried value. As an operand a value stands beside other letters: that is no statement.
pub(super) fn gold_spans(problem: &TinyProblem) -> Vec<GoldSpan> {
    let n_prompt = problem.prompt().len();
    let stated = solution(problem).stated;
    let span = |index: usize| GoldSpan {
        text: text(&[letter(problem.letter(index)), digit(problem.values[index])]),
        mentions: stated
            .iter()
            .filter(|(i, _)| *i == index)
            .map(|(_, at)| n_prompt + at..n_prompt + at + STATED_TOKENS)
            .collect(),
    };
    problem.query.iter().map(|(_, index)| span(*index)).collect()
}
