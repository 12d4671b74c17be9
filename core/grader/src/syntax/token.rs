//! What the lexer hands to the parser.

use num_rational::BigRational;

use super::expr::Func;

/// A number as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) value: BigRational,
    /// Decimal places shown; `None` for an integer and for repeating decimals, which are exact.
    pub(crate) places: Option<u32>,
    /// The digits as written, for `\frac12`.
    pub(crate) digits: String,
    /// Whether plain commas were taken as thousands separators: `1,234` may also be a list.
    pub(crate) commas: bool,
}

/// A token, and whether space stood before it.
pub(crate) type Spaced = (Token, bool);

/// Kinds of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Num(Number),
    /// A numeral with a base subscript, such as `2516_9`.
    Based {
        digits: String,
        base: u32,
        value: BigRational,
    },
    /// One variable.
    Name(String),
    /// Several letters without a known meaning in a formula: a product or a word.
    Run(String),
    /// A word of prose or a unit.
    Word(String),
    /// A function name.
    Func(Func),
    /// An operator, bracket or punctuation mark.
    Ch(char),
    /// Anything else with a fixed meaning.
    Cmd(&'static str),
    /// Start or end of an environment.
    Begin(String),
    End(String),
    /// A command that is not in the table.
    Unknown(String),
}

impl Token {
    pub(crate) fn is(&self, c: char) -> bool {
        *self == Self::Ch(c)
    }

    pub(crate) fn is_cmd(&self, name: &str) -> bool {
        matches!(self, Self::Cmd(cmd) if *cmd == name)
    }

    /// `Some(true)` for an opening bracket, `Some(false)` for a closing one. Bars are neither.
    pub(crate) fn bracket(&self) -> Option<bool> {
        match self {
            Self::Ch('(' | '[' | '{') | Self::Cmd("lset" | "lfloor" | "lceil" | "lbar" | "langle") | Self::Begin(_) => {
                Some(true)
            }
            Self::Ch(')' | ']' | '}') | Self::Cmd("rset" | "rfloor" | "rceil" | "rbar" | "rangle") | Self::End(_) => {
                Some(false)
            }
            _ => None,
        }
    }

    /// The token as text, for comparing words.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Num(number) => number.value.to_string(),
            Self::Based { digits, base, .. } => format!("{digits}_{base}"),
            Self::Name(text)
            | Self::Run(text)
            | Self::Word(text)
            | Self::Unknown(text)
            | Self::Begin(text)
            | Self::End(text) => text.clone(),
            Self::Func(func) => func.name().to_owned(),
            Self::Ch(c) => c.to_string(),
            Self::Cmd(name) => (*name).to_owned(),
        }
    }
}
