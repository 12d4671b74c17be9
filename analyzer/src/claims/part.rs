//! A figure that a claim is about, with its interval and what can be tested of it.

use std::collections::BTreeMap;

use epikv_stats::Confidence;
use epikv_stats::moments::{mean, standard_error};
use epikv_stats::tails::{normal_quantile, normal_two_sided, student_t_critical, student_t_two_sided};
use serde::{Deserialize, Serialize};

/// Power of the smallest detectable effect.
const POWER: f64 = 0.8;

/// What a claim says of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// It is above this.
    Above(f64),
    /// It is below this.
    Below(f64),
    /// It lies between these two: an equivalence, tested as one.
    Between(f64, f64),
}

impl Says {
    /// The threshold in words.
    pub fn words(self) -> String {
        match self {
            Self::Above(threshold) => format!("above {threshold}"),
            Self::Below(threshold) => format!("below {threshold}"),
            Self::Between(least, most) => format!("between {least} and {most}"),
        }
    }
}

/// The scale on which the estimate has a standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The figure's own.
    Plain,
    /// Its logarithm: a ratio.
    Log,
    /// Fisher's z: a coefficient.
    Fisher,
}

impl Scale {
    fn to(self, x: f64) -> f64 {
        match self {
            Self::Plain => x,
            Self::Log => x.ln(),
            Self::Fisher => x.atanh(),
        }
    }

    fn from(self, x: f64) -> f64 {
        match self {
            Self::Plain => x,
            Self::Log => x.exp(),
            Self::Fisher => x.tanh(),
        }
    }
}

/// The values of each problem: of its traces, samples or seeds.
pub(crate) type ByProblem<'r> = BTreeMap<&'r str, Vec<f64>>;

/// What is known of the error of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Student's t on a mean over problems.
    Student {
        /// Scale of the mean.
        scale: Scale,
        /// Its standard error, on that scale.
        se: f64,
        /// Problems less one.
        df: f64,
    },
    /// An exact two-sided p-value of no difference. Other values are tested by the width of the interval.
    Exact {
        /// The p-value.
        p: f64,
    },
    /// The width of the interval alone, as of a normal estimate.
    Width,
}

/// Why two policies cannot be compared as the claim compares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unequal {
    /// They choose in kept sets of other scopes.
    Scope,
    /// They protect other tokens.
    Protection,
    /// They hold other numbers of tokens or bytes.
    Held,
}

/// A figure that a claim is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Problem set.
    pub dataset: String,
    /// Budget as typed; null for a figure without one.
    pub budget: Option<String>,
    /// What the figure is of, such as a layer or a policy; empty where the claim has one figure.
    pub of: String,
    /// The figure.
    pub estimate: f64,
    /// Lower bound, 95 %.
    pub lo: f64,
    /// Upper bound.
    pub hi: f64,
    /// What its error is.
    pub test: Test,
    /// Problems.
    pub n: usize,
    /// Counts behind it, in words.
    pub counts: String,
    /// Why the two policies are not equal in what the claim holds equal; null where they are.
    pub unequal: Option<Unequal>,
}

impl Part {
    /// The mean of one value a problem, `[n]`, on a scale, with Student's t interval. `None` below three problems.
    pub fn of_mean(dataset: &str, of: String, scale: Scale, values: &[f64]) -> Option<Self> {
        if values.len() < 3 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let (mean, se, df) = (mean(values)?, standard_error(values)?, values.len() as f64 - 1.0);
        let half = Confidence::P95.t(df)? * se;
        let bounds = (scale.from(mean - half), scale.from(mean + half));
        let part = Self::of_interval(dataset, scale.from(mean), bounds, Test::Student { scale, se, df }, values.len());
        Some(Self { of, ..part })
    }

    /// The mean over problems of the mean of each problem's values, as [`Part::of_mean`].
    pub(crate) fn of_problems(dataset: &str, of: String, scale: Scale, problems: &ByProblem<'_>) -> Option<Self> {
        let values: Vec<f64> = problems.values().filter_map(|values| mean(values)).collect();
        Self::of_mean(dataset, of, scale, &values)
    }

    /// A figure with an interval of another kind.
    pub(crate) fn of_interval(dataset: &str, estimate: f64, (lo, hi): (f64, f64), test: Test, n: usize) -> Self {
        Self {
            dataset: dataset.to_owned(),
            budget: None,
            of: String::new(),
            estimate,
            lo,
            hi,
            test,
            n,
            counts: String::new(),
            unequal: None,
        }
    }

