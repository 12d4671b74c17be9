//! The tables of an experiment as Markdown, which also reads well in a terminal.

use crate::policy::PositionMode;
use crate::summary::{Group, Summary};

/// What stands where a figure is undefined.
const UNDEFINED: &str = "-";

/// The report: what was asked, accuracy and cost, comparison with no eviction, notes. `title` and `facts` head it.
pub fn markdown(summary: &Summary, title: &str, facts: &[(String, String)]) -> String {
    let facts: Vec<Vec<String>> = facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
    let mut parts = vec![format!("# {title}\n"), table(&["", ""], &facts, &[])];
    parts.push("## Accuracy and cost\n".to_owned());
    parts.push(accuracy(summary));
    parts.push(
        "Right answers with a 95 % interval over the generations that could be graded (Wilson; clustered by problem \
         where there are several samples); a missing answer is not right. `capped` counts generations that ended at a \
         limit, `tokens/right` is all generated tokens for each right answer. `held` is the mean of the tokens that a layer \
         held, `kv` what was held at most, a mean over problems; `evictions` counts steps after which tokens were evicted, over all problems; `certificate` counts \
         problems in which the budget was kept after every eviction and nothing protected was lost, measured on the cache.\n"
            .to_owned(),
    );
    let compared = comparison(summary);
    if !compared.is_empty() {
        parts.push("## Comparisons\n".to_owned());
        parts.push(compared);
        parts.push(
            "Paired by problem and sample: exact McNemar for one run a problem, an exact sign flip of the differences by \
             problem for more. Contrasts declared with `--primary` are adjusted by Holm; all others are exploratory and \
             adjusted by Benjamini and Hochberg.\n"
                .to_owned(),
        );
    }
    let times = times(summary);
    if !times.is_empty() {
        parts.push("## Time\n".to_owned());
        parts.push(times);
        parts.push(
            "Summed over generations; several that run at once add up to more than the elapsed time.\n".to_owned(),
        );
    }
    parts.push("## Outcomes\n".to_owned());
    parts.push(outcomes(summary));
    let notes = notes(summary);
    if !notes.is_empty() {
        parts.push("## Notes\n".to_owned());
        parts.push(format!("- {}\n", notes.join("\n- ")));
    }
    parts.join("\n")
}

