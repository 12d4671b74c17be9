//! One trace: how its signal ranks against its labels, or why that is undefined.

use epikv_stats::{BinaryRanks, RankScratch, SignalOrder};

use crate::study::join::Labelled;

/// Tokens that a trace needs for a coefficient.
pub const MIN_TOKENS: usize = 4;

epikv_words::words! {
    /// Why a trace has no coefficient. The first reason that applies.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Undefined {
        /// Fewer than [`MIN_TOKENS`] tokens.
        Short = "short",
        /// All tokens are important, or none is.
        ConstantLabel = "constant_label",
        /// All tokens have the same value.
        ConstantSignal = "constant_signal",
    }
}

/// The coefficient of one trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceRho {
    /// Tokens.
    pub n_tokens: u64,
    /// Spearman's rho of the signal against the label.
    pub rho: f64,
    /// Chance that an important token has the higher value.
    pub auc: f64,
}

impl TraceRho {
    /// Ranks the signal of a trace against its labels.
    ///
    /// # Errors
    /// With the reason, if the coefficient is undefined. Such a trace is left out and counted, never scored 0.
    pub fn of(trace: &Labelled, scratch: &mut RankScratch) -> Result<Self, Undefined> {
        if trace.signal().len() < MIN_TOKENS {
            return Err(Undefined::Short);
        }
        // The values are finite, so ranks exist; without them the signal has no order, as if constant.
        Self::of_ranks(BinaryRanks::from_f32(trace.signal(), trace.important(), scratch))
    }

    /// The same of a trace whose signal is sorted already.
    pub(crate) fn of_order(trace: &Labelled, order: Option<&SignalOrder>) -> Result<Self, Undefined> {
        if trace.signal().len() < MIN_TOKENS {
            return Err(Undefined::Short);
        }
        Self::of_ranks(order.map(|order| BinaryRanks::from_ranks(order.ranks(), trace.important())))
    }

    fn of_ranks(ranks: Option<BinaryRanks>) -> Result<Self, Undefined> {
        let ranks = ranks.ok_or(Undefined::ConstantSignal)?;
        let auc = ranks.auc().ok_or(Undefined::ConstantLabel)?;
        let rho = ranks.rho().ok_or(Undefined::ConstantSignal)?;
        Ok(Self { n_tokens: ranks.n, rho, auc })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tokens: &[(f32, bool)]) -> Result<TraceRho, Undefined> {
        let trace = Labelled::new(tokens.iter().map(|&(v, one)| (Some(v), one)));
        let rho = TraceRho::of(&trace, &mut RankScratch::default());
        assert_eq!(TraceRho::of_order(&trace, SignalOrder::new(trace.signal()).as_ref()), rho);
        rho
    }

    #[test]
    fn by_hand() {
        // Midranks 1, 2.5, 2.5, 4; the important ones are 2.5 and 4: (6.5 - 5) / sqrt((64 - 4 - 6)/12 * 4/4).
        let trace = of(&[(1.0, false), (2.0, true), (2.0, false), (3.0, true)]).expect("defined");
        assert!((trace.rho - 1.5 / 4.5_f64.sqrt()).abs() < 1e-15);
        assert_eq!((trace.n_tokens, trace.auc.to_bits()), (4, 0.875_f64.to_bits()));
    }

    #[test]
    fn each_reason() {
        assert_eq!(of(&[(1.0, false), (2.0, true), (3.0, true)]), Err(Undefined::Short));
        assert_eq!(of(&[(1.0, true), (2.0, true), (3.0, true), (4.0, true)]), Err(Undefined::ConstantLabel));
        assert_eq!(of(&[(1.0, true), (1.0, false), (1.0, true), (1.0, true)]), Err(Undefined::ConstantSignal));
        assert_eq!(Undefined::ConstantLabel.name(), "constant_label");
    }
}
