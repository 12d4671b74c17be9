//! The page of one trace.

use epikv_schemas::{LabelWindow, Trace};

use crate::checked::Checked;
use crate::error::Result;
use crate::facts::{WINDOW_HEADS, facts, legend, window_cells};
use crate::figure::figure;
use crate::html::{Escaped, isolated, table_row};
use crate::style::STYLE;

/// The page of some traces and the windows of each: a whole HTML document that stands alone. One trace fills it; of several
/// each is under its name, closed until it is asked for.
///
/// # Errors
/// If a window or a span does not belong to its trace, or an outcome is not one of the known words.
pub fn traces_page(traces: &[(&Trace, &[LabelWindow])]) -> Result<String> {
    if let [(trace, windows)] = traces {
        let title = format!("Trace {}", Escaped(&trace.trace_id));
        let heading = format!("Trace {}", isolated(&trace.trace_id));
        return Ok(document(&title, &heading, &section(trace, windows)?));
    }
    let folded = |(trace, windows): &(&Trace, &[LabelWindow])| {
        let n_flipped = windows.iter().filter(|window| window.flipped == Some(true)).count();
        let (name, n) = (isolated(&trace.trace_id), windows.len());
        let head = format!("<summary>{name}: {n_flipped} of {n} windows flip the answer</summary>\n");
        Ok(format!("<details>\n{head}{}</details>\n", section(trace, windows)?))
    };
    let folded: Vec<String> = traces.iter().map(folded).collect::<Result<_>>()?;
    let title = format!("{} traces", traces.len());
    Ok(document(&title, &title, &folded.concat()))
}

/// A whole document; its title is HTML without tags, its heading HTML.
fn document(title: &str, heading: &str, body: &str) -> String {
    [
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        &format!("<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{heading}</h1>\n"),
        body,
        "</body>\n</html>\n",
    ]
    .concat()
}