    /// Two-sided p-value of the true figure being this one.
    fn p_of(&self, threshold: f64) -> f64 {
        let by_width = || {
            let se = (self.hi - self.lo) / (2.0 * Confidence::P95.z());
            if se > 0.0 { normal_two_sided((self.estimate - threshold) / se) } else { 1.0 }
        };
        match self.test {
            Test::Exact { p } if threshold == 0.0 => p,
            Test::Exact { .. } | Test::Width => by_width(),
            // Equal values on all problems: as the sign flip says it.
            Test::Student { se: 0.0, df, .. } => 0.5_f64.powf(df),
            Test::Student { scale, se, df } => {
                let distance = scale.to(self.estimate) - scale.to(threshold);
                student_t_two_sided(distance / se, df).unwrap_or(1.0)
            }
        }
    }

    /// Two-sided p-values that speak for the claim's side and for the other one; 1 where the estimate or a bound of the
    /// interval lies elsewhere.
    pub fn p_sides(&self, says: Says) -> (f64, f64) {
        let above = |threshold: f64| if self.lo > threshold { self.p_of(threshold) } else { 1.0 };
        let below = |threshold: f64| if self.hi < threshold { self.p_of(threshold) } else { 1.0 };
        match says {
            Says::Above(threshold) => (above(threshold), below(threshold)),
            Says::Below(threshold) => (below(threshold), above(threshold)),
            Says::Between(least, most) => (above(least).max(below(most)), below(least).min(above(most))),
        }
    }

    /// The smallest distance from a threshold that so many problems show with a power of 80 %, on the figure's own scale
    /// near no effect; for a ratio the smallest ratio above 1.
    pub fn detectable(&self) -> Option<f64> {
        let normal = || Confidence::P95.z() + normal_quantile(POWER);
        match self.test {
            Test::Student { scale, se, df } => {
                let reach = Confidence::P95.t(df)? + student_t_critical(2.0 * (1.0 - POWER), df)?;
                Some(scale.from(reach * se))
            }
            Test::Exact { .. } | Test::Width => Some(normal() * (self.hi - self.lo) / (2.0 * Confidence::P95.z())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_students_interval_on_its_scale() {
        // scipy.stats.t.interval(0.95, 3, 0.25, sem): mean 0.25, sem 0.0645497, t 3.1824463.
        let part = Part::of_mean("s", String::new(), Scale::Plain, &[0.1, 0.2, 0.3, 0.4]).expect("four");
        assert!((part.lo - 0.044_573_6).abs() < 1e-6 && (part.hi - 0.455_426_4).abs() < 1e-6, "{part:?}");
        // 2 * t.sf(0.25 / 0.0645497, 3)
        assert!((part.p_sides(Says::Above(0.0)).0 - 0.030_466).abs() < 1e-5, "{part:?}");
        assert!(part.p_sides(Says::Below(0.0)).0 >= 1.0);
        // t(0.975, 3) + t(0.8, 3) = 3.1824463 + 0.9784723
        assert!((part.detectable().expect("defined") - 0.268_586).abs() < 1e-5, "{:?}", part.detectable());
        let ratio = Part::of_mean("s", String::new(), Scale::Log, &[0.6, 0.7, 0.8]).expect("three");
        assert!((ratio.estimate - 0.7_f64.exp()).abs() < 1e-12 && ratio.lo > 1.0, "{ratio:?}");
        assert_eq!(Part::of_mean("s", String::new(), Scale::Plain, &[1.0, 1.0]), None);
    }

    #[test]
    fn an_equivalence_needs_both_bounds() {
        let part = Part::of_mean("s", String::new(), Scale::Plain, &[0.001, -0.001, 0.002, -0.002]).expect("four");
        let (within, outside) = part.p_sides(Says::Between(-0.05, 0.05));
        assert!(within < 0.001 && outside >= 1.0, "{within} {outside}");
        assert!(part.p_sides(Says::Between(-0.001, 0.05)).0 >= 1.0);
        assert!(part.p_sides(Says::Between(0.05, 0.1)).1 < 0.001);
        // Values that are all the same have no standard error; eight of them weigh 2^-7.
        let same = Part::of_mean("s", String::new(), Scale::Plain, &[0.2; 8]).expect("eight");
        assert_eq!(same.p_sides(Says::Above(0.0)), (0.5_f64.powi(7), 1.0));
    }
}
