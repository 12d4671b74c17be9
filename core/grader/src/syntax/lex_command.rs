//! The part of the lexer that carries out commands: fonts, prose, environments, bracket sizes.

use super::commands::{Action, action, longest_prefix};
use super::expr::Func;
use super::lex::Lexer;
use super::numeral::{based, numeral};
use super::token::Token;
use super::units::{is_unit_symbol, is_unit_word};
use super::words::is_approximation;
use super::{DEEPEST, Read};
use crate::verdict::Reason;

/// Characters of a base subscript at most: `_{ 16 }`.
const LONGEST_BASE: usize = 8;

/// Sets of numbers by their letters.
fn number_set(letter: &str) -> Option<&'static str> {
    Some(match letter {
        "R" => "reals",
        "Z" => "integers",
        "N" => "naturals",
        "Q" => "rationals",
        "C" => "complexes",
        _ => return None,
    })
}

impl Lexer {
    pub(super) fn command(&mut self) -> Read<()> {
        let letters: String =
            self.chars.iter().skip(self.at + 1).take(64).take_while(|c| c.is_ascii_alphabetic()).collect();
        self.at += 1 + letters.len();
        if letters == "begin" || letters == "end" {
            let name = self.argument_text().trim_end_matches('*').to_owned();
            return self.environment(letters == "begin", name);
        }
        let found = action(&letters).or_else(|| {
            let (len, found) = longest_prefix(&letters)?;
            self.at -= letters.len() - len;
            Some(found)
        });
        match found {
            None => self.push(Token::Unknown(letters)),
            Some(Action::Skip) => {
                self.spaced = true;
                Ok(())
            }
            Some(Action::SkipArgument) => {
                self.argument_text();
                Ok(())
            }
            Some(Action::Size) => self.sized(&letters),
            Some(Action::Bold) => self.bold(),
            Some(kind @ (Action::Text | Action::Roman)) => {
                let text = self.argument_text();
                let trimmed = text.trim();
                // `5\text{ min}` is a time.
                let is_function = kind == Action::Roman || !is_unit_word(trimmed);
                if let Some(func) = Func::by_name(trimmed).filter(|_| is_function) {
                    return self.push(Token::Func(func));
                }
                match self.based(&text) {
                    Some(token) => self.push(token),
                    None => self.prose(&text),
                }
            }
            Some(Action::Ch(c)) => self.push(Token::Ch(c)),
            Some(Action::Cmd("bb")) => {
                let set = self.argument_text();
                self.push(number_set(set.trim()).map_or_else(|| Token::Name(set.trim().to_owned()), Token::Cmd))
            }
            Some(Action::Cmd(name)) => self.push(Token::Cmd(name)),
            Some(Action::Name(name)) => self.push(Token::Name(name.to_owned())),
            Some(Action::Func(func)) => self.push(Token::Func(func)),
            Some(Action::Word(word)) => self.push(Token::Word(word.to_owned())),
        }
    }

    /// `\mathbf{R}` is a set of numbers; other bold letters are letters. A bold C is rather a choice.
    fn bold(&mut self) -> Read<()> {
        if let Some(['{', letter @ ('R' | 'Z' | 'N' | 'Q'), '}']) = self.chars.get(self.at..self.at + 3)
            && let Some(set) = number_set(&letter.to_string())
        {
            self.at += 3;
            return self.push(Token::Cmd(set));
        }
        self.spaced = true;
        Ok(())
    }

    /// The digits of a numeral whose base follows them: `\text{BEEF}_{16}`.
    fn based(&mut self, text: &str) -> Option<Token> {
        let digits = text.trim();
        if digits.len() < 2 || self.peek(0) != Some('_') {
            return None;
        }
        let tail = self.chars.iter().skip(self.at).take(LONGEST_BASE);
        let chars: Vec<char> = digits.chars().chain(tail.copied()).collect();
        let (token, length) = based(&chars, 0)?;
        self.at += length.checked_sub(digits.len())?;
        Some(token)
    }

