//! From cleaned text to tokens.

use super::commands::longest_prefix;
use super::expr::Func;
use super::numeral::{Options, based, numeral};
use super::token::{Spaced, Token};
use super::units::is_unit_word;
use super::words::{is_approximation, is_short_word};
use super::{LONGEST_ANSWER, MOST_TOKENS, Read};
use crate::verdict::Reason;

/// Splits an answer into tokens.
pub(crate) fn lex(text: &str, options: Options) -> Read<Vec<Spaced>> {
    if text.len() > LONGEST_ANSWER {
        return Err(Reason::TooLong);
    }
    let chars: Vec<char> = text.chars().collect();
    let single = has_single_begin(&chars);
    let mut lexer = Lexer { chars, at: 0, out: Vec::new(), options, inside: 0, environments: 0, single, spaced: false };
    lexer.run()?;
    times_signs(&mut lexer.out);
    Ok(lexer.out)
}

/// The letter in `1.5 x 10^3` and `3 x 4` is a sign: between two numerals, with space around it or a power of ten after it.
fn times_signs(tokens: &mut [Spaced]) {
    for at in 1..tokens.len().saturating_sub(1) {
        let letter = matches!(&tokens[at].0, Token::Name(name) if name == "x" || name == "X");
        let ten = matches!(&tokens[at + 1].0, Token::Num(number) if number.digits == "10" && number.places.is_none())
            && tokens.get(at + 2).is_some_and(|(token, _)| token.is('^'));
        let numerals = matches!((&tokens[at - 1].0, &tokens[at + 1].0), (Token::Num(_), Token::Num(_)));
        if letter && numerals && (ten || tokens[at].1 && tokens[at + 1].1) {
            tokens[at].0 = Token::Ch('*');
        }
    }
}

/// Whether an environment is opened by one backslash; then a double backslash inside it ends a row, and elsewhere
/// it is a backslash that was escaped once too often.
fn has_single_begin(chars: &[char]) -> bool {
    let begin: Vec<char> = "\\begin".chars().collect();
    chars.windows(begin.len()).enumerate().any(|(at, window)| window == begin && (at == 0 || chars[at - 1] != '\\'))
}

pub(super) struct Lexer {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) out: Vec<Spaced>,
    pub(super) options: Options,
    /// Open brackets in which a comma separates items.
    pub(super) inside: usize,
    pub(super) environments: usize,
    single: bool,
    pub(super) spaced: bool,
}

impl Lexer {
    pub(super) fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(super) fn push(&mut self, token: Token) -> Read<()> {
        if self.out.len() >= MOST_TOKENS {
            return Err(Reason::TooLong);
        }
        match &token {
            Token::Ch('(' | '[') | Token::Cmd("lset") => self.inside += 1,
            Token::Ch(')' | ']') | Token::Cmd("rset") => {
                self.inside = self.inside.saturating_sub(1);
            }
            Token::Begin(_) => self.environments += 1,
            Token::End(_) => self.environments = self.environments.saturating_sub(1),
            _ => {}
        }
        self.out.push((token, self.spaced));
        self.spaced = false;
        Ok(())
    }

