//! Tells a left side that only names a value from one that is part of an equation.

use std::ops::Range;

use super::parse::is_product;
use super::read::Reader;
use super::token::Token;

impl Reader {
    /// The text of a left side that only names a value: `x`, `AB`, `f(x)`, `|AB|`, `A:B`, `(p,q)`, `\frac{NO}{BO}`.
    pub(super) fn label(&self, range: &Range<usize>) -> Option<String> {
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
                    small = !index && name.chars().all(char::is_lowercase);
                    small_product |= small && previous_small;
                }
                Token::Run(run) => {
                    names += 1;
                    small_product |= is_product(run) && !run.chars().all(char::is_uppercase);
                }
                Token::Word(_) => names += 1,
                Token::Num(_) if !index => return None,
                Token::Num(_)
                | Token::Ch('(' | ')' | '|' | ':' | ',' | '\'' | '{' | '}' | '/' | '_' | '[' | ']')
                | Token::Cmd("frac" | "lbar" | "rbar" | "overline" | "circ" | "sep") => {}
                _ => return None,
            }
            // A subscript is one token or a group.
            index = token.is('_')
                || (index && token.is('{'))
                || (index && !token.is('}') && self.level[at] > self.level[range.start]);
            previous_small = small;
            text.push_str(&token.text());
        }
        if names == 0 || small_product { None } else { Some(text) }
    }

    /// `^{-1}` at this place.
    fn is_inverse(&self, at: usize) -> bool {
        let texts: Vec<String> = self.tokens.iter().skip(at).take(5).map(|(token, _)| token.text()).collect();
        texts == ["^", "{", "-", "1", "}"]
    }
}