/// What a page says of one trace.
fn section(trace: &Trace, windows: &[LabelWindow]) -> Result<String> {
    let checked = Checked::new(trace, windows)?;
    let facts: Vec<String> =
        facts(trace, windows).iter().map(|(name, text)| format!("<dt>{name}</dt><dd>{text}</dd>\n")).collect();
    let head = |names: &[&str]| table_row("th", &names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let legend: Vec<String> = legend(&checked).iter().map(|cells| table_row("td", cells)).collect();
    let mut in_order: Vec<&LabelWindow> = windows.iter().collect();
    in_order.sort_by_key(|window| window.window);
    let rows: Vec<String> = in_order.into_iter().map(|window| table_row("td", &window_cells(window))).collect();
    Ok([
        &format!("<dl>\n{}</dl>\n", facts.concat()),
        "<h2>Which windows does the answer depend on?</h2>\n",
        "<p>Each bar is a window of tokens that was overwritten by filler before the answer was regenerated.</p>\n",
        &figure(trace, &checked),
        &format!("<table>\n{}{}</table>\n", head(&["outcome", "the regeneration gave", "windows"]), legend.concat()),
        &format!("<h2>Problem</h2>\n<pre>{}</pre>\n", Escaped(&trace.problem)),
        &format!("<h2>Generated text</h2>\n<pre>{}</pre>\n", Escaped(&trace.text)),
        &format!("<h2>All windows</h2>\n<table>\n{}{}</table>\n", head(&WINDOW_HEADS), rows.concat()),
    ]
    .concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::outcome::OUTCOMES;
    use crate::shared::{hostile, trace, window};

    fn trace_page(trace: &Trace, windows: &[LabelWindow]) -> Result<String> {
        traces_page(&[(trace, windows)])
    }

    #[test]
    fn every_window_has_a_bar_in_the_colour_of_its_outcome() {
        let windows: Vec<_> = OUTCOMES.iter().zip(0..).map(|(o, i)| window(i, 20 + 16 * i, o.word)).collect();
        let page = trace_page(&trace(), &windows).expect("they belong together");
        for (outcome, window) in OUTCOMES.iter().zip(&windows) {
            let span = format!("window {}: {}..{}, {}, answer", window.window, window.start, window.end, outcome.word);
            let bar = page.lines().find(|line| line.contains(&span)).expect("a bar");
            assert!(bar.contains(outcome.colour), "{bar}");
        }
        assert!(page.contains("<dt>windows that flip the answer</dt><dd>2 of 4 decided, 6 in all</dd>"));
        assert!(page.contains(">needed (known)</text>") && page.contains("needed by the answer: 30..32"));
        // To scale: 20 of 160 tokens from the left edge at 175, in 810 units; a bar is one unit short of its 32 tokens.
        assert!(page.contains("x=\"276.25\"") && page.contains("width=\"161.00\""));
    }

    #[test]
    fn no_text_of_a_record_becomes_markup() {
        let (trace, windows) = hostile();
        let several = traces_page(&[(&trace, &windows), (&trace, &windows)]).expect("they belong together");
        assert!(!several.contains("<script") && !several.contains("alert('"));
        let page = trace_page(&trace, &windows).expect("they belong together");
        assert!(!page.contains("<script") && !page.contains("alert('"));
        // Two texts each in head and figure, all of the facts, problem and text, and the cells of the table.
        assert!(page.matches("&lt;script&gt;").count() >= 14, "{page}");
        for tag in ["html", "head", "body", "title", "style", "dl", "svg", "rect", "table", "tr", "td", "pre"] {
            let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "<{tag}>");
        }
    }

    #[test]
    fn nothing_is_fetched() {
        let page = trace_page(&trace(), &[window(0, 20, "changed")]).expect("they belong together");
        for from_outside in ["http:", "https:", "src=", "href", "url(", "@import", "<link", "<script", "<img"] {
            assert!(!page.contains(from_outside), "{from_outside}");
        }
    }

    #[test]
    fn the_order_of_the_rows_does_not_matter_and_no_windows_are_fine() {
        let mut windows = vec![window(0, 20, "same"), window(1, 36, "changed"), window(2, 52, "same")];
        let page = trace_page(&trace(), &windows);
        windows.reverse();
        assert_eq!(trace_page(&trace(), &windows), page);
        assert!(trace_page(&trace(), &[]).expect("a trace alone").contains("0 of 0 decided, 0 in all"));
    }

    #[test]
    fn several_traces_are_under_their_names() {
        let windows = [window(0, 20, "same"), window(1, 36, "changed")];
        let other = Trace { trace_id: "u".to_owned(), ..trace() };
        let page = traces_page(&[(&trace(), &windows), (&other, &[])]).expect("they belong together");
        assert!(
            page.contains("<h1>2 traces</h1>") && page.contains("<summary><bdi>t</bdi>: 1 of 2 windows flip"),
            "{page}"
        );
        assert!(page.contains("<summary><bdi>u</bdi>: 0 of 0 windows"), "{page}");
        for tag in ["details", "summary", "svg"] {
            let opened = page.matches(&format!("<{tag}")).count();
            assert_eq!((opened, page.matches(&format!("</{tag}>")).count()), (2, 2), "<{tag}>");
        }
        assert_eq!(page.matches("<html").count(), 1);
        assert!(traces_page(&[(&other, &windows), (&trace(), &windows)]).is_err(), "windows of another trace");
    }

    #[test]
    fn records_that_do_not_belong_together_are_refused() {
        let message = |window| trace_page(&trace(), &[window]).expect_err("does not belong").to_string();
        let mut other = window(3, 20, "same");
        other.trace_id = "u".to_owned();
        assert_eq!(message(other), "window 3: expected trace t, got u");
        assert_eq!(message(window(3, 150, "same")), "trace t: window 3: expected a span within 0..160, got 150..182");
        assert!(message(window(3, 20, "maybe")).ends_with("same_value_other_form, same, got \"maybe\""));
        let mut odd = trace();
        odd.gold_spans = Some(vec![30, 32, 40]);
        assert!(matches!(trace_page(&odd, &[]), Err(Error::Trace(_))));
    }
}
