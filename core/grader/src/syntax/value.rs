//! Typed answers.

use super::expr::Expr;
use super::units::Unit;

/// Relations between the sides of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    NotEqual,
}

impl Op {
    /// The relation seen from the other side.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            other => other,
        }
    }
}

/// A number or expression with its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    pub(crate) expr: Expr,
    pub(crate) unit: Option<Unit>,
}

/// What an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Empty,
    Scalar(Quantity),
    /// `(a, b)`, `[a, b)`: a tuple, a point, a vector or an interval.
    Bracket(char, Vec<Value>, char),
    /// `\{a, b\}`
    Set(Vec<Value>),
    /// `a, b`; the flag says that plain braces stood around it.
    List(Vec<Value>, bool),
    Union(Vec<Value>),
    /// `a < b <= c`
    Relation(Vec<Value>, Vec<Op>),
    /// `x = value`, `x \in value`: a name for the value.
    Named(String, Box<Value>),
    /// `1:2`, `9:24`, with a clock unit.
    Ratio(Vec<Value>, Option<Unit>),
    /// `\mathbb{Z}` and the like.
    NumberSet(&'static str),
    /// An ellipsis in a list.
    Dots,
    /// Words, in small letters; the flag says that there was nothing but words and numbers.
    Text(String, bool),
}

impl Value {
    pub(crate) fn scalar(expr: Expr) -> Self {
        Self::Scalar(Quantity { expr, unit: None })
    }

    /// The value without the names it was given.
    pub(crate) fn unnamed(&self) -> &Self {
        let mut value = self;
        while let Self::Named(_, inner) = value {
            value = inner;
        }
        value
    }

    /// A copy in which every expression is replaced.
    pub(crate) fn map_exprs(&self, rule: &dyn Fn(&Expr) -> Expr) -> Self {
        let all = |items: &[Self]| items.iter().map(|item| item.map_exprs(rule)).collect::<Vec<_>>();
        match self {
            Self::Scalar(quantity) => {
                Self::Scalar(Quantity { expr: rule(&quantity.expr), unit: quantity.unit.clone() })
            }
            Self::Bracket(open, items, close) => Self::Bracket(*open, all(items), *close),
            Self::Set(items) => Self::Set(all(items)),
            Self::List(items, braced) => Self::List(all(items), *braced),
            Self::Union(items) => Self::Union(all(items)),
            Self::Relation(sides, ops) => Self::Relation(all(sides), ops.clone()),
            Self::Named(name, inner) => Self::Named(name.clone(), Box::new(inner.map_exprs(rule))),
            Self::Ratio(items, unit) => Self::Ratio(all(items), unit.clone()),
            other => other.clone(),
        }
    }

    /// Whether any expression in the value satisfies the question.
    pub(crate) fn any_expr(&self, question: &dyn Fn(&Expr) -> bool) -> bool {
        match self {
            Self::Scalar(quantity) => quantity.expr.any(question),
            Self::Bracket(_, items, _)
            | Self::Set(items)
            | Self::List(items, _)
            | Self::Union(items)
            | Self::Relation(items, _)
            | Self::Ratio(items, _) => items.iter().any(|item| item.any_expr(question)),
            Self::Named(_, inner) => inner.any_expr(question),
            _ => false,
        }
    }

    /// Replaces `\pm` by the two values it stands for.
    pub(crate) fn expanded(self) -> Self {
        if !self.any_expr(&|part| matches!(part, Expr::PlusMinus(..))) {
            return self;
        }
        let signed = |upper: bool| {
            self.map_exprs(&|expr| {
                expr.map(&|part| match part {
                    Expr::PlusMinus(inner, plus) if plus == upper => *inner,
                    Expr::PlusMinus(inner, _) => inner.negative(),
                    other => other,
                })
            })
        };
        Self::List(vec![signed(true), signed(false)], false)
    }
}
