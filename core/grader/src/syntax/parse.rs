//! Parses expressions: sums, products, powers. What stands for itself is in `primary`.

use num_traits::{One, Signed};

use super::expr::{Expr, Func};
use super::token::{Spaced, Token};
use super::{DEEPEST, DEEPEST_RULE, Read};
use crate::verdict::Reason;

/// Reads an expression off the front of a slice of tokens.
pub(super) struct Parser {
    tokens: Vec<Spaced>,
    at: usize,
    depth: usize,
    /// Open absolute-value bars: the next bar closes.
    pub(super) bars: usize,
}

/// Longest run of small letters that is read as a product of variables.
const LONGEST_PRODUCT: usize = 3;

impl Parser {
    pub(super) fn new(tokens: &[Spaced]) -> Self {
        let mut split = Vec::with_capacity(tokens.len());
        for (token, spaced) in tokens {
            match token {
                Token::Run(run) if is_product(run) => {
                    split.extend(run.chars().map(|c| (Token::Name(c.to_string()), false)));
                }
                _ => split.push((token.clone(), *spaced)),
            }
        }
        Self { tokens: split, at: 0, depth: 0, bars: 0 }
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(token, _)| token)
    }

    pub(super) fn next_is(&self, c: char) -> bool {
        self.peek().is_some_and(|token| token.is(c))
    }

    pub(super) fn take(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Takes the next token if it is this character.
    pub(super) fn accept(&mut self, c: char) -> bool {
        let found = self.next_is(c);
        self.at += usize::from(found);
        found
    }

    pub(super) fn accept_cmd(&mut self, name: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_cmd(name));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, c: char) -> Read<()> {
        if self.accept(c) { Ok(()) } else { Err(Reason::Notation) }
    }

    /// Puts a token in place of the next one.
    pub(super) fn replace(&mut self, token: Token) {
        if let Some(slot) = self.tokens.get_mut(self.at) {
            slot.0 = token;
        }
    }

    /// What was not read.
    pub(super) fn rest(&self) -> &[Spaced] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    /// Runs a rule one level deeper.
    pub(super) fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.depth += 1;
        if self.depth > DEEPEST_RULE {
            return Err(Reason::TooDeep);
        }
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// A sum of terms with their signs.
    pub(super) fn expression(&mut self) -> Read<Expr> {
        let mut terms = Vec::new();
        loop {
            let sign = self.sign();
            if sign.is_none() && !terms.is_empty() {
                break;
            }
            let term = self.term()?;
            terms.push(sign.unwrap_or(Sign::Plus).apply(term));
        }
        Ok(one_or(terms, Expr::Sum))
    }

    /// An expression, or two with `\over` or `\choose` between them.
    pub(super) fn stacked(&mut self) -> Read<Expr> {
        let above = self.expression()?;
        let fraction = self.accept_cmd("over");
        if !fraction && !self.accept_cmd("choose") {
            return Ok(above);
        }
        let below = self.expression()?;
        Ok(if fraction {
            Expr::Quotient(Box::new(above), Box::new(below))
        } else {
            Expr::Call(Func::Binomial, vec![above, below])
        })
    }

    /// A run of signs: `--` is plus.
    fn sign(&mut self) -> Option<Sign> {
        let mut found = None;
        loop {
            let next = match self.peek()? {
                Token::Ch('+') => Sign::Plus,
                Token::Ch('-') => Sign::Minus,
                Token::Cmd("pm") => Sign::PlusMinus,
                Token::Cmd("mp") => Sign::MinusPlus,
                _ => return found,
            };
            self.skip();
            found = Some(match (found, next) {
                (None | Some(Sign::Plus), next) => next,
                (Some(Sign::Minus), Sign::Minus) => Sign::Plus,
                (Some(sign), Sign::Plus) => sign,
                (Some(Sign::Minus), sign) => sign.swapped(),
                (Some(sign), _) => sign,
            });
        }
    }

    /// Factors joined by `*`, `/` or nothing. `a/b*c/d` is `(a c)/(b d)`.
    fn term(&mut self) -> Read<Expr> {
        let mut above = self.first_factors()?;
        let mut below = Vec::new();
        loop {
            if self.accept('*') {
                above.push(self.signed_factor()?);
            } else if self.next_is('/') && !matches!(self.peek_at(1), Some(Token::Word(_))) {
                self.skip();
                below.push(self.signed_factor()?);
            } else if self.starts_factor() && !(above.last().is_some_and(is_angle) && self.next_is_temperature()) {
                above.push(self.factor()?);
            } else {
                break;
            }
        }
        let above = one_or(above, Expr::Product);
        Ok(match below.len() {
            0 => above,
            _ => Expr::Quotient(Box::new(above), Box::new(one_or(below, Expr::Product))),
        })
    }

    fn signed_factor(&mut self) -> Read<Expr> {
        let sign = self.sign();
        let factor = self.factor()?;
        Ok(sign.unwrap_or(Sign::Plus).apply(factor))
    }

    /// `3\frac12` and `3 1/2` are sums; everything else is a factor. A fraction behind a numeral that is no part of a mixed
    /// number has been read by then: it comes as a second factor, since reading it again would double the work at each
    /// level of `3\frac{3\frac{..`.
    fn first_factors(&mut self) -> Read<Vec<Expr>> {
        let whole = match self.peek() {
            Some(Token::Num(number)) if number.places.is_none() && number.value.is_integer() => number.value.clone(),
            _ => return Ok(vec![self.factor()?]),
        };
        if let (Some(Token::Num(a)), Some(Token::Ch('/')), Some(Token::Num(b))) =
            (self.peek_at(1), self.peek_at(2), self.peek_at(3))
            && a.places.is_none()
            && b.places.is_none()
            && a.value < b.value
            && a.value.is_positive()
        {
            let part = Expr::Quotient(Box::new(Expr::Num(a.value.clone())), Box::new(Expr::Num(b.value.clone())));
            self.at += 4;
            return Ok(vec![self.postfix(Expr::Sum(vec![Expr::Num(whole), part]))?]);
        }
        let of_words = matches!(self.peek_at(3), Some(Token::Word(_)));
        if self.peek_at(1).is_some_and(|token| token.is_cmd("frac")) && !of_words && !whole.is_negative() {
            self.skip();
            let part = self.nested(Self::primary)?;
            if is_proper(&part) && (!self.next_is('^') || self.raises_sign()) {
                return Ok(vec![self.postfix(Expr::Sum(vec![Expr::Num(whole), part]))?]);
            }
            return Ok(vec![Expr::Num(whole), self.postfix(part)?]);
        }
        let factor = self.factor()?;
        // Two numerals side by side are no product.
        if matches!(factor, Expr::Num(_)) && matches!(self.peek(), Some(Token::Num(_) | Token::Based { .. })) {
            return Err(Reason::Notation);
        }
        Ok(vec![factor])
    }

    pub(super) fn starts_factor(&self) -> bool {
        match self.peek() {
            // `7 \text{ (units)}`
            Some(Token::Ch('(')) if matches!(self.peek_at(1), Some(Token::Word(_))) => false,
            Some(
                Token::Num(_)
                | Token::Based { .. }
                | Token::Name(_)
                | Token::Func(_)
                | Token::Begin(_)
                | Token::Ch('(' | '[' | '{'),
            ) => true,
            Some(Token::Ch('|')) => self.bars == 0,
            // `5 \frac{\text{m}}{\text{s}}`: a fraction of words is a unit.
            Some(Token::Cmd("frac")) => !matches!(self.peek_at(2), Some(Token::Word(_))),
            Some(Token::Cmd(name)) => {
                matches!(*name, "cbrt" | "binom" | "infty" | "overline" | "lbar" | "lfloor" | "lceil" | "dollar")
            }
            _ => false,
        }
    }

    /// A primary with powers, factorials, percent and degree signs behind it.
    pub(super) fn factor(&mut self) -> Read<Expr> {
        let base = self.nested(Self::primary)?;
        self.postfix(base)
    }

    /// Powers, factorials, percent and degree signs.
    fn postfix(&mut self, mut base: Expr) -> Read<Expr> {
        // `5!!!!` is bounded like nesting.
        for _ in 0..DEEPEST {
            match self.peek() {
                Some(Token::Ch('^')) => {
                    self.skip();
                    base = self.nested(|parser| parser.superscript(base))?;
                }
                Some(Token::Ch('!')) => {
                    self.skip();
                    // `5!!` is 5 * 3 * 1; what three signs mean is not agreed on.
                    base = match (self.accept('!'), self.next_is('!')) {
                        (true, true) => return Err(Reason::Notation),
                        (true, false) => double_factorial(base),
                        _ => Expr::Call(Func::Factorial, vec![base]),
                    };
                }
                Some(Token::Cmd("percent")) => {
                    self.skip();
                    base = Expr::Call(Func::Percent, vec![base]);
                }
                Some(Token::Cmd("degree")) => {
                    self.skip();
                    base = Expr::Call(Func::Degree, vec![base]);
                }
                _ => return Ok(base),
            }
        }
        Err(Reason::TooDeep)
    }

    /// Whether the `^` that comes next raises a degree sign.
    fn raises_sign(&self) -> bool {
        let braced = self.peek_at(1).is_some_and(|token| token.is('{'));
        self.peek_at(1 + usize::from(braced)).is_some_and(|token| token.is_cmd("circ") || token.is_cmd("degree"))
    }

    /// The letter of `10^\circ\text{C}`.
    fn next_is_temperature(&self) -> bool {
        matches!(self.peek(), Some(Token::Name(name)) if name == "C" || name == "F")
    }

    /// What follows a `^`: a degree sign, an ordinal ending, a prime or an exponent.
    fn superscript(&mut self, base: Expr) -> Read<Expr> {
        let braced = self.next_is('{');
        match self.peek_at(usize::from(braced)) {
            Some(Token::Cmd("circ" | "degree")) => {
                self.at += 1 + 2 * usize::from(braced);
                return Ok(Expr::Call(Func::Degree, vec![base]));
            }
            Some(Token::Word(word)) if matches!(word.as_str(), "st" | "nd" | "rd" | "th") => {
                self.at += 1 + 2 * usize::from(braced);
                return Ok(base);
            }
            _ => {}
        }
        let exponent = self.exponent()?;
        Ok(Expr::Power(Box::new(base), Box::new(exponent)))
    }

    /// An exponent: `{..}`, or one signed primary; a power of a power binds to the right.
    pub(super) fn exponent(&mut self) -> Read<Expr> {
        let sign = self.sign();
        let base = self.nested(Self::primary)?;
        let exponent = if self.accept('^') {
            let upper = self.nested(Self::exponent)?;
            Expr::Power(Box::new(base), Box::new(upper))
        } else {
            base
        };
        Ok(sign.unwrap_or(Sign::Plus).apply(exponent))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
    PlusMinus,
    MinusPlus,
}