/// Policy, budget, accuracy, tokens, time, memory, evictions, certificate, protection.
pub fn accuracy(summary: &Summary) -> String {
    let row = |group: &Group| {
        let interval = group.ci_lo.zip(group.ci_hi);
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        vec![
            group.policy.clone(),
            budget(group),
            format!("{}/{}", group.n_right, group.n),
            group.accuracy.map_or(UNDEFINED.to_owned(), percent),
            interval.map_or(UNDEFINED.to_owned(), |(lo, hi)| format!("{}..{}", percent(lo), percent(hi))),
            number(group.mean_new_tokens, 1),
            format!("{}/{}", group.n_capped, group.n_decoded),
            number(group.tokens_per_right, 0),
            number(group.mean_held, 1),
            group.mean_peak_kv_bytes.map_or(UNDEFINED.to_owned(), bytes),
            group.n_evictions.to_string(),
            format!("{}/{}", group.n_certificate, group.n_decoded),
            group.protect.clone(),
            if group.needs_attention { "yes" } else { "no" }.to_owned(),
        ]
    };
    let heads = [
        "policy",
        "budget",
        "right",
        "%",
        "95 %",
        "tokens",
        "capped",
        "tokens/right",
        "held",
        "kv",
        "evictions",
        "certificate",
        "protect",
        "needs attention",
    ];
    table(&heads, &summary.groups.iter().map(row).collect::<Vec<_>>(), &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
}

/// Seconds by what they were spent on; empty where there are none that can be compared.
fn times(summary: &Summary) -> String {
    let row = |group: &Group| {
        let time = group.time.as_ref()?;
        let seconds = [time.wall_s, time.forward_s, time.score_s, time.select_s, time.move_s];
        let name = [group.policy.clone(), budget(group), number(Some(time.tokens_per_s), 0)];
        Some(name.into_iter().chain(seconds.map(|s| format!("{s:.3}"))).collect())
    };
    let rows: Vec<Vec<String>> = summary.groups.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = ["policy", "budget", "tok/s", "s", "forward", "score", "select", "move"];
    table(&heads, &rows, &[2, 3, 4, 5, 6, 7])
}

/// Each policy and budget against others; empty where nothing was compared.
pub fn comparison(summary: &Summary) -> String {
    let rows = summary.groups.iter().flat_map(|group| {
        group.versus.iter().map(|paired| {
            vec![
                group.policy.clone(),
                budget(group),
                paired.against.clone(),
                paired.n_pairs.to_string(),
                paired.wins.to_string(),
                paired.losses.to_string(),
                format!("{:.4}", paired.p),
                format!("{:.4}", paired.p_adjusted),
                if paired.primary { "primary" } else { "exploratory" }.to_owned(),
                paired.verdict.clone(),
            ]
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = ["policy", "budget", "against", "pairs", "wins", "losses", "p", "p adjusted", "declared", "verdict"];
    table(&heads, &rows, &[3, 4, 5, 6, 7])
}

/// How often each outcome occurred, with the outcomes that occurred at all as columns.
fn outcomes(summary: &Summary) -> String {
    let names: Vec<&str> = crate::outcome::Outcome::ALL
        .iter()
        .map(|outcome| outcome.name())
        .filter(|name| summary.groups.iter().any(|group| group.outcomes.contains_key(*name)))
        .collect();
    let row = |group: &Group| {
        let count = |name: &&str| group.outcomes.get(*name).copied().unwrap_or(0).to_string();
        [group.policy.clone(), budget(group)].into_iter().chain(names.iter().map(count)).collect()
    };
    let heads: Vec<&str> = ["policy", "budget"].into_iter().chain(names.iter().copied()).collect();
    let right: Vec<usize> = (2..heads.len()).collect();
    table(&heads, &summary.groups.iter().map(row).collect::<Vec<_>>(), &right)
}

/// What a reader of the tables must know.
pub fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if !summary.times_comparable {
        notes.push(
            "times are of several machines, kernels, batches or numbers of threads and are not compared".to_owned(),
        );
    }
    for group in &summary.groups {
        let name = format!("{} at {}", group.policy, budget(group));
        if group.budget.is_some() && group.n_decoded > 0 && group.n_evictions == 0 {
            notes.push(format!("{name}: nothing was evicted, so this is the run without eviction"));
        }
        if group.n_certificate < group.n_decoded {
            let n = group.n_decoded - group.n_certificate;
            notes.push(format!("{name}: the certificate does NOT hold in {n} problems; do not use this row"));
        }
        if group.position == PositionMode::Rewound.to_string() {
            notes.push(format!(
                "{name}: positions are rewound, which lets kept keys lie in the future of new tokens; only for \
                 reproducing runs made so"
            ));
        }
    }
    let mut layers: Vec<String> = summary
        .groups
        .iter()
        .filter_map(|group| Some(format!("{} reads the layers {}", group.policy, group.layers.as_ref()?)))
        .collect();
    layers.dedup();
    layers.sort();
    layers.dedup();
    notes.extend(layers);
    notes.extend(summary.failures.iter().map(|failure| format!("failed: {failure}")));
    notes
}

fn budget(group: &Group) -> String {
    match (&group.budget, group.mean_budget_tokens) {
        (None, _) => UNDEFINED.to_owned(),
        (Some(budget), Some(tokens)) if budget.starts_with("prompt") => format!("{budget} ({tokens:.0})"),
        (Some(budget), _) => budget.clone(),
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or(UNDEFINED.to_owned(), |value| format!("{value:.digits$}"))
}

fn bytes(bytes: f64) -> String {
    match bytes {
        b if b < 1024.0 => format!("{b:.0} B"),
        b if b < 1024.0 * 1024.0 => format!("{:.1} KiB", b / 1024.0),
        b if b < 1024.0 * 1024.0 * 1024.0 => format!("{:.1} MiB", b / 1024.0 / 1024.0),
        b => format!("{:.2} GiB", b / 1024.0 / 1024.0 / 1024.0),
    }
}

/// A Markdown table with aligned columns; columns in `right` are flushed right.
fn table(heads: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
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
