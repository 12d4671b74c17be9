//! Tells a left side that only names a value from one that is part of an equation.

use std::ops::Range;

use super::parse::is_product;
use super::read::Reader;
use super::token::Token;

impl Reader {
    /// The text of a left side that only names a value: `x`, `AB`, `f(x)`, `f(3)`, `P(X = 2)`, `|AB|`, `A:B`, `(p,q)`,
    /// `\frac{NO}{BO}`, `m + n`.
    pub(super) fn label(&self, range: &Range<usize>) -> Option<String> {
        if let Some(sum) = self.sum_of_unknowns(range) {
            return Some(sum);
        }
        let base = self.level.get(range.start).copied()?;
        let function = self.names_function(range);
        let mut text = String::new();
        let mut names = 0usize;
        let mut small_product = false;
        let mut previous_small = false;
        let mut index = false;
        let mut inverse = 0usize;
        for at in range.clone() {
            let token = self.token(at);
            // f^{-1}(x)
            if token.is('^') && at > range.start && self.is_inverse(at) {
                inverse = 5;
                text.push_str("^-1");
            }
            if inverse > 0 {
                inverse -= 1;
                continue;
            }
            let mut small = false;
            match token {
                Token::Name(name) => {
                    names += 1;
                    let symbol = matches!(name.as_str(), "angle" | "triangle");
                    small = !index && !symbol && name.chars().all(char::is_lowercase);
                    small_product |= small && previous_small;
                }
                Token::Run(run) => {
                    names += 1;
                    small_product |= is_product(run) && !run.chars().all(char::is_uppercase);
                }
                Token::Word(_) => names += 1,
                // What a function is taken of.
                Token::Num(_) | Token::Ch('=' | '<' | '>' | '+' | '-') | Token::Cmd("le" | "ge" | "cup" | "cap")
                    if function && self.level[at] > base => {}
                Token::Num(_) if !index => return None,
                Token::Num(_)
                | Token::Ch('(' | ')' | '|' | ':' | ',' | '\'' | '{' | '}' | '/' | '_' | '[' | ']')
                | Token::Cmd("frac" | "lbar" | "rbar" | "overline" | "circ" | "sep") => {}
                _ => return None,
            }
            // A subscript is one token or a group.
            index = token.is('_') || (index && token.is('{')) || (index && !token.is('}') && self.level[at] > base);
            previous_small = small;
            text.push_str(&token.text());
        }
        if names == 0 || small_product { None } else { Some(text) }
    }

    /// `m + n`, `a + b + c`, as problems ask for them; `x + y = 1` is rather a line.
    fn sum_of_unknowns(&self, range: &Range<usize>) -> Option<String> {
        let mut text = String::new();
        for (place, at) in range.clone().enumerate() {
            match self.token(at) {
                Token::Name(name) if place % 2 == 0 && name.len() == 1 && !text.contains(name.as_str()) => {
                    if matches!(name.as_str(), "x" | "y" | "z" | "e" | "i") {
                        return None;
                    }
                    text.push_str(name);
                }
                Token::Ch('+') if place % 2 == 1 => text.push('+'),
                _ => return None,
            }
        }
        (range.len() > 2 && range.len() % 2 == 1).then_some(text)
    }

    /// Whether the range is a letter that is usual for functions, perhaps with primes, and one bracket after it.
    fn names_function(&self, range: &Range<usize>) -> bool {
        let primes = range.clone().skip(1).take_while(|at| self.token(*at).is('\'')).count();
        let open = range.start + 1 + primes;
        let letter = matches!(self.token(range.start), Token::Name(name) if !matches!(name.as_str(), "x" | "y" | "z"));
        letter && range.contains(&open) && self.token(open).is('(') && self.partner[open] == Some(range.end - 1)
    }

    /// `^{-1}` at this place.
    fn is_inverse(&self, at: usize) -> bool {
        let texts: Vec<String> = self.tokens.iter().skip(at).take(5).map(|(token, _)| token.text()).collect();
        texts == ["^", "{", "-", "1", "}"]
    }
}
