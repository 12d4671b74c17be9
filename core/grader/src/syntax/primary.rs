//! Parses what stands for itself: numbers, names, brackets, fractions, roots, functions, matrices.

use super::Read;
use super::expr::{Constant, Expr, Func};
use super::parse::{Parser, one_or};
use super::token::{Number, Token};
use crate::verdict::Reason;

impl Parser {
    pub(super) fn primary(&mut self) -> Read<Expr> {
        let token = self.take().ok_or(Reason::Notation)?;
        match token {
            Token::Num(number) => Ok(from_number(&number)),
            Token::Based { digits, base, value } => Ok(Expr::Based(digits, base, value)),
            Token::Name(name) => self.name(name),
            Token::Func(func) => self.call(func),
            Token::Ch('(') => self.bracketed(')'),
            Token::Ch('[') => self.bracketed(']'),
            Token::Ch('{') => self.bracketed('}'),
            Token::Ch('|') => self.bars(),
            Token::Cmd("lbar") => self.closed_by("rbar", Func::Abs),
            Token::Cmd("lfloor") => self.closed_by("rfloor", Func::Floor),
            Token::Cmd("lceil") => self.closed_by("rceil", Func::Ceil),
            Token::Cmd("infty") => Ok(Expr::Const(Constant::Infinity)),
            Token::Cmd("dollar") => self.primary_after_money(),
            Token::Cmd("frac") => {
                let above = self.argument()?;
                let below = self.argument()?;
                Ok(Expr::Quotient(Box::new(above), Box::new(below)))
            }
            Token::Cmd("binom") => {
                let n = self.argument()?;
                let k = self.argument()?;
                Ok(Expr::Call(Func::Binomial, vec![n, k]))
            }
            Token::Cmd("cbrt") => {
                let inner = self.nested(Self::primary)?;
                Ok(Expr::Call(Func::Root, vec![inner, Expr::int(3)]))
            }
            Token::Cmd("overline") => self.overline(),
            Token::Begin(kind) => self.matrix(&kind),
            _ => Err(Reason::Notation),
        }
    }

    fn primary_after_money(&mut self) -> Read<Expr> {
        // The sign itself is kept as the unit by the reader of quantities.
        self.nested(Self::primary)
    }

    fn bracketed(&mut self, close: char) -> Read<Expr> {
        let bars = std::mem::take(&mut self.bars);
        let inner = self.nested(if close == '}' { Self::stacked } else { Self::expression })?;
        self.bars = bars;
        self.expect(close)?;
        Ok(inner)
    }

    fn bars(&mut self) -> Read<Expr> {
        self.bars += 1;
        let inner = self.nested(Self::expression)?;
        self.bars -= 1;
        self.expect('|')?;
        Ok(Expr::Call(Func::Abs, vec![inner]))
    }

    fn closed_by(&mut self, close: &str, func: Func) -> Read<Expr> {
        let bars = std::mem::take(&mut self.bars);
        let inner = self.nested(Self::expression)?;
        self.bars = bars;
        if self.accept_cmd(close) { Ok(Expr::Call(func, vec![inner])) } else { Err(Reason::Notation) }
    }

    /// A constant, a variable with its subscript and primes, or a function that only has a name.
    fn name(&mut self, mut name: String) -> Read<Expr> {
        if self.accept('_') {
            let index = self.index()?;
            name = format!("{name}_{index}");
        } else {
            match name.as_str() {
                "pi" => return Ok(Expr::Const(Constant::Pi)),
                "e" => return Ok(Expr::Const(Constant::E)),
                "i" => return Ok(Expr::Const(Constant::I)),
                _ => {}
            }
        }
        while self.accept('\'') {
            name.push('\'');
        }
        let is_function = matches!(name.trim_end_matches('\'').split('_').next(), Some("f" | "g" | "h" | "F" | "G"));
        if is_function && self.next_is('(') {
            self.skip();
            let arguments = self.nested(Self::arguments)?;
            return Ok(Expr::Apply(name, arguments));
        }
        Ok(Expr::Var(name))
    }

    /// The text of a subscript.
    fn index(&mut self) -> Read<String> {
        if !self.accept('{') {
            return self.take().map(|token| token.text()).ok_or(Reason::Notation);
        }
        let mut text = String::new();
        for _ in 0..16 {
            match self.take() {
                Some(Token::Ch('}')) => return Ok(text),
                Some(token) => text.push_str(&token.text()),
                None => break,
            }
        }
        Err(Reason::Notation)
    }

    /// Items between commas up to the closing bracket, which is taken.
    fn arguments(&mut self) -> Read<Vec<Expr>> {
        let items = self.items()?;
        self.expect(')')?;
        Ok(items)
    }

    /// As [`Self::arguments`], for `\max\{2, 5\}`.
    fn set_arguments(&mut self) -> Read<Vec<Expr>> {
        let items = self.items()?;
        if self.accept_cmd("rset") { Ok(items) } else { Err(Reason::Notation) }
    }

