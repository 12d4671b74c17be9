//! Sums and products over an index that differ only in the order of their factors: `\sum F_k F_{n-k}` and
//! `\sum F_{n-k} F_k`. Nothing is summed: the bounds must be the same tokens.

use super::context::Context;
use super::ungrouped;
use crate::syntax::{Spaced, Token, read_tokens};

/// Whether two answers with a `\sum` or a `\prod` are the same but for the order of the factors under it.
pub(super) fn same_factors(a: &[Spaced], b: &[Spaced], context: &mut Context) -> bool {
    let (Some(a), Some(b)) = (Parts::of(a), Parts::of(b)) else { return false };
    let same = |x: &[Spaced], y: &[Spaced]| ungrouped(x).eq(ungrouped(y));
    if !same(a.head, b.head) || !same(a.bounds, b.bounds) || !same(a.tail, b.tail) {
        return false;
    }
    match (read_tokens(a.term.to_vec()), read_tokens(b.term.to_vec())) {
        (Ok(left), Ok(right)) => context.compare(&left, &right).is_same(),
        _ => false,
    }
}

struct Parts<'t> {
    /// Up to the sign, and the sign.
    head: &'t [Spaced],
    bounds: &'t [Spaced],
    /// What is summed: the factors up to the next plus or minus sign, relation or comma.
    term: &'t [Spaced],
    tail: &'t [Spaced],
}

impl<'t> Parts<'t> {
    fn of(tokens: &'t [Spaced]) -> Option<Self> {
        let is_sum = |token: &Token| matches!(token, Token::Unknown(name) if name == "sum" || name == "prod");
        let sign = tokens.iter().position(|(token, _)| is_sum(token))?;
        let (head, rest) = tokens.split_at(sign + 1);
        let mut at = 0;
        while matches!(rest.get(at), Some((Token::Ch('_' | '^'), _))) {
            at = end_of_group(rest, at + 1)?;
        }
        let (bounds, rest) = rest.split_at(at);
        let mut depth = 0usize;
        let mut end = rest.len();
        for (at, (token, _)) in rest.iter().enumerate() {
            match token.bracket() {
                Some(true) => depth += 1,
                Some(false) if depth == 0 => end = at,
                Some(false) => depth -= 1,
                None => {
                    let factor = match token {
                        Token::Ch(c) => !matches!(c, '+' | '-' | '=' | '<' | '>' | ',' | ';'),
                        Token::Cmd(name) => matches!(*name, "frac" | "binom" | "circ" | "infty"),
                        token => !is_sum(token),
                    };
                    if depth == 0 && !factor {
                        end = at;
                    }
                }
            }
            if end < rest.len() {
                break;
            }
        }
        let (term, tail) = rest.split_at(end);
        Some(Self { head, bounds, term, tail }).filter(|_| !term.is_empty())
    }
}

/// End of the group or the token at a place.
fn end_of_group(tokens: &[Spaced], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (k, (token, _)) in tokens.iter().enumerate().skip(at) {
        match token.bracket() {
            Some(true) => depth += 1,
            Some(false) => depth = depth.checked_sub(1)?,
            None => {}
        }
        if depth == 0 {
            return Some(k + 1);
        }
    }
    None
}
