//! How the kept tokens are chosen among those that are not protected.

use std::fmt;
use std::str::FromStr;

use epikv_signals::ValueSize;

use crate::error::{Error, Result};
use crate::policy::forms::wrong;
use crate::policy::limits::Limits;

/// The values of the part.
pub(crate) const FORMS: &str = "top-k, or draw (at random, in proportion to the score); + a reserve: values(N), \
                                variance(N) or l2(N) keep the N tokens whose values have the largest range, variance or L2 \
                                norm, random(N) keeps N random ones, random-anew(N) draws them at each eviction; N% is a \
                                share of the budget with the sinks counted in, or of the tokens behind a protected prompt";

/// How the kept tokens are chosen among those that are not protected: first the reserve, then by score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Select {
    /// Drawn without replacement with a chance in proportion to the score; else the highest scores, among equals the newer
    /// token. A score of zero is drawn last.
    pub draw: bool,
    /// Tokens that are kept whatever they score.
    pub reserve: Option<Reserve>,
}

/// Tokens that are kept for something else than their score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    /// What ranks them.
    pub by: ReserveBy,
    /// How many there are.
    pub amount: Amount,
}

/// What ranks the tokens of a reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveBy {
    /// The size of the value.
    Value(ValueSize),
    /// A random number a token and kept set: the control of the others.
    Random,
    /// The same, drawn again at each eviction.
    RandomAnew,
}

/// How many tokens a reserve has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Tokens(u16),
    /// So many percent.
    Percent(u8),
}

/// The reserves by the name that is typed.
const RESERVES: [(&str, ReserveBy); 5] = [
    ("values", ReserveBy::Value(ValueSize::Range)),
    ("variance", ReserveBy::Value(ValueSize::Variance)),
    ("l2", ReserveBy::Value(ValueSize::L2)),
    ("random", ReserveBy::Random),
    ("random-anew", ReserveBy::RandomAnew),
];

impl Select {
    /// The highest scores.
    pub const TOP_K: Self = Self { draw: false, reserve: None };

    /// Whether a score decides alone.
    pub(crate) fn by_score(self) -> bool {
        self == Self::TOP_K
    }

    /// Tokens that the reserve of a kept set asks for. Percent are of the budget less the sinks, which are counted in; where
    /// the whole prompt is protected, of the tokens behind it.
    pub(crate) fn reserve(self, limits: &Limits, set: usize) -> usize {
        match self.reserve.map(|reserve| reserve.amount) {
            None => 0,
            Some(Amount::Tokens(tokens)) => usize::from(tokens),
            Some(Amount::Percent(percent)) => {
                let share = |of: usize| of.saturating_mul(usize::from(percent)) / 100;
                if limits.n_first() > limits.sinks() {
                    share(limits.of(set).saturating_sub(limits.n_first()))
                } else {
                    share(limits.of(set)).saturating_sub(limits.sinks())
                }
            }
        }
    }

    /// Checks that the reserve has room beside what is protected.
    ///
    /// # Errors
    /// If it has not: then no score would decide.
    pub(crate) fn check(self, limits: &Limits) -> Result<()> {
        let (reserve, room) = (self.reserve(limits, 0), limits.room(0));
        if reserve > room {
            return Err(Error::ReserveOf { select: self.to_string(), budget: limits.tokens(), reserve, room });
        }
        Ok(())
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.draw { "draw" } else { "top-k" })?;
        let Some(Reserve { by, amount }) = self.reserve else { return Ok(()) };
        let name = RESERVES.iter().find(|(_, known)| *known == by).map_or("", |(name, _)| name);
        match amount {
            Amount::Tokens(tokens) => write!(f, "+{name}({tokens})"),
            Amount::Percent(percent) => write!(f, "+{name}({percent}%)"),
        }
    }
}

impl FromStr for Reserve {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (name, amount) = text.strip_suffix(')').and_then(|text| text.split_once('(')).ok_or(())?;
        let (_, by) = RESERVES.iter().find(|(known, _)| *known == name).ok_or(())?;
        let amount = match amount.strip_suffix('%') {
            Some(percent) => Amount::Percent(percent.parse().ok().filter(|n| *n <= 100).ok_or(())?),
            None => Amount::Tokens(amount.parse().map_err(|_| ())?),
        };
        Ok(Self { by: *by, amount })
    }
}

impl FromStr for Select {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || wrong("select", FORMS, text);
        let (draw, reserve) =
            text.split_once('+').map_or((text, None), |(draw, reserve)| (draw.trim(), Some(reserve.trim())));
        let draw = match draw {
            "top-k" => false,
            "draw" => true,
            _ => return Err(wrong()),
        };
        let reserve: Option<Reserve> = reserve.map(str::parse).transpose().map_err(|()| wrong())?;
        // An empty reserve is none, so that one policy has one name.
        let is_some = |reserve: &Reserve| !matches!(reserve.amount, Amount::Tokens(0) | Amount::Percent(0));
        Ok(Self { draw, reserve: reserve.filter(is_some) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Protect, Recency};

    #[test]
    fn what_is_written_out_can_be_typed() {
        for (name, _) in RESERVES {
            for amount in ["16", "25%"] {
                for draw in ["top-k", "draw"] {
                    let text = format!("{draw}+{name}({amount})");
                    assert_eq!(text.parse::<Select>().expect(&text).to_string(), text);
                }
            }
        }
        assert_eq!("top-k+l2(0)".parse::<Select>().expect("nothing"), Select::TOP_K);
        for text in ["top-k+", "top-k+values", "top-k+values(101%)", "top-k+size(3)", "draw+l2(-1)", "draw+l2(65536)"] {
            assert!(text.parse::<Select>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_reserve_counts_its_own_slots() {
        let of = |select: &str, prompt, sinks, tokens| {
            let select: Select = select.parse().expect(select);
            let protect = Protect { prompt, sinks, recency: Recency::Tokens(8) };
            let limits = Limits::new(tokens, 30, protect).expect("feasible");
            (select.reserve(&limits, 0), select.check(&limits).is_ok())
        };
        // As published: a quarter of the budget, the sinks counted in.
        assert_eq!(of("top-k+values(25%)", false, 4, 64), (12, true));
        // A protected prompt takes nothing from it: a quarter of what is left.
        assert_eq!(of("top-k+values(25%)", true, 0, 64), (8, true));
        assert_eq!(of("top-k+values(8)", true, 0, 64), (8, true));
        assert_eq!(of("top-k+values(100%)", true, 0, 64), (34, false), "no room beside 8 recent tokens");
        assert_eq!(of("top-k+random(27)", true, 0, 64), (27, false));
        assert_eq!(of("top-k+random(26)", true, 0, 64), (26, true));
        assert_eq!(of("top-k", true, 0, 64), (0, true));
    }
}
