//! Open ends written with brackets that face outward: `]0, 1[` is `(0, 1)`.

use super::token::{Spaced, Token};

/// Replaces brackets that face outward by round ones. A bracket faces outward where the usual reading has nothing to
/// close, or nothing to open.
pub(super) fn turned(tokens: &mut [Spaced]) {
    let mut open = Vec::new();
    for at in 0..tokens.len() {
        let ends = tokens.get(at + 1).is_none_or(|(token, _)| {
            matches!(token, Token::Ch(',' | ';' | ')' | '}') | Token::Cmd("cup" | "cap" | "sep" | "rset" | "setminus"))
        });
        let inside_square = open.last() == Some(&'[');
        match tokens[at].0 {
            Token::Ch('[') if ends && inside_square => {
                tokens[at].0 = Token::Ch(')');
                open.pop();
            }
            Token::Ch(']') if open.is_empty() => {
                tokens[at].0 = Token::Ch('(');
                open.push('[');
            }
            Token::Ch(bracket @ ('[' | '(' | '{')) => open.push(bracket),
            Token::Ch(']' | ')' | '}') => {
                open.pop();
            }
            _ => {}
        }
    }
}
