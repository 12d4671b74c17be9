//! Figures for Vega-Lite: a spec that reads the CSV beside it, so that others can restyle what was drawn.

use serde_json::{Value, json};

use crate::colours::{BLUE, VERMILION};
use crate::heat::HeatChart;
use crate::layers::LineChart;

/// The grammar that the specs are written in.
const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v5.json";

/// A spec of lines: ribbons, whiskers, lines and points, a panel a column.
pub(super) fn lines(chart: &LineChart) -> String {
    let (names, colours): (Vec<&str>, Vec<&str>) =
        chart.looks().iter().map(|(name, look)| (*name, look.colour)).unzip();
    let colour =
        json!({ "field": "line", "type": "nominal", "title": null, "scale": { "domain": names, "range": colours } });
    let (layer, y) = (
        json!({ "field": "x", "type": "quantitative", "title": "layer", "axis": { "tickMinStep": 1 } }),
        json!({ "field": "y", "type": "quantitative", "title": chart.y_label }),
    );
    let bounds = |mark: Value, lo: &str, hi: &str| {
        json!({
            "transform": [{ "filter": format!("isValid(datum.{lo}) && isValid(datum.{hi})") }],
            "mark": mark,
            "encoding": {
                "x": layer, "y": { "field": lo, "type": "quantitative", "title": chart.y_label },
                "y2": { "field": hi }, "color": colour,
            },
        })
    };
    let bands: Vec<Value> = chart
        .bands
        .iter()
        .map(|b| json!({ "from": *b.layers.start() as f64 - 0.5, "to": *b.layers.end() as f64 + 0.5 }))
        .collect();
    let shaded = json!({
        "data": { "values": bands },
        "mark": { "type": "rect", "color": "#ebebeb" },
        "encoding": { "x": { "field": "from", "type": "quantitative" }, "x2": { "field": "to" } },
    });
    let zero = json!({
        "data": { "values": [{ "zero": 0 }] },
        "mark": { "type": "rule", "strokeWidth": 0.6 },
        "encoding": { "y": { "field": "zero", "type": "quantitative" } },
    });
    let drawn = json!({
        "transform": [{ "filter": "isValid(datum.y)" }],
        "mark": { "type": "line", "point": true },
        "encoding": { "x": layer, "y": y, "color": colour },
    });
    let ribbon = bounds(json!({ "type": "area", "opacity": 0.16 }), "ribbon_lo", "ribbon_hi");
    let whisker = bounds(json!({ "type": "rule", "strokeWidth": 0.7 }), "whisker_lo", "whisker_hi");
    let layers = if chart.bands.is_empty() {
        vec![zero, ribbon, whisker, drawn]
    } else {
        vec![shaded, zero, ribbon, whisker, drawn]
    };
    spec(
        chart.name,
        &chart.title,
        &chart.caption,
        &json!({
            "facet": { "field": "panel", "type": "nominal", "title": null, "sort": null },
            "columns": chart.columns.max(1),
            "spec": { "width": 220, "height": 132, "layer": layers },
        }),
    )
}

/// A spec of cells.
pub(super) fn heat(chart: &HeatChart) -> String {
    let (middle, reach) = (chart.middle, chart.reach());
    let scale = json!({
        "domain": [middle - reach, middle, middle + reach],
        "range": [VERMILION, "#ffffff", BLUE],
    });
    let names = |of: fn(&crate::heat::HeatPanel) -> &Vec<String>| chart.panels.first().map(|panel| of(panel).clone());
    let (rows, columns) = (names(|p| &p.rows), names(|p| &p.columns));
    spec(
        chart.name,
        &chart.title,
        &chart.caption,
        &json!({
            "facet": { "row": { "field": "panel", "type": "nominal", "title": null, "sort": null } },
            "spec": {
                "mark": "rect",
                "encoding": {
                    "x": { "field": "column", "type": "nominal", "title": chart.x_label, "sort": columns },
                    "y": { "field": "row", "type": "nominal", "title": chart.y_label, "sort": rows },
                    "color": { "field": "value", "type": "quantitative", "title": chart.value, "scale": scale },
                    "stroke": {
                        "condition": { "test": "isValid(datum.marked)", "value": "#1a1a1a" }, "value": null,
                    },
                },
            },
        }),
    )
}

fn spec(name: &str, title: &str, caption: &[String], what: &Value) -> String {
    let mut spec = json!({
        "$schema": SCHEMA,
        "title": title,
        "description": caption.join(" "),
        "data": { "url": format!("{name}.csv") },
    });
    if let (Some(all), Some(more)) = (spec.as_object_mut(), what.as_object()) {
        all.extend(more.clone());
    }
    format!("{spec:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_name_the_columns_of_their_csv() {
        let (chart, cells) = (crate::layers::lines::tests::chart(), crate::heat::tests::chart());
        for (name, text, csv) in [(chart.name, lines(&chart), chart.csv()), (cells.name, heat(&cells), cells.csv())] {
            let spec: Value = serde_json::from_str(&text).expect("JSON");
            let header: Vec<&str> = csv.lines().next().expect("a header").split(',').collect();
            let fields = text.split("\"field\": \"").skip(1).filter_map(|rest| rest.split('"').next());
            let own = ["from", "to", "zero"];
            assert!(fields.filter(|field| !own.contains(field)).all(|field| header.contains(&field)), "{text}");
            assert_eq!(spec["data"]["url"], format!("{name}.csv"));
        }
    }
}
