//! One column of a study: a series, smoothed and ranked against the labels.

use std::borrow::Cow;

use epikv_signals::Smoother;
use epikv_stats::{RankScratch, SignalOrder};

use crate::error::Result;
use crate::record::WindowFrom;
use crate::study::bands::BAND_SIGNAL;
use crate::study::correlate::{Intervals, correlate_given, correlate_problems};
use crate::study::findings::{Finding, Source, TraceShape};
use crate::study::join::Labelled;
use crate::study::problems::Problems;
use crate::study::resamples::Resamples;
use crate::study::settings::Settings;
use crate::study::tested::{self, Tested};
use crate::study::trace_rho::TraceRho;

/// Which column of a study.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) source: Source,
    pub(crate) signal: &'static str,
    pub(crate) layer: Option<usize>,
    pub(crate) smoother: Smoother,
}

/// Correlates one column: its tokens and, where there are such labels, its windows, both by trace. Without shapes it says
/// nothing of the position.
pub(crate) fn finding(
    place: Place,
    traces: &[Labelled],
    windows: Option<&[Labelled]>,
    problems: &Problems,
    with_shapes: bool,
    settings: &Settings,
    resamples: &Resamples,
) -> Finding {
    let Settings { confidence, fisher, surrogates, .. } = *settings;
    let intervals = Intervals { confidence, fisher, resamples, n_surrogates: surrogates };
    let Place { source, signal, layer, smoother } = place;
    let mut scratch = RankScratch::default();
    // One sort a trace gives its coefficient and its shape; the coefficient alone takes half the work.
    let of = |trace: &Labelled| {
        if !with_shapes {
            return (TraceRho::of(trace, &mut scratch), TraceShape::unknown(trace));
        }
        let sorted = SignalOrder::new(trace.signal());
        (TraceRho::of_order(trace, sorted.as_ref()), TraceShape::of(trace, sorted.as_ref()))
    };
    let (by_trace, shapes) = traces.iter().map(of).unzip();
    let mut correlation = correlate_given(traces, problems, by_trace, &intervals);
    if signal != BAND_SIGNAL {
        // Only the means over bands combine replicates.
        correlation.forget_draws();
    }
    let windows = windows.map(|windows| {
        let mut correlation = correlate_problems(windows, problems, &intervals);
        correlation.forget_draws();
        correlation
    });
    Finding { source, signal, layer, smoother, correlation, windows, shapes, lags: Vec::new() }
}

/// A recorded series, smoothed. Smoothers start at the first token, and again at the first decoded one.
pub(crate) fn smooth<'v>(
    values: &'v [Option<f32>],
    n_prompt: usize,
    smoother: Smoother,
    settings: &Settings,
) -> Result<Cow<'v, [Option<f32>]>> {
    if smoother == Smoother::Raw && values.iter().flatten().all(|value| value.is_finite()) {
        return Ok(Cow::Borrowed(values));
    }
    let mut smoothing = smoother.start(settings.window)?;
    let (prompt, decoded) = values.split_at(n_prompt.min(values.len()));
    let mut smoothed: Vec<_> = prompt.iter().map(|&value| smoothing.push(value)).collect();
    if settings.window_from == WindowFrom::Decode {
        smoothing.reset();
    }
    smoothed.extend(decoded.iter().map(|&value| smoothing.push(value)));
    Ok(Cow::Owned(smoothed))
}

/// What holds over a family: all layers and smoothings of a signal from one source, in one unit and scope.
pub(crate) fn adjust(findings: &mut [Finding]) {
    for family in findings.chunk_by_mut(|a, b| (a.source, a.signal) == (b.source, b.signal)) {
        let scopes: [fn(&mut Finding) -> Option<&mut Tested>; 4] = [
            |f| Some(&mut f.correlation.pooled.tested),
            |f| Some(&mut f.correlation.within.tested),
            |f| f.windows.as_mut().map(|w| &mut w.pooled.tested),
            |f| f.windows.as_mut().map(|w| &mut w.within.tested),
        ];
        for scope in scopes {
            tested::adjust(&mut family.iter_mut().filter_map(scope).collect::<Vec<_>>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::settings::tests::settings;

    #[test]
    fn smoothers_start_where_they_are_told_to() {
        let values: Vec<Option<f32>> = [8.0, 4.0, 2.0, 6.0].map(Some).to_vec();
        let mut settings = settings();
        let mean = |settings: &Settings| smooth(&values, 2, Smoother::Mean, settings).expect("a window").into_owned();
        assert_eq!(mean(&settings), [8.0, 6.0, 2.0, 4.0].map(Some));
        settings.window_from = WindowFrom::Prompt;
        assert_eq!(mean(&settings), [8.0, 6.0, 14.0 / 3.0, 5.0].map(Some));
    }
}
