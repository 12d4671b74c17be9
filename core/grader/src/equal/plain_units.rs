//! Units in plain letters behind a number: `10 m/s`, `5 kg/m^3`, `3 kW`.

use crate::syntax::{Spaced, Token, Unit, UnitKind};

/// The tokens with the letters at the end made words, if they are units. A product of variables can look the same
/// (`\frac12 h`, `10m/s`), so most need a unit on the other side: `beside`.
pub(super) fn with_unit(tokens: &[Spaced], beside: bool) -> Option<Vec<Spaced>> {
    let start = (1..tokens.len()).find(|at| {
        let value = match &tokens[*at - 1].0 {
            Token::Num(_) | Token::Ch('}' | ')') => true,
            Token::Name(name) => name == "pi",
            _ => false,
        };
        value && letters(&tokens[*at].0).is_some()
    })?;
    let tail = &tokens[start..];
    let mut out = tokens[..start].to_vec();
    for (at, (token, spaced)) in tail.iter().enumerate() {
        let exponent = at > 0 && matches!(tail[at - 1].0, Token::Ch('^' | '{'));
        match token {
            Token::Name(_) | Token::Run(_) | Token::Word(_) => {
                out.push((Token::Word(letters(token)?.to_owned()), *spaced));
                continue;
            }
            Token::Ch('/' | '^' | '{' | '}') => {}
            Token::Num(_) if exponent => {}
            _ => return None,
        }
        out.push((token.clone(), *spaced));
    }
    let quotient = tail.iter().any(|(token, _)| token.is('/'));
    let spaced = tail[0].1;
    let name = |at: usize, name: &str| matches!(tail.get(at), Some((Token::Name(found), _)) if found == name);
    let worded = tail.iter().any(|(token, _)| matches!(token, Token::Word(_)));
    let numeral = matches!(tokens[start - 1].0, Token::Num(_));
    let sure = spaced && numeral && quotient && (worded || name(0, "m") && name(2, "s"));
    (sure || beside && (spaced || quotient)).then_some(out).filter(|out| out != tokens)
}

/// A unit, or the word between two of them.
fn letters(token: &Token) -> Option<&str> {
    const SINGLE: [&str; 12] = ["m", "s", "g", "h", "L", "l", "N", "J", "V", "W", "A", "K"];
    match token {
        Token::Name(name) => SINGLE.contains(&name.as_str()).then_some(name),
        Token::Word(word) if word == "per" => Some(word),
        Token::Word(word) | Token::Run(word) => {
            (!matches!(Unit::named(word).kind, UnitKind::Other | UnitKind::Clock)).then_some(word)
        }
        _ => None,
    }
}
