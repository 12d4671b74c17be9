//! Reads the structure of an answer: lists, relations, sets, intervals, ratios, quantities.

use std::ops::Range;

use super::expr::Expr;
use super::lex::lex;
use super::numeral::Options;
use super::token::{Spaced, Token};
use super::value::{Op, Value};
use super::{DEEPEST, Read, outward};
use crate::verdict::Reason;

/// Reads a cleaned answer.
pub(crate) fn read(text: &str, options: Options) -> Read<Value> {
    read_tokens(lex(text, options)?)
}

/// Reads the tokens of an answer.
pub(crate) fn read_tokens(tokens: Vec<Spaced>) -> Read<Value> {
    if tokens.is_empty() {
        return Ok(Value::Empty);
    }
    let reader = Reader::new(tokens)?;
    let all = 0..reader.tokens.len();
    match reader.list(all, 0) {
        Err(Reason::Notation) => reader.prose(0..reader.tokens.len()).ok_or(Reason::Notation),
        other => other,
    }
}

/// Tokens of an item in a list of words.
const LONGEST_WORDED: usize = 3;

pub(super) struct Reader {
    pub(super) tokens: Vec<Spaced>,
    /// Bracket depth before each token.
    pub(super) level: Vec<usize>,
    /// The matching bracket of each bracket.
    pub(super) partner: Vec<Option<usize>>,
}

impl Reader {
    fn new(mut tokens: Vec<Spaced>) -> Read<Self> {
        // `\left\{ .. \right.`: a brace that is never closed groups a system.
        let count = |tokens: &[Spaced], name: &str| tokens.iter().filter(|(token, _)| token.is_cmd(name)).count();
        if count(&tokens, "lset") == 1 && count(&tokens, "rset") == 0 {
            tokens.retain(|(token, _)| !token.is_cmd("lset"));
        }
        outward::turned(&mut tokens);
        let mut level = Vec::with_capacity(tokens.len());
        let mut partner = vec![None; tokens.len()];
        let mut open: Vec<usize> = Vec::new();
        for (at, (token, _)) in tokens.iter().enumerate() {
            match token.bracket() {
                Some(true) => {
                    level.push(open.len());
                    open.push(at);
                    if open.len() > DEEPEST {
                        return Err(Reason::TooDeep);
                    }
                }
                Some(false) => {
                    if let Some(start) = open.pop() {
                        partner[start] = Some(at);
                        partner[at] = Some(start);
                    }
                    level.push(open.len());
                }
                None => level.push(open.len()),
            }
        }
        Ok(Self { tokens, level, partner })
    }

    pub(super) fn token(&self, at: usize) -> &Token {
        &self.tokens[at].0
    }