    fn run(&mut self) -> Read<()> {
        while let Some(c) = self.peek(0) {
            match c {
                c if c.is_whitespace() => {
                    self.spaced = true;
                    self.at += 1;
                }
                '\\' => self.backslash()?,
                '0'..='9' => self.number()?,
                '.' if self.peek(1).is_some_and(|c| c.is_ascii_digit()) => self.number()?,
                '.' if self.peek(1) == Some('.') => {
                    while self.peek(0) == Some('.') {
                        self.at += 1;
                    }
                    self.push(Token::Cmd("dots"))?;
                }
                c if c.is_alphabetic() => self.letters()?,
                _ => self.symbol(c)?,
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Read<()> {
        let (token, len) = numeral(&self.chars, self.at, self.options, self.inside > 0).ok_or(Reason::TooLong)?;
        self.at += len;
        self.push(token)
    }

    fn symbol(&mut self, c: char) -> Read<()> {
        let pair = (c, self.peek(1));
        let (token, len) = match pair {
            ('<', Some('=')) => (Token::Cmd("le"), 2),
            ('>', Some('=')) => (Token::Cmd("ge"), 2),
            ('!', Some('=')) => (Token::Cmd("ne"), 2),
            ('=' | ':', Some('=')) => (Token::Ch('='), 2),
            ('+', Some('-')) => (Token::Cmd("pm"), 2),
            ('+', Some('/')) if self.peek(2) == Some('-') => (Token::Cmd("pm"), 3),
            ('*', Some('*')) => (Token::Ch('^'), 2),
            // `&` outside of a matrix lines formulas up.
            ('~' | '&', _) if c == '~' || self.environments == 0 => {
                self.spaced = true;
                self.at += 1;
                return Ok(());
            }
            ('%', _) => (Token::Cmd("percent"), 1),
            ('"' | '`', _) => {
                self.at += 1;
                return Ok(());
            }
            _ => (Token::Ch(c), 1),
        };
        self.at += len;
        self.push(token)
    }

    /// A run of letters in a formula.
    fn letters(&mut self) -> Read<()> {
        let start = self.at;
        while self.peek(0).is_some_and(char::is_alphabetic) {
            self.at += 1;
        }
        let run: String = self.chars[start..self.at].iter().collect();
        // `BEEF_{16}`, `A7_{12}`: digits beyond nine.
        if matches!(self.chars.get(start + 1), Some('A'..='Z' | '0'..='9'))
            && let Some((token, length)) = based(&self.chars, start)
        {
            self.at = start + length;
            return self.push(token);
        }
        self.letter_run(&run)
    }

    fn letter_run(&mut self, run: &str) -> Read<()> {
        if run.chars().count() == 1 {
            return self.push(Token::Name(run.to_owned()));
        }
        let raised =
            matches!(self.out.as_slice(), [.., (Token::Ch('^'), _)] | [.., (Token::Ch('^'), _), (Token::Ch('{'), _)]);
        if raised && matches!(run, "st" | "nd" | "rd" | "th") {
            return self.push(Token::Word(run.to_owned()));
        }
        match run {
            "and" | "or" => return self.push(Token::Cmd("sep")),
            "pi" => return self.push(Token::Name("pi".to_owned())),
            "inf" | "infinity" | "oo" => return self.push(Token::Cmd("infty")),
            "union" => return self.push(Token::Cmd("cup")),
            _ if is_approximation(run) => return self.push(Token::Cmd("approx")),
            _ => {}
        }
        let call = self.chars.get(self.at..).is_some_and(|rest| rest.iter().find(|c| **c != ' ') == Some(&'('));
        if let Some(func) = Func::by_name(run).filter(|_| call || !is_unit_word(run)) {
            return self.push(Token::Func(func));
        }
        // `63 in`: behind a number and at the end nothing else is meant.
        let inches = run == "in" && self.spaced && matches!(self.out.last(), Some((Token::Num(_), _)));
        let ends = || self.chars.get(self.at..).is_some_and(|rest| rest.iter().all(|c| matches!(c, ' ' | '.' | '}')));
        // `F_mL_n`: an index is one letter, and the next factor follows it.
        let index = matches!(self.out.last(), Some((Token::Ch('_'), _)));
        if !index && is_unit_word(run) || is_short_word(run) || inches && ends() {
            return self.push(Token::Word(run.to_owned()));
        }
        // `W(x)=1orW(x)=-1`, `sinx`: a known word grown together with a name.
        let after_value = matches!(self.out.last(), Some((Token::Num(_) | Token::Ch(')' | '}'), false)));
        for word in ["or", "and"] {
            if let Some(rest) = run.strip_prefix(word).filter(|rest| after_value && rest.len() <= 2) {
                self.push(Token::Cmd("sep"))?;
                return self.letter_run(rest);
            }
        }
        for word in ["sin", "cos", "tan", "cot", "sec", "csc", "ln", "log"] {
            if let Some(rest) = run.strip_prefix(word).filter(|rest| rest.chars().count() == 1) {
                self.push(Token::Func(Func::by_name(word).unwrap_or(Func::Sin)))?;
                return self.letter_run(rest);
            }
        }
        self.push(Token::Run(run.to_owned()))
    }

    fn backslash(&mut self) -> Read<()> {
        let next = self.peek(1);
        match next {
            None => {
                self.at += 1;
                Ok(())
            }
            Some('\\') => self.double_backslash(),
            Some(c) if c.is_ascii_alphabetic() => self.command(),
            Some(c) => {
                self.at += 2;
                match c {
                    '{' => self.push(Token::Cmd("lset")),
                    '}' => self.push(Token::Cmd("rset")),
                    '%' => self.push(Token::Cmd("percent")),
                    '$' => self.push(Token::Cmd("dollar")),
                    '|' => self.push(Token::Ch('|')),
                    '&' | '#' | '_' => self.push(Token::Ch(c)),
                    _ => {
                        self.spaced = true;
                        Ok(())
                    }
                }
            }
        }
    }

    fn double_backslash(&mut self) -> Read<()> {
        let rest: String =
            self.chars.iter().skip(self.at + 2).take(16).take_while(|c| c.is_ascii_alphabetic()).collect();
        let escaped =
            !self.single && (longest_prefix(&rest).is_some() || rest.starts_with("begin") || rest.starts_with("end"));
        if escaped || (!self.single && matches!(self.peek(2), Some('{' | '}' | '%' | '$' | ','))) {
            self.at += 1;
            return Ok(());
        }
        self.at += 2;
        if !self.single && self.peek(0) == Some('\\') && self.peek(1) == Some('\\') {
            self.at += 2;
        }
        // `\\[2pt]` is a row end with extra space.
        if self.peek(0) == Some('[') && self.environments > 0 {
            let close = self.chars.iter().skip(self.at).take(12).position(|c| *c == ']');
            let inner: String =
                self.chars.iter().skip(self.at + 1).take(close.unwrap_or(1).saturating_sub(1)).collect();
            if inner.ends_with("pt") || inner.ends_with("em") || inner.ends_with("ex") || inner.ends_with("mm") {
                self.at += inner.len() + 2;
            }
        }
        self.push(Token::Cmd("row"))
    }
}
