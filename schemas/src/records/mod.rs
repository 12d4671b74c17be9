//! One file a record. A new one needs its file and its three lines here: module, export, row of the registry.

mod agreement;
mod band_surprisal;
mod comparisons;
mod correlations;
mod correlations_by_lag;
mod correlations_by_trace;
mod difficulty;
mod enrichment;
mod eviction_curves;
mod eviction_replay;
mod eviction_runs;
mod eviction_signals;
mod eviction_steps;
mod eviction_timings;
mod group_pairs;
mod heterogeneity;
mod label_pairs;
mod label_refined;
mod label_timings;
mod label_tokens;
mod label_traces;
mod label_windows;
mod selection;
mod signals_age;
mod signals_attn;
mod signals_hs;
mod signals_kv;
mod signals_score;
mod signals_token;
mod trace_timings;
mod traces;

pub use agreement::AgreementRow;
pub use band_surprisal::BandSurprisal;
pub use comparisons::ComparisonRow;
pub use correlations::Correlations;
pub use correlations_by_lag::CorrelationsByLag;
pub use correlations_by_trace::CorrelationsByTrace;
pub use difficulty::DifficultyRow;
pub use enrichment::EnrichmentRow;
pub use eviction_curves::EvictionCurve;
pub use eviction_replay::EvictionReplay;
pub use eviction_runs::EvictionRun;
pub use eviction_signals::EvictionSignal;
pub use eviction_steps::EvictionStep;
pub use eviction_timings::EvictionTiming;
pub use group_pairs::GroupPair;
pub use heterogeneity::HeterogeneityRow;
pub use label_pairs::LabelPair;
pub use label_refined::LabelRefined;
pub use label_timings::LabelTiming;
pub use label_tokens::LabelToken;
pub use label_traces::LabelTrace;
pub use label_windows::LabelWindow;
pub use selection::Selection;
pub use signals_age::SignalsAge;
pub use signals_attn::SignalsAttn;
pub use signals_hs::SignalsHs;
pub use signals_kv::SignalsKv;
pub use signals_score::SignalsScore;
pub use signals_token::SignalsToken;
pub use trace_timings::TraceTiming;
pub use traces::Trace;

use crate::{record::Record, spec::TableSpec};

/// All tables, in the order of the documentation.
pub fn registry() -> &'static [&'static TableSpec] {
    &[
        Trace::TABLE,
        TraceTiming::TABLE,
        LabelTrace::TABLE,
        LabelWindow::TABLE,
        LabelToken::TABLE,
        LabelRefined::TABLE,
        LabelPair::TABLE,
        LabelTiming::TABLE,
        SignalsHs::TABLE,
        SignalsKv::TABLE,
        SignalsToken::TABLE,
        SignalsAttn::TABLE,
        SignalsAge::TABLE,
        SignalsScore::TABLE,
        Correlations::TABLE,
        CorrelationsByTrace::TABLE,
        CorrelationsByLag::TABLE,
        ComparisonRow::TABLE,
        AgreementRow::TABLE,
        Selection::TABLE,
        EnrichmentRow::TABLE,
        BandSurprisal::TABLE,
        DifficultyRow::TABLE,
        HeterogeneityRow::TABLE,
        GroupPair::TABLE,
        EvictionRun::TABLE,
        EvictionStep::TABLE,
        EvictionTiming::TABLE,
        EvictionSignal::TABLE,
        EvictionReplay::TABLE,
        EvictionCurve::TABLE,
    ]
}

/// How an answer compares with a reference answer; the columns of several tables use these words.
const OUTCOMES: &[&str] = &["same", "same_value_other_form", "changed", "no_answer", "truncated", "unsure"];

/// Rule that found the answer boundary.
const BOUNDARY_KINDS: &[&str] = &["think_end", "boxed", "last64"];

/// A contrast: a number computed from a trace's coefficients over layers.
const CONTRASTS: &[&str] = &["column", "band_a", "band_b", "a_less_b", "trend"];

/// What a correlated signal is computed from.
const SIGNAL_SOURCES: &[&str] = &["model", "random_weights", "none"];
