//! Markdown tables and the cells that stand in them.

use crate::analysis::group::Group;

/// What stands where a figure is undefined.
pub(crate) const UNDEFINED: &str = "-";

pub(crate) fn budget(group: &Group) -> String {
    match (&group.budget, group.mean_budget_tokens) {
        (None, _) => UNDEFINED.to_owned(),
        (Some(budget), Some(tokens)) if budget.starts_with("prompt") => format!("{budget} ({tokens:.0})"),
        (Some(budget), _) => budget.clone(),
    }
}

pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or(UNDEFINED.to_owned(), |value| format!("{value:.digits$}"))
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// An interval in percent.
pub(crate) fn percents(bounds: Option<(f64, f64)>) -> String {
    bounds.map_or(UNDEFINED.to_owned(), |(lo, hi)| format!("{}..{}", percent(lo), percent(hi)))
}

pub(crate) fn bytes(bytes: f64) -> String {
    match bytes {
        b if b < 1024.0 => format!("{b:.0} B"),
        b if b < 1024.0 * 1024.0 => format!("{:.1} KiB", b / 1024.0),
        b if b < 1024.0 * 1024.0 * 1024.0 => format!("{:.1} MiB", b / 1024.0 / 1024.0),
        b => format!("{:.2} GiB", b / 1024.0 / 1024.0 / 1024.0),
    }
}

/// A Markdown table with aligned columns; columns in `right` are flushed right.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].chars().count(), 3]).max().unwrap_or(3)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if right.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
    };
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(
            |(column, &width)| {
                if right.contains(&column) { format!("{:->w$}:", "", w = width - 1) } else { "-".repeat(width) }
            },
        )
        .collect();
    let mut text = line(&mut heads.iter().copied());
    text += &line(&mut rule.iter().map(String::as_str));
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "23.5".to_owned()]];
        let text = table(&["name", "n"], &rows, &[1]);
        assert_eq!(text, "| name |    n |\n| ---- | ---: |\n| a    |    1 |\n| long | 23.5 |\n");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!([900.0, 2048.0, 3.5 * 1_048_576.0].map(bytes), ["900 B", "2.0 KiB", "3.5 MiB"]);
        assert_eq!(bytes(2.0 * 1_073_741_824.0), "2.00 GiB");
        assert_eq!(number(None, 1), "-");
    }
}