    fn items(&mut self) -> Read<Vec<Expr>> {
        let bars = std::mem::take(&mut self.bars);
        let mut items = vec![self.expression()?];
        while self.accept(',') {
            items.push(self.expression()?);
        }
        self.bars = bars;
        Ok(items)
    }

    /// An argument of `\frac` and the like: a group, or one digit of a numeral, or one primary.
    fn argument(&mut self) -> Read<Expr> {
        if let Some(Token::Num(number)) = self.peek()
            && number.digits.len() > 1
            && number.places.is_none()
            && !number.commas
        {
            let (first, rest) = (number.digits[..1].to_owned(), number.digits[1..].to_owned());
            let as_number = |digits: &str| digits.parse().ok().map(num_rational::BigRational::from_integer);
            let (Some(first), Some(value)) = (as_number(&first), as_number(&rest)) else {
                return Err(Reason::Notation);
            };
            self.replace(Token::Num(Number { value, places: None, digits: rest, commas: false }));
            return Ok(Expr::Num(first));
        }
        self.nested(Self::primary)
    }

    fn call(&mut self, func: Func) -> Read<Expr> {
        if func == Func::Root {
            let degree = if self.accept('[') {
                let degree = self.nested(Self::expression)?;
                self.expect(']')?;
                degree
            } else {
                Expr::int(2)
            };
            return Ok(Expr::Call(Func::Root, vec![self.nested(Self::primary)?, degree]));
        }
        let mut base = None;
        let mut power = None;
        for _ in 0..2 {
            if func == Func::Log && self.accept('_') {
                base = Some(self.nested(Self::exponent)?);
            } else if self.accept('^') {
                power = Some(self.nested(Self::exponent)?);
            }
        }
        let mut arguments = if self.accept('(') {
            self.nested(Self::arguments)?
        } else if matches!(func, Func::Min | Func::Max | Func::Gcd | Func::Lcm) && self.accept_cmd("lset") {
            self.nested(Self::set_arguments)?
        } else {
            vec![self.nested(Self::bare_argument)?]
        };
        let func = match &power {
            // sin^{-1} is the arc sine.
            Some(exponent) if *exponent == Expr::int(-1) => {
                power = None;
                match func {
                    Func::Sin => Func::Arcsin,
                    Func::Cos => Func::Arccos,
                    Func::Tan => Func::Arctan,
                    _ => return Err(Reason::Notation),
                }
            }
            _ => func,
        };
        match func {
            Func::Log => arguments.push(base.unwrap_or_else(|| Expr::int(10))),
            Func::Binomial if arguments.len() != 2 => return Err(Reason::Notation),
            Func::Gcd | Func::Lcm | Func::Min | Func::Max | Func::Binomial => {}
            _ if arguments.len() != 1 => return Err(Reason::Notation),
            _ => {}
        }
        let value = Expr::Call(func, arguments);
        Ok(match power {
            Some(exponent) => Expr::Power(Box::new(value), Box::new(exponent)),
            None => value,
        })
    }

    /// The argument of a function without brackets: factors up to the next function, bracket or operator.
    fn bare_argument(&mut self) -> Read<Expr> {
        let negative = self.accept('-');
        let mut factors = vec![self.factor()?];
        while self.starts_factor()
            && !matches!(self.peek(), Some(Token::Func(f)) if *f != Func::Root)
            && !self.next_is('(')
        {
            factors.push(self.factor()?);
        }
        let argument = one_or(factors, Expr::Product);
        Ok(if negative { argument.negative() } else { argument })
    }

    /// A line over something makes a name of it: `\overline{AB}`.
    fn overline(&mut self) -> Read<Expr> {
        self.expect('{')?;
        let mut text = String::from("overline ");
        for _ in 0..16 {
            match self.take() {
                Some(Token::Ch('}')) => return Ok(Expr::Var(text)),
                Some(token) => text.push_str(&token.text()),
                None => break,
            }
        }
        Err(Reason::Notation)
    }

    fn matrix(&mut self, kind: &str) -> Read<Expr> {
        if !matches!(kind, "pmatrix" | "bmatrix" | "matrix" | "smallmatrix" | "array" | "Bmatrix") {
            return Err(Reason::Notation);
        }
        let bars = std::mem::take(&mut self.bars);
        let mut rows = vec![Vec::new()];
        loop {
            if matches!(self.peek(), Some(Token::End(_))) {
                self.skip();
                break;
            }
            if self.accept_cmd("row") {
                rows.push(Vec::new());
                continue;
            }
            let cell = self.nested(Self::expression)?;
            if let Some(row) = rows.last_mut() {
                row.push(cell);
            }
            self.accept('&');
        }
        self.bars = bars;
        rows.retain(|row| !row.is_empty());
        let width = rows.first().map_or(0, Vec::len);
        if width == 0 || rows.iter().any(|row| row.len() != width) {
            Err(Reason::Notation)
        } else {
            Ok(Expr::Matrix(rows))
        }
    }
}

fn from_number(number: &Number) -> Expr {
    match number.places {
        Some(places) => Expr::Decimal(number.value.clone(), places),
        None => Expr::Num(number.value.clone()),
    }
}