    fn environment(&mut self, begin: bool, name: String) -> Read<()> {
        match name.as_str() {
            // Containers of formulas say nothing.
            "align" | "aligned" | "equation" | "gather" | "gathered" | "split" | "displaymath" | "math" => Ok(()),
            _ if begin => {
                if name == "array" {
                    self.argument_text();
                }
                self.push(Token::Begin(name))
            }
            _ => self.push(Token::End(name)),
        }
    }

    /// A bracket with its size: bars get a direction, a full stop is no bracket.
    fn sized(&mut self, size: &str) -> Read<()> {
        while self.peek(0) == Some(' ') {
            self.at += 1;
        }
        match self.peek(0) {
            Some('.') => {
                self.at += 1;
                Ok(())
            }
            Some('|') if size != "middle" => {
                self.at += 1;
                self.push(Token::Cmd(if size == "right" || size.ends_with('r') { "rbar" } else { "lbar" }))
            }
            Some('\\') if self.peek(1) == Some('|') => {
                self.at += 2;
                self.push(Token::Ch('|'))
            }
            Some('<') => {
                self.at += 1;
                self.push(Token::Cmd("langle"))
            }
            Some('>') => {
                self.at += 1;
                self.push(Token::Cmd("rangle"))
            }
            _ => Ok(()),
        }
    }

    /// The raw text of a braced argument, or of the next character or command.
    fn argument_text(&mut self) -> String {
        while self.peek(0) == Some(' ') {
            self.at += 1;
        }
        let start = self.at;
        if self.peek(0) != Some('{') {
            let len = if self.peek(0) == Some('\\') { 2 } else { 1 };
            self.at = (start + len).min(self.chars.len());
            return self.chars[start..self.at].iter().collect();
        }
        let mut depth = 0usize;
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => self.at += 1,
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        self.at = self.at.min(self.chars.len());
        let end = if depth == 0 { self.at - 1 } else { self.at };
        self.chars[start + 1..end.max(start + 1)].iter().collect()
    }

    /// Whether a number, or what can end one, was read last.
    fn after_value(&self) -> bool {
        match self.out.last() {
            Some((Token::Num(_) | Token::Ch('}' | ')'), _)) => true,
            Some((Token::Name(name), _)) => name == "pi",
            _ => false,
        }
    }

    /// The inside of `\text{..}`: words stay words, the rest is read as usual.
    fn prose(&mut self, text: &str) -> Read<()> {
        if self.environments > DEEPEST {
            return Err(Reason::TooDeep);
        }
        let text = text.replace("sq.", "sq ");
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        self.spaced = true;
        while let Some(&c) = chars.get(at) {
            if c.is_alphabetic() {
                let start = at;
                while chars.get(at).is_some_and(|c| {
                    c.is_alphabetic() || matches!(c, '\'' | '-') && chars.get(at + 1).is_some_and(|c| c.is_alphabetic())
                }) {
                    at += 1;
                }
                let word: String = chars[start..at].iter().collect();
                self.push(match word.as_str() {
                    "and" | "or" => Token::Cmd("sep"),
                    _ if is_approximation(&word) => Token::Cmd("approx"),
                    symbol if self.after_value() && is_unit_symbol(symbol) => Token::Word(word),
                    _ if at - start == 1 && word != "m" && word != "s" && word != "g" && word != "h" && word != "L" => {
                        Token::Name(word)
                    }
                    _ => Token::Word(word),
                })?;
            } else if c.is_ascii_digit() {
                let (token, len) = numeral(&chars, at, self.options, self.inside > 0).ok_or(Reason::TooLong)?;
                at += len;
                self.push(token)?;
            } else {
                at += 1;
                match c {
                    '(' | ')' | ',' | ':' | ';' | '/' | '-' | '+' | '=' | '^' | '[' | ']' | '<' | '>' => {
                        self.push(Token::Ch(c))?;
                    }
                    '%' => self.push(Token::Cmd("percent"))?,
                    _ => self.spaced = true,
                }
            }
        }
        self.spaced = true;
        Ok(())
    }
}
