//! A problem as tokens: statement, reasoning and answer, and where each value is stated.

use super::chain::{N_DIGITS, Operation, Value};
use super::problem::TinyProblem;
use super::vocabulary::{
    BOS, BOX_END, BOX_START, CHECK, EOS, EQUALS, QUESTION, SEMICOLON, SO, STOP, THINK_END, THINK_START, TIMES, WAIT,
    YES, digit, letter, text,
};
use crate::problem::{GoldSpan, Problem};

impl TinyProblem {
    /// The statement, as tokens: `c 83 ; d 71 ; + - ; wait f ; h ? g + e`.
    pub fn statement(&self) -> Vec<u32> {
        let name = |index: usize| letter(self.letter(index));
        let mut ids = Vec::new();
        for start in 0..2 {
            ids.push(name(start));
            ids.extend(digits(self.values[start]));
            ids.push(SEMICOLON);
        }
        for operation in &self.rule {
            match operation {
                Operation::Combine(sign) => ids.push(sign.token()),
                Operation::Multiply(factor) => ids.extend([TIMES, digit(*factor)]),
            }
        }
        ids.push(SEMICOLON);
        if !self.checked.is_empty() {
            ids.push(WAIT);
            ids.extend(self.checked.iter().map(|&i| name(i)));
            ids.push(SEMICOLON);
        }
        ids.extend([name(self.values.len() - 1), QUESTION]);
        query(self, 0, &mut ids, |i| [name(i)]);
        ids
    }

    /// The whole prompt: begin of sequence, statement, opening tag.
    pub fn prompt(&self) -> Vec<u32> {
        let mut ids = vec![BOS];
        ids.extend(self.statement());
        ids.push(THINK_START);
        ids
    }

    /// Reasoning, closing tag, answer and end of sequence.
    pub fn solution(&self) -> Vec<u32> {
        solution(self).tokens
    }

    /// Closing tag, answer and end of sequence: `</think> p 40 + f 92 - m 15 = 40 + 92 - 15 = 32 - 15 = \boxed{ 27 } <eos>`.
    pub fn answer(&self) -> Vec<u32> {
        let value = |i: usize| self.values[i];
        let mut ids = vec![THINK_END];
        query(self, 0, &mut ids, |i| named(self.letter(i), value(i)));
        ids.push(EQUALS);
        query(self, 0, &mut ids, |i| digits(value(i)));
        let mut sum = self.query.first().map_or([0; N_DIGITS], |(_, i)| value(*i));
        for (k, (sign, index)) in self.query.iter().enumerate().skip(1) {
            sum = sign.apply(sum, value(*index));
            ids.push(EQUALS);
            if k + 1 < self.query.len() {
                ids.extend(digits(sum));
                query(self, k + 1, &mut ids, |i| digits(value(i)));
            }
        }
        ids.push(BOX_START);
        ids.extend(digits(sum));
        ids.extend([BOX_END, EOS]);
        ids
    }

    /// `so e 54 .` for each derived value.
    pub(super) fn statements(&self) -> Vec<u32> {
        let one = |i: usize| [SO].into_iter().chain(named(self.letter(i), self.values[i])).chain([STOP]);
        (2..self.values.len()).flat_map(one).collect()
    }

    /// The problem as the other commands take it.
    pub fn to_problem(&self) -> Problem {
        Problem {
            id: self.id.clone(),
            dataset: "tiny".to_owned(),
            problem: text(&self.statement()),
            gold: Some(text(&self.gold().map(digit))),
            level: Some(self.level.name().to_owned()),
            subject: None,
            gold_spans: Some(self.gold_spans()),
        }
    }

    /// For each queried value, in the order of the query, how the solution states it and where.
    ///
    /// As an operand a value stands beside other letters: that is no statement.
    pub fn gold_spans(&self) -> Vec<GoldSpan> {
        let n_prompt = self.prompt().len();
        let stated = solution(self).stated;
        let span = |index: usize| GoldSpan {
            text: text(&named(self.letter(index), self.values[index])),
            mentions: stated
                .iter()
                .filter(|(i, _)| *i == index)
                .map(|(_, at)| n_prompt + at..n_prompt + at + STATED_TOKENS)
                .collect(),
        };
        self.query.iter().map(|(_, index)| span(*index)).collect()
    }
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
struct Solution {
    tokens: Vec<u32>,
    /// Index of the value, and the first token of `e 54`, counted from the first of the solution.
    stated: Vec<(usize, usize)>,
}

/// Tokens of `e 54`.
const STATED_TOKENS: usize = 1 + N_DIGITS;

fn solution(problem: &TinyProblem) -> Solution {
    let mut solution = Solution { tokens: Vec::new(), stated: Vec::new() };
    for index in 2..problem.values.len() {
        solution.step(problem, index);
        if problem.checked.binary_search(&index).is_ok() {
            solution.tokens.extend([WAIT, CHECK]);
            solution.step(problem, index);
            solution.tokens.extend([YES, STOP]);
        }
    }
    solution.tokens.extend(problem.answer());
    solution
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
