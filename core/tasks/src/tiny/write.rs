//! A problem as tokens: statement, reasoning and answer, and where each value is stated.

use super::chain::{N_DIGITS, Operation, Value};
use super::problem::TinyProblem;
use super::vocabulary::{
    BOX_END, BOX_START, CHECK, EOS, EQUALS, QUESTION, SEMICOLON, SO, STOP, THINK_END, TIMES, WAIT, YES, digit, letter,
    text,
};
use crate::problem::GoldSpan;

/// `c 83 ; d 71 ; + - ; wait f ; h ? g + e`.
pub(super) fn statement(problem: &TinyProblem) -> Vec<u32> {
    let name = |index: usize| letter(problem.letter(index));
    let mut ids = Vec::new();
    for start in 0..2 {
        ids.push(name(start));
        ids.extend(digits(problem.values[start]));
        ids.push(SEMICOLON);
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
    /// Index of the value, and the first token of `e 54`, counted from the first of the solution.
    pub(super) stated: Vec<(usize, usize)>,
}

/// Tokens of `e 54`.
const STATED_TOKENS: usize = 1 + N_DIGITS;

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

/// `so e 54 .` for each derived value.
pub(super) fn statements(problem: &TinyProblem) -> Vec<u32> {
    let one = |i: usize| [SO].into_iter().chain(named(problem.letter(i), problem.values[i])).chain([STOP]);
    (2..problem.values.len()).flat_map(one).collect()
}

/// Ids of a value.
fn digits(value: Value) -> [u32; N_DIGITS] {
    value.map(digit)
}

/// `e 54`.
pub(super) fn named(name: usize, value: Value) -> [u32; STATED_TOKENS] {
    let [first, second] = digits(value);
    [letter(name), first, second]
}

/// `</think> p 40 + f 92 - m 15 = 40 + 92 - 15 = 32 - 15 = \boxed{ 27 } <eos>`.
pub(super) fn answer(problem: &TinyProblem) -> Vec<u32> {
    let value = |i: usize| problem.values[i];
    let mut ids = vec![THINK_END];
    query(problem, 0, &mut ids, |i| named(problem.letter(i), value(i)));
    ids.push(EQUALS);
    query(problem, 0, &mut ids, |i| digits(value(i)));
    let mut sum = problem.query.first().map_or([0; N_DIGITS], |(_, i)| value(*i));
    for (k, (sign, index)) in problem.query.iter().enumerate().skip(1) {
        sum = sign.apply(sum, value(*index));
        ids.push(EQUALS);
        if k + 1 < problem.query.len() {
            ids.extend(digits(sum));
            query(problem, k + 1, &mut ids, |i| digits(value(i)));
        }
    }
    ids.push(BOX_START);
    ids.extend(digits(sum));
    ids.extend([BOX_END, EOS]);
    ids
}

impl Solution {
    /// `e = c + d = 83 + 71 so e 54 .`.
    fn step(&mut self, problem: &TinyProblem, index: usize) {
        let name = |i: usize| letter(problem.letter(i));
        let (before, last) = (index - 2, index - 1);
        self.tokens.extend([name(index), EQUALS, name(before)]);
        match problem.operation(index) {
            Operation::Combine(sign) => {
                self.tokens.extend([sign.token(), name(last), EQUALS]);
                self.tokens.extend(digits(problem.values[before]));
                self.tokens.push(sign.token());
                self.tokens.extend(digits(problem.values[last]));
            }
            Operation::Multiply(factor) => {
                self.tokens.extend([TIMES, digit(factor), EQUALS]);
                self.tokens.extend(digits(problem.values[before]));
                self.tokens.extend([TIMES, digit(factor)]);
            }
        }
        self.tokens.push(SO);
        self.stated.push((index, self.tokens.len()));
        self.tokens.extend(named(problem.letter(index), problem.values[index]));
        self.tokens.push(STOP);
    }
}

/// Where the reasoning states each queried value. As an operand a value stands beside other letters: that is no statement.
pub(super) fn gold_spans(problem: &TinyProblem) -> Vec<GoldSpan> {
    let n_prompt = problem.prompt().len();
    let stated = solution(problem).stated;
    let span = |index: usize| GoldSpan {
        text: text(&named(problem.letter(index), problem.values[index])),
        mentions: stated
            .iter()
            .filter(|(i, _)| *i == index)
            .map(|(_, at)| n_prompt + at..n_prompt + at + STATED_TOKENS)
            .collect(),
    };
    problem.query.iter().map(|(_, index)| span(*index)).collect()
}
