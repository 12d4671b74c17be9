//! What a run says of a claim: a rule for intervals, not for single claims.
//!
//! A part is one figure with its 95 % interval, such as a pair of policies on one problem set at one budget. It is decided
//! where the whole interval lies on one side of the threshold and the p-value, adjusted by Holm over all parts of the page,
//! is below 5 %. A claim speaks of every part:
//!
//! | verdict | when |
//! | --- | --- |
//! | `holds` | every part lies on the claim's side |
//! | `does not hold here` | a part lies on the other side |
//! | `not distinguishable` | anything else |
//! | `not measured` | there is no part |

use epikv_stats::adjust::holm;
use serde::Serialize;

/// Level of the adjusted p-values.
const LEVEL: f64 = 0.05;

/// What a claim says of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// It is above this.
    Above(f64),
    /// It is below this.
    Below(f64),
    /// It is within this of 0: an equivalence, which the interval must show by lying inside, and by lying outside denies.
    Within(f64),
}

/// A figure that a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Part {
    /// The figure.
    pub estimate: f64,
    /// Lower bound, 95 %.
    pub lo: f64,
    /// Upper bound.
    pub hi: f64,
    /// Two-sided p-value of no difference; null for a rule that tests by its interval alone.
    pub p: Option<f64>,
    /// What the claim says of it.
    pub says: Says,
}

/// What a run says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every part lies on the claim's side.
    Holds,
    /// A part lies on the other side.
    DoesNotHold,
    /// Neither.
    NotDistinguishable,
    /// The run has no figure for it.
    NotMeasured,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold here",
            Self::NotDistinguishable => "not distinguishable",
            Self::NotMeasured => "not measured",
        }
    }
}

impl Part {
    /// Whether it lies on the claim's side, or on the other; `None` for neither.
    fn side(&self) -> Option<bool> {
        let (lo, hi) = (self.lo, self.hi);
        let sides = match self.says {
            Says::Above(threshold) => (lo > threshold, hi < threshold),
            Says::Below(threshold) => (hi < threshold, lo > threshold),
            Says::Within(margin) => (lo > -margin && hi < margin, lo > margin || hi < -margin),
        };
        match sides {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

/// The verdict of each claim of a page, `[claims]`, from the parts of each.
pub fn verdicts(claims: &[Vec<Part>]) -> Vec<Verdict> {
    let p: Vec<f64> = claims.iter().flatten().filter_map(|part| part.p).collect();
    let mut adjusted = holm(&p).into_iter();
    let of = |parts: &Vec<Part>| {
        let sides: Vec<Option<bool>> = parts
            .iter()
            .map(|part| {
                let p = part.p.and_then(|_| adjusted.next());
                part.side().filter(|_| p.is_none_or(|p| p < LEVEL))
            })
            .collect();
        match sides.as_slice() {
            [] => Verdict::NotMeasured,
            sides if sides.contains(&Some(false)) => Verdict::DoesNotHold,
            sides if sides.iter().all(|side| *side == Some(true)) => Verdict::Holds,
            _ => Verdict::NotDistinguishable,
        }
    };
    claims.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(says: Says, lo: f64, hi: f64, p: f64) -> Part {
        Part { estimate: f64::midpoint(lo, hi), lo, hi, p: Some(p), says }
    }

    #[test]
    fn each_rule_gives_each_verdict() {
        let one = |says, lo, hi, p| verdicts(&[vec![part(says, lo, hi, p)]])[0];
        for (says, holds, not, neither) in [
            (Says::Above(0.0), (0.1, 0.3), (-0.3, -0.1), (-0.1, 0.1)),
            (Says::Below(0.0), (-0.3, -0.1), (0.1, 0.3), (-0.1, 0.1)),
            (Says::Within(0.05), (-0.04, 0.03), (0.06, 0.2), (-0.01, 0.2)),
        ] {
            assert_eq!(one(says, holds.0, holds.1, 0.001), Verdict::Holds, "{says:?}");
            assert_eq!(one(says, not.0, not.1, 0.001), Verdict::DoesNotHold, "{says:?}");
            assert_eq!(one(says, neither.0, neither.1, 0.5), Verdict::NotDistinguishable, "{says:?}");
        }
        assert_eq!(verdicts(&[vec![]]), [Verdict::NotMeasured]);
    }

    #[test]
    fn every_part_counts_and_the_page_pays_for_its_size() {
        let (above, below) = (part(Says::Above(0.0), 0.1, 0.3, 0.001), part(Says::Above(0.0), -0.3, -0.1, 0.001));
        let open = part(Says::Above(0.0), -0.1, 0.3, 0.4);
        assert_eq!(verdicts(&[vec![above, open]]), [Verdict::NotDistinguishable]);
        assert_eq!(verdicts(&[vec![above, open, below]]), [Verdict::DoesNotHold]);
        // 0.03 alone is below 5 %, beside another one it is not.
        let weak = part(Says::Above(0.0), 0.01, 0.3, 0.03);
        assert_eq!(verdicts(&[vec![weak]]), [Verdict::Holds]);
        assert_eq!(verdicts(&[vec![weak], vec![open]]), [Verdict::NotDistinguishable; 2]);
    }
}
