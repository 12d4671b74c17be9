//! The LaTeX commands that are understood, and what the lexer does with each.

use super::expr::Func;

/// What a command stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing, or space.
    Skip,
    /// Nothing, together with its argument.
    SkipArgument,
    /// A bracket size: the next token is a plain bracket, and a full stop is none.
    Size,
    /// The argument is prose.
    Text,
    /// The argument is prose or a name in another letter shape.
    Roman,
    /// Nothing, but a set of numbers may be written so: `\mathbf{R}`.
    Bold,
    /// A character.
    Ch(char),
    /// A fixed meaning of its own.
    Cmd(&'static str),
    /// A variable or constant.
    Name(&'static str),
    /// A function.
    Func(Func),
    /// A word.
    Word(&'static str),
}

use Action::{Bold, Ch, Cmd, Name, Roman, Size, Skip, SkipArgument, Text, Word};

const TABLE: &[(&str, Action)] = &[
    // Layout
    ("left", Size),
    ("right", Size),
    ("middle", Size),
    ("big", Size),
    ("Big", Size),
    ("bigg", Size),
    ("Bigg", Size),
    ("bigl", Size),
    ("bigr", Size),
    ("Bigl", Size),
    ("Bigr", Size),
    ("biggl", Size),
    ("biggr", Size),
    ("displaystyle", Skip),
    ("textstyle", Skip),
    ("limits", Skip),
    ("nolimits", Skip),
    ("quad", Skip),
    ("qquad", Skip),
    ("hfill", Skip),
    ("hline", Skip),
    ("thinspace", Skip),
    ("enspace", Skip),
    ("boldsymbol", Skip),
    ("bm", Skip),
    ("mathbf", Bold),
    ("mathit", Skip),
    ("mathsf", Skip),
    ("mathcal", Skip),
    ("mathopen", Skip),
    ("mathclose", Skip),
    ("ensuremath", Skip),
    ("underline", Skip),
    ("vec", Skip),
    ("overrightarrow", Skip),
    ("hat", Skip),
    ("phantom", SkipArgument),
    ("hphantom", SkipArgument),
    ("vphantom", SkipArgument),
    ("hspace", SkipArgument),
    ("vspace", SkipArgument),
    ("color", SkipArgument),
    ("textcolor", SkipArgument),
    ("tag", SkipArgument),
    ("label", SkipArgument),
    // Prose
    ("text", Text),
    ("textbf", Text),
    ("textit", Text),
    ("textrm", Text),
    ("textsf", Text),
    ("texttt", Text),
    ("textnormal", Text),
    ("mbox", Text),
    ("hbox", Text),
    ("emph", Text),
    ("mathrm", Roman),
    ("mathop", Roman),
    ("operatorname", Roman),
    ("rm", Skip),
    ("bf", Skip),
    ("mathbb", Cmd("bb")),
    ("Bbb", Cmd("bb")),
    ("R", Cmd("reals")),
    ("reals", Cmd("reals")),
    // Operators and relations
    ("cdot", Ch('*')),
    ("times", Ch('*')),
    ("ast", Ch('*')),
    ("star", Ch('*')),
    ("bullet", Ch('*')),
    ("div", Ch('/')),
    ("slash", Ch('/')),
    ("pm", Cmd("pm")),
    ("mp", Cmd("mp")),
    ("le", Cmd("le")),
    ("leq", Cmd("le")),
    ("leqslant", Cmd("le")),
    ("leqq", Cmd("le")),
    ("ge", Cmd("ge")),
    ("geq", Cmd("ge")),
    ("geqslant", Cmd("ge")),
    ("geqq", Cmd("ge")),
    ("lt", Ch('<')),
    ("gt", Ch('>')),
    ("ne", Cmd("ne")),
    ("neq", Cmd("ne")),
    ("approx", Cmd("approx")),
    ("simeq", Cmd("approx")),
    ("sim", Cmd("approx")),
    ("thickapprox", Cmd("approx")),
    ("equiv", Ch('=')),
    ("coloneqq", Ch('=')),
    ("in", Cmd("in")),
    ("implies", Cmd("implies")),
    ("Rightarrow", Cmd("implies")),
    ("Longrightarrow", Cmd("implies")),
    ("therefore", Cmd("implies")),
    ("cup", Cmd("cup")),
    ("bigcup", Cmd("cup")),
    ("cap", Cmd("cap")),
    ("setminus", Cmd("setminus")),
    ("backslash", Cmd("setminus")),
    ("mid", Ch('|')),
    ("vert", Ch('|')),
    ("colon", Ch(':')),
    ("land", Cmd("sep")),
    ("wedge", Cmd("sep")),
    ("lor", Cmd("sep")),
    ("vee", Cmd("sep")),
    ("dots", Cmd("dots")),
    ("ldots", Cmd("dots")),
    ("cdots", Cmd("dots")),
    ("circ", Cmd("circ")),
    ("degree", Cmd("degree")),
    ("degrees", Cmd("degree")),
    ("prime", Ch('\'')),
    ("emptyset", Cmd("emptyset")),
    ("varnothing", Cmd("emptyset")),
    ("infty", Cmd("infty")),
    // Brackets
    ("lbrace", Cmd("lset")),
    ("rbrace", Cmd("rset")),
    ("lbrack", Ch('[')),
    ("rbrack", Ch(']')),
    ("lparen", Ch('(')),
    ("rparen", Ch(')')),
    ("langle", Cmd("langle")),
    ("rangle", Cmd("rangle")),
    ("lvert", Cmd("lbar")),
    ("rvert", Cmd("rbar")),
    ("lfloor", Cmd("lfloor")),
    ("rfloor", Cmd("rfloor")),
    ("lceil", Cmd("lceil")),
    ("rceil", Cmd("rceil")),
    // Structures
    ("frac", Cmd("frac")),
    ("dfrac", Cmd("frac")),
    ("tfrac", Cmd("frac")),
    ("cfrac", Cmd("frac")),
    ("sfrac", Cmd("frac")),
    ("nicefrac", Cmd("frac")),
    ("sqrt", Action::Func(Func::Root)),
    ("cbrt", Cmd("cbrt")),
    ("over", Cmd("over")),
    ("choose", Cmd("choose")),
    ("binom", Cmd("binom")),
    ("dbinom", Cmd("binom")),
    ("tbinom", Cmd("binom")),
    ("overline", Cmd("overline")),
    ("bar", Cmd("overline")),
    ("widehat", Skip),
    ("angle", Name("angle")),
    ("triangle", Name("triangle")),
    // Money
    ("textdollar", Word("dollar")),
    ("pounds", Word("sterling")),
    ("euro", Word("euro")),
    ("cents", Word("cent")),
    ("percent", Cmd("percent")),
    // Names that are not spelled like themselves
    ("varepsilon", Name("epsilon")),
    ("vartheta", Name("theta")),
    ("varphi", Name("phi")),
    ("imath", Name("i")),
    ("ell", Name("ell")),
];

/// Commands that are variables of their own name.
const LETTERS: &[&str] = &[
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi",
    "Pi", "Sigma", "Phi", "Psi", "Omega",
];

/// The meaning of a command.
pub(crate) fn action(name: &str) -> Option<Action> {
    if let Some((_, action)) = TABLE.iter().find(|(known, _)| *known == name) {
        return Some(*action);
    }
    if let Some(letter) = LETTERS.iter().find(|letter| **letter == name) {
        return Some(Name(letter));
    }
    Func::by_name(name).map(Action::Func)
}

/// Commands with a meaning that is not understood here; none of them is a shorter command grown together with letters.
const NOT_READ: &[&str] = &[
    "int",
    "iint",
    "oint",
    "sum",
    "prod",
    "lim",
    "sup",
    "inf",
    "mod",
    "pmod",
    "bmod",
    "to",
    "rightarrow",
    "leftarrow",
    "iff",
    "forall",
    "exists",
    "subset",
    "subseteq",
    "supset",
    "notin",
    "perp",
    "parallel",
    "cong",
    "mapsto",
    "partial",
    "nabla",
    "det",
    "dim",
    "ker",
    "arg",
    "leftrightarrow",
    "because",
    "propto",
    "inmid",
    "oplus",
    "otimes",
    "not",
];

/// Commands too short to be told from the start of a longer one.
const SHORTEST_PREFIX: usize = 3;

/// The longest known command that a run of letters starts with: `\quadx` is `\quad x`.
pub(crate) fn longest_prefix(letters: &str) -> Option<(usize, Action)> {
    if NOT_READ.contains(&letters) {
        return None;
    }
    (1..=letters.len()).rev().find_map(|len| {
        let prefix = letters.get(..len)?;
        let long = len == letters.len() || len >= SHORTEST_PREFIX || prefix == "pi";
        action(prefix).filter(|_| long).map(|found| (len, found))
    })
}
