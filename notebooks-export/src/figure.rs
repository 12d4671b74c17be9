//! The figure: the trace from left to right, its parts, and a bar for each window in the row of its outcome.

use std::ops::Range;

use epikv_figures::{Drawing, INK, round_step};
use epikv_schemas::{LabelWindow, Trace};

use crate::checked::Checked;
use crate::html::{Escaped, or_null};
use crate::outcome::{OUTCOMES, Outcome};

/// Units of the drawing: all of it, and the part that positions take.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 175.0;
const RIGHT: f64 = 985.0;

const BAR: usize = 14;
const LANE: usize = 17;
const GAP: usize = 8;
const AXIS: usize = 22;

/// Characters of an answer that a bar's tooltip shows.
const TOOLTIP_CHARS: usize = 80;

/// Steps of the axis at most.
const STEPS: usize = 10;

/// Fills of prompt, reasoning and answer.
const PARTS: [(&str, &str); 3] = [("prompt", "#d9d9d9"), ("reasoning", "#f0e442"), ("answer", "#a6dcc8")];

/// The SVG element.
pub(crate) fn figure(trace: &Trace, checked: &Checked<'_>) -> String {
    let mut figure = Figure { n_tokens: checked.n_tokens, top: GAP, drawing: Drawing::default() };
    figure.label("prompt, reasoning, answer");
    for ((name, fill), span) in PARTS.into_iter().zip(&checked.parts) {
        figure.bar(span, fill, &format!("{name}: {}..{}", span.start, span.end));
    }
    figure.next(LANE + GAP);
    if !checked.gold_spans.is_empty() {
        figure.label("needed (known)");
        for span in &checked.gold_spans {
            figure.bar(span, "#000000", &format!("needed by the answer: {}..{}", span.start, span.end));
        }
        figure.next(LANE + GAP);
    }
    for (outcome, windows) in OUTCOMES.iter().zip(&checked.by_outcome) {
        if !windows.is_empty() {
            figure.outcome(outcome, windows);
        }
    }
    figure.axis();
    // No element isolates a direction here; these marks do.
    let title = format!("Windows of trace \u{2068}{}\u{2069} by outcome", Escaped(&trace.trace_id));
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">\n<title>{title}</title>\n{}</svg>\n",
        figure.top, figure.drawing.body
    )
}

/// A drawing that grows downwards.
struct Figure {
    n_tokens: usize,
    /// Where the next row begins.
    top: usize,
    drawing: Drawing,
}

impl Figure {
    fn x(&self, pos: usize) -> f64 {
        LEFT + (RIGHT - LEFT) * pos as f64 / self.n_tokens.max(1) as f64
    }

    fn next(&mut self, height: usize) {
        self.top += height;
    }

    /// The word at the left of a row.
    fn label(&mut self, word: &str) {
        let y = self.top + BAR - 3;
        self.drawing.push(format_args!(
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            Escaped(word)
        ));
    }

    /// A bar over a span, one unit short of it so that neighbours stay apart; `tooltip` is HTML.
    fn bar(&mut self, span: &Range<usize>, fill: &str, tooltip: &str) {
        let (x, y) = (self.x(span.start), self.top);
        let width = (self.x(span.end) - x - 1.0).max(1.0);
        self.drawing.push(format_args!(
            "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{BAR}\" fill=\"{fill}\"><title>{tooltip}</title></rect>"
        ));
    }

    /// The windows of one outcome, overlapping ones below one another.
    fn outcome(&mut self, outcome: &Outcome, windows: &[(&LabelWindow, Range<usize>)]) {
        self.label(outcome.word);
        let top = self.top;
        let lanes = lanes(windows.iter().map(|(_, span)| span));
        for ((window, span), &lane) in windows.iter().zip(&lanes) {
            self.top = top + lane * LANE;
            self.bar(span, outcome.colour, &tooltip(window));
        }
        self.top = top + (lanes.iter().max().map_or(0, |lane| lane + 1)) * LANE + GAP;
    }

    /// Positions below the last row.
    fn axis(&mut self) {
        let (y, text) = (self.top as f64, self.top + 17);
        let style = format!("stroke=\"{INK}\"");
        self.drawing.line((LEFT, y), (RIGHT, y), &style);
        for pos in (0..=self.n_tokens).step_by(round_step(self.n_tokens, STEPS)) {
            let x = self.x(pos);
            self.drawing.line((x, y), (x, y + 4.0), &style);
            self.drawing.push(format_args!("<text x=\"{x:.2}\" y=\"{text}\" text-anchor=\"middle\">{pos}</text>"));
        }
        self.drawing.push(format_args!("<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">position</text>", LEFT - 30.0));
        self.next(AXIS);
    }
}

/// What a bar says of its window, as HTML.
fn tooltip(window: &LabelWindow) -> String {
    let answer = window.answer.as_deref().map(|answer| match answer.char_indices().nth(TOOLTIP_CHARS) {
        Some((end, _)) => format!("{}...", &answer[..end]),
        None => answer.to_owned(),
    });
    format!(
        "window {}: {}..{}, {}, answer {}",
        window.window,
        window.start,
        window.end,
        Escaped(&window.outcome),
        or_null(answer.as_deref())
    )
}

/// The lowest lane for each span in which it meets no earlier one. Spans come by their starts.
fn lanes<'s>(spans: impl Iterator<Item = &'s Range<usize>>) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::new();
    spans
        .map(|span| {
            let lane = ends.iter().position(|&end| end <= span.start).unwrap_or(ends.len());
            ends.resize(ends.len().max(lane + 1), 0);
            ends[lane] = span.end;
            lane
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_take_lanes_of_their_own() {
        let spans = [0..32, 16..48, 32..64, 40..44, 48..60, 48..50];
        assert_eq!(lanes(spans.iter()), [0, 1, 0, 2, 1, 2]);
    }
}
