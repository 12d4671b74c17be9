//! Expressions.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

/// Named functions with a fixed meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Func {
    Sin,
    Cos,
    Tan,
    Cot,
    Sec,
    Csc,
    Arcsin,
    Arccos,
    Arctan,
    Sinh,
    Cosh,
    Tanh,
    /// `cos x + i sin x`.
    Cis,
    Exp,
    Ln,
    /// Logarithm: argument and base.
    Log,
    /// Root: argument and degree.
    Root,
    Abs,
    Floor,
    Ceil,
    Factorial,
    Binomial,
    Gcd,
    Lcm,
    Min,
    Max,
    /// Degrees of an angle.
    Degree,
    Percent,
}

impl Func {
    const NAMED: [(&'static str, Self); 34] = [
        ("sin", Self::Sin),
        ("cos", Self::Cos),
        ("tan", Self::Tan),
        ("cot", Self::Cot),
        ("sec", Self::Sec),
        ("csc", Self::Csc),
        ("arcsin", Self::Arcsin),
        ("arccos", Self::Arccos),
        ("arctan", Self::Arctan),
        ("asin", Self::Arcsin),
        ("acos", Self::Arccos),
        ("atan", Self::Arctan),
        ("sinh", Self::Sinh),
        ("cosh", Self::Cosh),
        ("tanh", Self::Tanh),
        ("tg", Self::Tan),
        ("ctg", Self::Cot),
        ("arctg", Self::Arctan),
        ("cis", Self::Cis),
        ("exp", Self::Exp),
        ("ln", Self::Ln),
        ("log", Self::Log),
        ("lg", Self::Log),
        ("sqrt", Self::Root),
        ("cbrt", Self::Root),
        ("abs", Self::Abs),
        ("floor", Self::Floor),
        ("ceil", Self::Ceil),
        ("binom", Self::Binomial),
        ("gcd", Self::Gcd),
        ("lcm", Self::Lcm),
        ("min", Self::Min),
        ("max", Self::Max),
        ("factorial", Self::Factorial),
    ];

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, func)| *func)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Degree => "degree",
            Self::Percent => "percent",
            _ => Self::NAMED.iter().find(|(_, func)| *func == self).map_or("?", |(name, _)| *name),
        }
    }
}

/// Named numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    Pi,
    E,
    I,
    Infinity,
}

/// An expression. Sums and products are flat, so that depth follows the brackets of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Num(BigRational),
    /// A decimal with the places it shows.
    Decimal(BigRational, u32),
    /// A numeral in a base: digits, base, value.
    Based(String, u32, BigRational),
    Const(Constant),
    Var(String),
    Neg(Box<Expr>),
    Sum(Vec<Expr>),
    Product(Vec<Expr>),
    Quotient(Box<Expr>, Box<Expr>),
    Power(Box<Expr>, Box<Expr>),
    Call(Func, Vec<Expr>),
    /// A function that only has a name.
    Apply(String, Vec<Expr>),
    /// `±x`, or `∓x` if not set.
    PlusMinus(Box<Expr>, bool),
    Matrix(Vec<Vec<Expr>>),
}

impl Expr {
    pub(crate) fn int(value: i64) -> Self {
        Self::Num(BigRational::from_integer(BigInt::from(value)))
    }

    /// The negative, folded into a plain number.
    pub(crate) fn negative(self) -> Self {
        match self {
            Self::Num(value) => Self::Num(-value),
            Self::Decimal(value, places) if !value.is_zero() => Self::Decimal(-value, places),
            Self::Neg(inner) => *inner,
            other => Self::Neg(Box::new(other)),
        }
    }

    /// The parts of an expression, for walks over it.
    pub(crate) fn children(&self) -> Vec<&Self> {
        match self {
            Self::Num(_) | Self::Decimal(..) | Self::Based(..) | Self::Const(_) | Self::Var(_) => Vec::new(),
            Self::Neg(x) | Self::PlusMinus(x, _) => vec![x],
            Self::Quotient(a, b) | Self::Power(a, b) => vec![a, b],
            Self::Sum(items) | Self::Product(items) | Self::Call(_, items) | Self::Apply(_, items) => {
                items.iter().collect()
            }
            Self::Matrix(rows) => rows.iter().flatten().collect(),
        }
    }

    /// Whether any part satisfies the question.
    pub(crate) fn any(&self, question: &dyn Fn(&Self) -> bool) -> bool {
        question(self) || self.children().into_iter().any(|child| child.any(question))
    }

    /// How many parts satisfy the question.
    pub(crate) fn count(&self, question: &dyn Fn(&Self) -> bool) -> usize {
        usize::from(question(self)) + self.children().into_iter().map(|child| child.count(question)).sum::<usize>()
    }

    /// A copy in which each part is replaced where the rule has something to say; children first.
    pub(crate) fn map(&self, rule: &dyn Fn(Self) -> Self) -> Self {
        let one = |x: &Self| Box::new(x.map(rule));
        let all = |items: &[Self]| items.iter().map(|x| x.map(rule)).collect::<Vec<_>>();
        rule(match self {
            Self::Neg(x) => Self::Neg(one(x)),
            Self::PlusMinus(x, plus) => Self::PlusMinus(one(x), *plus),
            Self::Quotient(a, b) => Self::Quotient(one(a), one(b)),
            Self::Power(a, b) => Self::Power(one(a), one(b)),
            Self::Sum(items) => Self::Sum(all(items)),
            Self::Product(items) => Self::Product(all(items)),
            Self::Call(func, items) => Self::Call(*func, all(items)),
            Self::Apply(name, items) => Self::Apply(name.clone(), all(items)),
            Self::Matrix(rows) => Self::Matrix(rows.iter().map(|row| all(row)).collect()),
            leaf => leaf.clone(),
        })
    }

    pub(crate) fn has_variables(&self) -> bool {
        self.any(&|part| matches!(part, Self::Var(_) | Self::Apply(..)))
    }
}
