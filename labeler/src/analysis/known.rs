//! Do the labels recover the values that the answers are known to need?
//!
//! Some traces say which tokens state the values that the answer needs (`gold_spans`). Spans of equal tokens are mentions
//! of one value. A window that covers every mention of some value hides it, and should flip; one that touches no mention
//! of any value should not; windows between the two prove nothing and are counted apart.
//!
//! With a flip that is yes or no, the area under the ROC curve is
//!
//! ```text
//! AUC = (share of hiding windows that flip + share of clear windows that do not) / 2
//! ```
//!
//! A value is *missed* if windows hide it and none of them flips. Not every miss is a fault of the labels: a hidden
//! value of two digits is guessed right once in a hundred times, and a value can also be computed from the text around
//! it.

use std::collections::BTreeMap;
use std::ops::Range;

use epikv_schemas::{LabelTrace, LabelWindow, Trace};
use serde::Serialize;

/// Values with the same number of mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct KnownValues {
    /// Values that some decided window hides.
    pub n_hidden: usize,
    /// Those of them that no window flips.
    pub n_missed: usize,
    /// Values that no window hides: their mentions stand too far apart.
    pub n_never_hidden: usize,
}

/// Labels against known needs, over usable traces. Windows whose outcome decides nothing are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Known {
    /// Usable traces that say what their answers need.
    pub n_traces: usize,
    /// Windows that cover every mention of some needed value.
    pub n_hiding: usize,
    /// Those of them that flip.
    pub n_hiding_flipped: usize,
    /// Windows that touch no mention of any needed value.
    pub n_clear: usize,
    /// Those of them that flip.
    pub n_clear_flipped: usize,
    /// Windows that touch mentions and hide no value.
    pub n_between: usize,
    /// Area under the ROC curve of flips, hiding windows against clear ones; `None` without both kinds.
    pub auc: Option<f64>,
    /// Needed values by number of mentions.
    pub by_mentions: BTreeMap<usize, KnownValues>,
}

impl Known {
    /// Compares the windows of usable traces with the traces' known needs; `None` where no usable trace has any.
    pub fn of(windows: &[LabelWindow], labelled: &[LabelTrace], traces: &[Trace]) -> Option<Self> {
        let usable = labelled.iter().filter(|t| t.usable);
        let mut decided: BTreeMap<&str, Vec<(Range<usize>, bool)>> =
            usable.map(|trace| (trace.trace_id.as_str(), Vec::new())).collect();
        for window in windows {
            if let (Some(windows), Some(flipped)) = (decided.get_mut(window.trace_id.as_str()), window.flipped) {
                windows.push((window.start as usize..window.end as usize, flipped));
            }
        }
        let mut known = Self::default();
        for trace in traces {
            let values = values(trace);
            if let (false, Some(windows)) = (values.is_empty(), decided.get(trace.trace_id.as_str())) {
                known.n_traces += 1;
                known.add(&values, windows);
            }
        }
        let share = |n: usize, of: usize| (of > 0).then(|| n as f64 / of as f64);
        let flipped = share(known.n_hiding_flipped, known.n_hiding);
        let same = share(known.n_clear - known.n_clear_flipped, known.n_clear);
        known.auc = flipped.zip(same).map(|(flipped, same)| f64::midpoint(flipped, same));
        (known.n_traces > 0).then_some(known)
    }

    /// Share of the windows that hide a value which flip.
    pub fn recall(&self) -> Option<f64> {
        (self.n_hiding > 0).then(|| self.n_hiding_flipped as f64 / self.n_hiding as f64)
    }

    /// Share of the flipping windows which hide a value, among those that hide one or touch none.
    pub fn precision(&self) -> Option<f64> {
        let n = self.n_hiding_flipped + self.n_clear_flipped;
        (n > 0).then(|| self.n_hiding_flipped as f64 / n as f64)
    }

    /// Adds a trace: the mentions of each value, and each decided window with its flip.
    fn add(&mut self, values: &[Vec<Range<usize>>], windows: &[(Range<usize>, bool)]) {
        let mut hidden: Vec<Option<bool>> = vec![None; values.len()];
        for &(ref window, flipped) in windows {
            let touches = |m: &Range<usize>| m.start < window.end && window.start < m.end;
            let mut hides_any = false;
            for (mentions, hidden) in values.iter().zip(&mut hidden) {
                if hides(window, mentions) {
                    hides_any = true;
                    *hidden = Some(hidden.unwrap_or(false) || flipped);
                }
            }
            if hides_any {
                self.n_hiding += 1;
                self.n_hiding_flipped += usize::from(flipped);
            } else if values.iter().flatten().any(touches) {
                self.n_between += 1;
            } else {
                self.n_clear += 1;
                self.n_clear_flipped += usize::from(flipped);
            }
        }
        for (mentions, hidden) in values.iter().zip(hidden) {
            let row = self.by_mentions.entry(mentions.len()).or_default();
            match hidden {
                None => row.n_never_hidden += 1,
                Some(flipped) => {
                    row.n_hidden += 1;
                    row.n_missed += usize::from(!flipped);
                }
            }
        }
    }
}

/// Whether a window covers every mention of a value.
pub(crate) fn hides(window: &Range<usize>, mentions: &[Range<usize>]) -> bool {
    mentions.iter().all(|mention| window.start <= mention.start && mention.end <= window.end)
}

/// The mentions of each needed value: spans of equal tokens belong together.
pub(crate) fn values(trace: &Trace) -> Vec<Vec<Range<usize>>> {
    let mut by_tokens: BTreeMap<&[i32], Vec<Range<usize>>> = BTreeMap::new();
    // A trace that contradicts itself has no labels.
    let spans = trace.checked().map(|checked| checked.gold_spans).unwrap_or_default();
    for span in spans.into_iter().filter(|span| !span.is_empty()) {
        by_tokens.entry(&trace.token_ids[span.clone()]).or_default().push(span);
    }
    by_tokens.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_told_apart_by_what_they_cover() {
        // The first value is stated twice, the second once.
        let values = [vec![10..12, 30..32], std::iter::once(20..22).collect()];
        let windows = [
            (0..8, true),    // clear
            (8..16, false),  // between: half of the first value's mentions
            (16..24, false), // hides the second
            (8..40, true),   // hides both
            (11..18, true),  // between: touches a mention
            (21..30, false), // between: half of a mention
            (40..48, false), // clear
        ];
        let mut known = Known::default();
        known.add(&values, &windows);
        assert_eq!((known.n_hiding, known.n_hiding_flipped), (2, 1));
        assert_eq!((known.n_clear, known.n_clear_flipped, known.n_between), (2, 1, 3));
        assert_eq!((known.recall(), known.precision()), (Some(0.5), Some(0.5)));
        let all_found = KnownValues { n_hidden: 1, n_missed: 0, n_never_hidden: 0 };
        assert_eq!(known.by_mentions, [(1, all_found), (2, all_found)].into());

        known.add(&values, &[(18..24, false)]);
        let once = KnownValues { n_hidden: 2, n_missed: 1, n_never_hidden: 0 };
        let twice = KnownValues { n_hidden: 1, n_missed: 0, n_never_hidden: 1 };
        assert_eq!(known.by_mentions, [(1, once), (2, twice)].into());
    }
}
