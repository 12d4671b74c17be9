//! Keys before and after rotation must give nearly the same coefficients: a rotation keeps the norm and nearly the
//! variance over channels.

use epikv_signals::Smoother;

use super::name;
use crate::study::findings::{DatasetFindings, Source};

/// Signals after and before rotation.
const PAIRS: [(&str, &str); 2] = [("kv_key_var", "kv_key_var_prerope"), ("kv_key_norm", "kv_key_norm_prerope")];

pub(super) fn lines(dataset: &DatasetFindings) -> Vec<String> {
    let gap = |(after, before): (&str, &str)| {
        let of_after = dataset.findings.iter().filter(|f| f.source == Source::Model && f.signal == after);
        let gaps = of_after.filter_map(|f| {
            let twin = dataset.find(f.source, before, f.layer, f.smoother)?;
            let gap = (f.correlation.pooled.rho? - twin.correlation.pooled.rho?).abs();
            Some((gap, f.layer, f.smoother))
        });
        let (gap, layer, smoother) = gaps.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let smoothed = if smoother == Smoother::Raw { "" } else { ", smoothed" };
        Some(format!("|rho of {after} - rho of {before}| is at most {gap:.4} ({}{smoothed})", name("at", layer)))
    };
    PAIRS.into_iter().filter_map(gap).collect()
}
