//! The part of the lexer that carries out commands: fonts, prose, environments, bracket sizes.

use super::commands::{Action, action, longest_prefix};
use super::expr::Func;
use super::lex::Lexer;
use super::numeral::numeral;
use super::token::Token;
use super::{DEEPEST, Read};
use crate::verdict::Reason;

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
            Some(Action::Text) => {
                let text = self.argument_text();
                self.prose(&text)
            }
            Some(Action::Roman) => {
                let text = self.argument_text();
                let trimmed = text.trim();
                if let Some(func) = Func::by_name(trimmed) {
                    return self.push(Token::Func(func));
                }
                self.prose(&text)
            }
            Some(Action::Ch(c)) => self.push(Token::Ch(c)),
            Some(Action::Cmd("bb")) => {
                let set = self.argument_text();
                self.push(match set.trim() {
                    "R" => Token::Cmd("reals"),
                    "Z" => Token::Cmd("integers"),
                    "N" => Token::Cmd("naturals"),
                    "Q" => Token::Cmd("rationals"),
                    "C" => Token::Cmd("complexes"),
                    other => Token::Name(other.to_owned()),
                })
            }
            Some(Action::Cmd(name)) => self.push(Token::Cmd(name)),
            Some(Action::Name(name)) => self.push(Token::Name(name.to_owned())),
            Some(Action::Func(func)) => self.push(Token::Func(func)),
            Some(Action::Word(word)) => self.push(Token::Word(word.to_owned())),
        }
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
                self.push(Token::Cmd(if size.ends_with('t') && size == "right" || size.ends_with('r') {
                    "rbar"
                } else {
                    "lbar"
                }))
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