impl Sign {
    fn swapped(self) -> Self {
        match self {
            Self::Plus => Self::Minus,
            Self::Minus => Self::Plus,
            Self::PlusMinus => Self::MinusPlus,
            Self::MinusPlus => Self::PlusMinus,
        }
    }

    fn apply(self, term: Expr) -> Expr {
        match self {
            Self::Plus => term,
            Self::Minus => term.negative(),
            Self::PlusMinus => Expr::PlusMinus(Box::new(term), true),
            Self::MinusPlus => Expr::PlusMinus(Box::new(term), false),
        }
    }
}

/// Whether a run of letters reads as a product: `xy`, `ABCD`, but not `blue`.
pub(super) fn is_product(run: &str) -> bool {
    run.chars().count() <= LONGEST_PRODUCT || run.chars().all(char::is_uppercase)
}

/// Largest number whose double factorial is written out.
const LARGEST_DOUBLE: i64 = 300;

/// The product of every second number down from a small one; an unknown function of anything else.
fn double_factorial(base: Expr) -> Expr {
    let small = (0..=LARGEST_DOUBLE).find(|n| base == Expr::int(*n));
    match small {
        Some(n) => Expr::Product([1, 1].into_iter().chain((2..=n).rev().step_by(2)).map(Expr::int).collect()),
        None => Expr::Apply("!!".to_owned(), vec![base]),
    }
}

fn is_angle(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(Func::Degree, _))
}

/// The only item, or the whole of several; 1 of none.
pub(super) fn one_or(mut items: Vec<Expr>, many: impl FnOnce(Vec<Expr>) -> Expr) -> Expr {
    match items.pop() {
        Some(only) if items.is_empty() => only,
        Some(last) => {
            items.push(last);
            many(items)
        }
        None => Expr::int(1),
    }
}

/// A fraction of two positive integers below one.
fn is_proper(part: &Expr) -> bool {
    match part {
        Expr::Quotient(a, b) => match (&**a, &**b) {
            (Expr::Num(a), Expr::Num(b)) => a.is_integer() && b.is_integer() && a.is_positive() && a < b && !b.is_one(),
            _ => false,
        },
        _ => false,
    }
}