    /// Places in the range that are outside of all brackets opened in it and satisfy the question.
    pub(super) fn outside<'a>(&'a self, range: &Range<usize>, question: impl Fn(&Token) -> bool + 'a) -> Vec<usize> {
        let base = self.level.get(range.start).copied().unwrap_or(0);
        range.clone().filter(|at| self.level[*at] == base && question(self.token(*at))).collect()
    }

    pub(super) fn split(range: &Range<usize>, cuts: &[usize]) -> Vec<Range<usize>> {
        let mut start = range.start;
        let mut parts = Vec::new();
        for cut in cuts.iter().copied().chain([range.end]) {
            if cut > start {
                parts.push(start..cut);
            }
            start = cut + 1;
        }
        parts
    }

    /// Items between commas, semicolons, line ends, "and" and "or".
    pub(super) fn list(&self, mut range: Range<usize>, depth: usize) -> Read<Value> {
        if depth > DEEPEST {
            return Err(Reason::TooDeep);
        }
        // "2x = 10 ⟹ x = 5": what follows from it is the answer.
        if let Some(cut) = self.outside(&range, |token| token.is_cmd("implies")).last().copied() {
            range.start = cut + 1;
        }
        // A condition on a parameter is no part of the value: "where k is an integer".
        let condition = |token: &Token| matches!(token, Token::Word(w) | Token::Run(w) if matches!(w.as_str(), "where" | "for" | "with"));
        if let Some(cut) = self.outside(&range, condition).first().copied()
            && cut > range.start
        {
            range.end = cut;
        }
        let groups = Self::split(&range, &self.outside(&range, |token| token.is(';') || token.is_cmd("row")));
        if groups.len() > 1 {
            let mut items = Vec::new();
            for group in groups {
                items.push(as_tuple(self.commas(group, depth)?));
            }
            return Ok(Value::List(flat(items), false));
        }
        match groups.into_iter().next() {
            Some(group) => self.commas(group, depth),
            None => Err(Reason::Notation),
        }
    }

    fn commas(&self, range: Range<usize>, depth: usize) -> Read<Value> {
        let parts = Self::split(&range, &self.outside(&range, |token| token.is(',') || token.is_cmd("sep")));
        let mut items = Vec::new();
        // "I and III", "red, blue": words beside one another are items, a sentence with a comma is none.
        let short = parts.len() > 1 && parts.iter().all(|part| part.len() <= LONGEST_WORDED);
        for part in parts {
            items.push(match self.item(part.clone(), depth) {
                Err(Reason::Notation) if short => self.prose(part).ok_or(Reason::Notation)?,
                other => other?,
            });
        }
        // "x = 2k pi, k in Z": the membership is a condition.
        if items.len() > 1 {
            items.retain(|item| !matches!(item.unnamed(), Value::NumberSet(_)));
        }
        let items = flat(items);
        match <[Value; 1]>::try_from(items) {
            Ok([only]) => Ok(only),
            Err(items) if items.is_empty() => Err(Reason::Notation),
            Err(items) => Ok(Value::List(items, false)),
        }
    }

    /// One item: a chain of relations, or one side alone.
    fn item(&self, range: Range<usize>, depth: usize) -> Read<Value> {
        Ok(self.coordinate(range, depth)?.expanded())
    }

    /// An item in which `\pm` still stands, since its two values belong to the whole tuple.
    pub(super) fn coordinate(&self, mut range: Range<usize>, depth: usize) -> Read<Value> {
        // "= 5", "≈ 5": the left side stood in the question.
        if !range.is_empty() && (self.token(range.start).is('=') || self.token(range.start).is_cmd("approx")) {
            range.start += 1;
        }
        let is_relation = |token: &Token| op_of(token).is_some() || token.is_cmd("in") || token.is_cmd("approx");
        let cuts = self.outside(&range, is_relation);
        if cuts.is_empty() {
            return self.side(range, depth);
        }
        let mut sides = Vec::new();
        let mut start = range.start;
        for cut in cuts.iter().copied().chain([range.end]) {
            if cut <= start {
                return Err(Reason::Notation);
            }
            sides.push(start..cut);
            start = cut + 1;
        }
        let is = |cut: &usize, name: &str| self.token(*cut).is_cmd(name);
        // "= 1/3 ≈ 0.33": what comes after the sign of approximation repeats the value.
        if let Some(approx) = cuts.iter().position(|cut| is(cut, "approx"))
            && (approx > 0 || self.label(&sides[0]).is_none())
        {
            return self.coordinate(range.start..cuts[approx], depth);
        }
        let equals = |cut: &usize| self.token(*cut).is('=') || is(cut, "approx") || is(cut, "in");
        if cuts.iter().all(equals) {
            let last = sides.len() - 1;
            if let Some(name) = self.label(&sides[0]) {
                let inner = match self.set_letter(&sides[last]).filter(|_| is(&cuts[last - 1], "in")) {
                    Some(set) => Value::NumberSet(set),
                    None => self.side(sides[last].clone(), depth)?,
                };
                return Ok(named(name, inner));
            }
            if sides.len() == 2
                && let Some(name) = self.label(&sides[1])
            {
                let inner = self.side(sides[0].clone(), depth)?;
                return Ok(named(name, inner));
            }
        }
        let constant = |value: &Value| !value.any_expr(&|part| matches!(part, Expr::Var(_) | Expr::Apply(..)));
        let values = match sides.iter().map(|side| self.side(side.clone(), depth)).collect::<Read<Vec<_>>>() {
            // "lim f(x) = 1": what cannot be read is what was asked for, if it is said to be a value.
            Err(Reason::Notation)
                if cuts.iter().all(|cut| self.token(*cut).is('=')) && self.is_operation(&sides[0]) =>
            {
                let value = self.side(sides[sides.len() - 1].clone(), depth)?;
                return if constant(&value) { Ok(named(String::new(), value)) } else { Err(Reason::Notation) };
            }
            other => other?,
        };
        let ops = cuts.iter().map(|cut| op_of(self.token(*cut)).unwrap_or(Op::Equal)).collect::<Vec<_>>();
        // "4^2 = 16" is a computation, and its value is what it ends with.
        if cuts.iter().all(equals) && values.iter().all(constant) {
            return values.into_iter().next_back().ok_or(Reason::Notation);
        }
        Ok(Value::Relation(values, ops))
    }
}

impl Reader {
    /// `n \in Z` as it is written without blackboard letters.
    fn set_letter(&self, range: &Range<usize>) -> Option<&'static str> {
        match self.token(range.start) {
            Token::Name(name) if range.len() == 1 && name == "Z" => Some("integers"),
            Token::Name(name) if range.len() == 1 && name == "N" => Some("naturals"),
            _ => None,
        }
    }

    /// Whether a range starts with an operation that is not carried out here: a limit, a sum, an integral.
    fn is_operation(&self, range: &Range<usize>) -> bool {
        const OPERATIONS: [&str; 6] = ["lim", "sum", "prod", "int", "iint", "det"];
        matches!(self.token(range.start), Token::Unknown(name) if OPERATIONS.contains(&name.as_str()))
    }
}

pub(super) fn op_of(token: &Token) -> Option<Op> {
    Some(match token {
        Token::Ch('=') => Op::Equal,
        Token::Ch('<') => Op::Less,
        Token::Ch('>') => Op::Greater,
        Token::Cmd("le") => Op::LessEqual,
        Token::Cmd("ge") => Op::GreaterEqual,
        Token::Cmd("ne") => Op::NotEqual,
        _ => return None,
    })
}

/// A name for each item of an expanded value.
fn named(name: String, value: Value) -> Value {
    match value.expanded() {
        Value::List(items, braced) => {
            Value::List(items.into_iter().map(|item| Value::Named(name.clone(), Box::new(item))).collect(), braced)
        }
        other => Value::Named(name, Box::new(other)),
    }
}

/// Lists within a list come from `\pm`; their items belong to the list.
fn flat(items: Vec<Value>) -> Vec<Value> {
    let mut out = Vec::new();
    for item in items {
        match item {
            Value::List(inner, false) => out.extend(inner),
            other => out.push(other),
        }
    }
    out
}

/// `p = 5, q = 2` as one solution among several.
fn as_tuple(group: Value) -> Value {
    match group {
        Value::List(items, false) if items.iter().all(|item| matches!(item, Value::Named(..))) => {
            Value::Bracket('(', items.iter().map(|item| item.unnamed().clone()).collect(), ')')
        }
        other => other,
    }
}
