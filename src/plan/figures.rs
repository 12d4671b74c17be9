//! The figures of a plan: requests that fit, and memory of explicit attention.

use anyhow::Result;
use epikv_eviction::report::{Line, LineKind, Panel, Plot, Point, svg};

use super::Plan;
use super::shape::{GIB, requests};
use crate::cli::PlanArgs;
use crate::job::Job;

/// The figures of a plan.
const FIGURES: [&str; 2] = ["figure_concurrency", "figure_prefill"];

/// Points of a projected line.
const POINTS: u64 = 64;

/// Writes both figures and their numbers.
pub(super) fn write(plan: &Plan, args: &PlanArgs, folder: &std::path::Path) -> Result<()> {
    let files: Vec<String> =
        FIGURES.iter().flat_map(|name| ["svg", "png", "csv"].map(|ending| format!("{name}.{ending}"))).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut job = Job::open("plan", folder, &files, args.fresh)?;
    for (name, plot) in FIGURES.into_iter().zip([concurrency(plan), prefill(plan)]) {
        job.figure(name, &svg(&plot), &plot.csv())?;
    }
    job.finish()
}

fn point(x: u64, y: f64) -> Point {
    Point { x: x as f64, y, interval: None }
}

/// Requests that fit, by tokens held.
fn concurrency(plan: &Plan) -> Plot {
    let (least, most) =
        (plan.tokens.iter().min().copied().unwrap_or(1), plan.tokens.iter().max().copied().unwrap_or(1));
    let mut places: Vec<u64> = (0..=POINTS).map(|i| least + (most - least) * i / POINTS).collect();
    places.dedup();
    let fit = |tokens: u64| Some(point(tokens, requests(plan.shape, plan.room, tokens, plan.value_bytes)? as f64));
    let line = |name: &str, kind, look, places: &[u64]| Line {
        name: name.to_owned(),
        kind,
        look,
        points: places.iter().copied().filter_map(fit).collect(),
    };
    // The curve has no markers of its own: only what was asked for is marked.
    let curve = line("basis=projected", LineKind::Curve, 1, &places);
    let asked = line("asked for", LineKind::Marks, 1, &plan.tokens);
    Plot {
        title: "Requests that fit beside the weights".to_owned(),
        y_label: "requests".to_owned(),
        y_max: None,
        rows: vec![vec![Panel { x_label: "tokens held by a request".to_owned(), lines: vec![curve, asked] }]],
        caption: vec![plan.formula(), plan.figures()],
    }
}

/// Memory of a prompt under explicit attention.
fn prefill(plan: &Plan) -> Plot {
    let most = plan.tokens.iter().chain(plan.measured.iter().map(|m| &m.tokens)).max().copied().unwrap_or(1);
    let places: Vec<u64> = (0..=POINTS).map(|i| most * i / POINTS).collect();
    // The device is the wall: what lies far beyond it need not be drawn.
    let (device, bytes) = (plan.room.bytes / GIB, plan.value_bytes);
    let measured: Vec<(u64, f64, f64)> =
        plan.measured.iter().map(|m| (m.tokens, m.attention_bytes as f64 / GIB, m.kv_bytes as f64 / GIB)).collect();
    let wall = if measured.is_empty() { 1.25 * device } else { f64::INFINITY };
    let line = |name: &str, look: usize, of: &dyn Fn(u64) -> f64| {
        let points = places.iter().map(|&tokens| point(tokens, of(tokens))).take_while(|p| p.y <= wall).collect();
        Line { name: format!("{name}, projected"), kind: LineKind::Curve, look, points }
    };
    let mut lines = vec![
        line("all matrices", 2, &|tokens| plan.shape.attention_bytes(tokens, bytes) as f64 / GIB),
        line("one layer", 5, &|tokens| {
            plan.shape.attention_bytes(tokens, bytes) as f64 / plan.shape.layers as f64 / GIB
        }),
        line("KV", 1, &|tokens| (tokens * plan.shape.kv_bytes_a_token(bytes)) as f64 / GIB),
        line("activations", 3, &|tokens| plan.shape.activation_bytes(tokens, bytes) as f64 / GIB),
    ];
    if measured.is_empty() {
        let level = Point { x: 0.0, y: device, interval: None };
        lines.insert(0, Line { name: "device".to_owned(), kind: LineKind::Level, look: 0, points: vec![level] });
    } else {
        let marks = |name: &str, look, of: fn(&(u64, f64, f64)) -> f64| Line {
            name: format!("{name}, measured"),
            kind: LineKind::Marks,
            look,
            points: measured.iter().map(|m| point(m.0, of(m))).collect(),
        };
        lines.push(marks("all matrices", 2, |m| m.1));
        lines.push(marks("KV", 1, |m| m.2));
    }
    Plot {
        title: "Memory of a prompt under explicit attention".to_owned(),
        y_label: "GiB".to_owned(),
        y_max: None,
        rows: vec![vec![Panel { x_label: "tokens of the prompt".to_owned(), lines }]],
        caption: vec![
            "explicit attention = layers x heads x tokens^2 x bytes a value; lines have basis=projected, marks \
             basis=measured."
                .to_owned(),
            plan.figures(),
        ],
    }
}
