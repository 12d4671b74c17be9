//! `epikv export`.

use epikv_schemas::{LabelWindow, Provenance, read_table};

use crate::support::{Place, Ran, bytes, rewrite};

fn labelled() -> Place {
    let place = Place::new();
    place.traces();
    let label = ["label", "--traces", "traces.parquet", "--out", "labels", "--answer", "text", "--max-new", "16"];
    place.epikv(&[&label[..], &["--quiet"]].concat()).ok();
    place
}

fn export(place: &Place, out: &str, more: &[&str]) -> Ran {
    let run = ["export", "--traces", "traces.parquet", "--labels", "labels", "--out", out];
    place.epikv(&[&run[..], more].concat())
}

fn text(place: &Place, name: &str) -> String {
    String::from_utf8(bytes(&place.path(name))).unwrap()
}

#[test]
fn a_page_has_every_window_of_every_trace() {
    let place = labelled();
    let ran = export(&place, "pages/all.html", &[]).ok();
    assert!(ran.stderr().contains("2 traces with windows, 0 without"), "{}", ran.stderr());
    let page = text(&place, "pages/all.html");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let windows = read_table::<LabelWindow>(&place.path("labels/label_windows.parquet")).unwrap().0;
    assert!(!windows.is_empty());
    for window in &windows {
        let bar = format!("window {}: {}..{}, {}, answer", window.window, window.start, window.end, window.outcome);
        assert!(page.contains(&bar), "{bar}");
    }
    assert_eq!(page.matches("<details>").count(), 2);
    // The texts of a random model are arbitrary bytes; none of them is markup.
    assert!(!page.contains("<script") && !page.contains("<img"));
    export(&place, "b.html", &["--trace", "b"]).ok();
    let one = text(&place, "b.html");
    assert!(one.contains("<h1>Trace <bdi>b</bdi></h1>") && !one.contains("<details>"));
    export(&place, "a.html", &["--limit", "1"]).ok();
    assert!(text(&place, "a.html").contains("<h1>Trace <bdi>a</bdi></h1>"));
}

#[test]
fn a_page_is_not_replaced_unasked_and_what_is_wrong_is_named() {
    let place = labelled();
    place.write("page.html", "mine");
    export(&place, "page.html", &[]).refused(&["page.html exists already", "hint: --fresh"]);
    export(&place, "page.html", &["--fresh", "--trace", "c"]).refused(&["--trace c", "traces.parquet"]);
    assert_eq!(text(&place, "page.html"), "mine");
    export(&place, "page.html", &["--fresh"]).ok();
    assert_ne!(text(&place, "page.html"), "mine");
    export(&place, "page.txt", &[]).refused(&["--out page.txt", ".html"]);
    let run = ["export", "--traces", "traces.parquet", "--labels", "none", "--out", "new/page.html"];
    place.epikv(&run).refused(&["none/label_windows.parquet"]);
    assert!(!place.path("new").exists(), "nothing is left of a run that could not be");

    let path = place.path("labels/label_windows.parquet");
    let mut windows = read_table::<LabelWindow>(&path).unwrap().0;
    for window in &mut windows {
        window.trace_id.push('x');
    }
    rewrite(&path, &windows, &Provenance::new());
    export(&place, "other.html", &[]).refused(&["label_windows.parquet", "2 traces of traces.parquet, got none"]);
    for window in &mut windows {
        window.trace_id.pop();
        window.end = 1 << 20;
    }
    rewrite(&path, &windows, &Provenance::new());
    export(&place, "other.html", &[]).refused(&["trace a: window 0: expected a span within"]);
}
