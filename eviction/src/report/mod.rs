//! The tables of an experiment as Markdown, which also reads well in a terminal, as CSV and as a figure.

mod csv;
mod in_short;
mod plot;
mod sections;
pub(crate) mod table;

pub use epikv_figures::plot::{Line, LineKind, Panel, Plot, Point, svg};

pub use self::csv::csv;
pub use self::plot::accuracy_plot;
pub use self::sections::swap;

use epikv_words::exact_p;

use self::table::{UNDEFINED, budget, bytes, number, percent, percents, table};
use crate::analysis::cost::Cost;
use crate::analysis::group::Group;
use crate::analysis::summary::Summary;
use crate::policy::PositionMode;

/// The report: what was asked, accuracy and cost, comparison with no eviction, notes. `title` and `facts` head it.
pub fn markdown(summary: &Summary, title: &str, facts: &[(String, String)]) -> String {
    let facts: Vec<Vec<String>> = facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
    let mut parts = vec![format!("# {title}\n")];
    let short = in_short::lines(summary);
    if !short.is_empty() {
        parts.push(format!("**In short**\n\n- {}\n", short.join("\n- ")));
    }
    parts.push(table(&["", ""], &facts, &[]));
    let mut section = |title: &str, table: String, text: &str| {
        if !table.is_empty() {
            parts.push(format!("## {title}\n\n{table}"));
            parts.extend((!text.is_empty()).then(|| format!("{text}\n")));
        }
    };
    section(
        "Accuracy",
        accuracy(summary),
        "Right answers with a 95 % interval over the generations that could be graded (Wilson; clustered by problem where \
         there are several samples); a missing answer is not right. `tokens` and `s` are the mean of generated tokens and \
         of seconds a generation; seconds are left out where they cannot be compared. `held` is the mean of the tokens \
         that a layer held, `steady` that from the first eviction on, `peak` the most, means over problems; `kv` is what \
         the peak takes; `evictions` counts steps after which tokens were evicted, over all problems; `certificate` \
         counts problems in which the budget was kept after every eviction and nothing protected was lost, measured on \
         the cache.",
    );
    section(
        "Only the score differs",
        sections::swap(summary),
        "In each table only the score differs. Cells are right answers in percent with their 95 % intervals.",
    );
    section(
        "Cost",
        cost(summary),
        "`capped` are generations that ended at a limit (Wilson). The cost of a right answer is a sum over all \
         generations, wrong ones included, divided by the number of right answers: in generated tokens, and in bytes of \
         keys and values held times steps. Intervals resample problems; an open end means that too many resamples have no \
         right answer.",
    );
    section(
        "Comparisons",
        comparison(summary),
        "Paired by problem and sample: exact McNemar and Tango's interval of the difference for one run a problem; an \
         exact sign flip of the differences by problem and a bootstrap over problems for more. Contrasts declared with \
         `--primary` are adjusted by Holm; all others are exploratory and adjusted by Benjamini and Hochberg. Two \
         policies are equivalent only within a margin declared with `--margin` before the run, if the whole interval lies \
         inside it; `n for margin` are the problems at which a difference of the margin would be found in four of five \
         runs, with as many discordant problems.",
    );
    section(
        "Problem sets",
        sections::strata(summary),
        "Discordant runs by problem set; the comparisons above pool them.",
    );
    section("Samples", sections::samples(summary), "avg@k is the mean over samples, its error clustered by problem.");
    section(
        "Draws",
        sections::components(summary),
        "Components of the variance of right or not: between problems, between eviction seeds, between samples, and what \
         the last two do together. A component below zero is noise about zero.",
    );
    section(
        "Drift",
        sections::drift(summary),
        "Signals under eviction against those without, at the same tokens: mean absolute difference in units of the mean \
         size, and Spearman's rho of the two, a mean over layers and generations.",
    );
    section(
        "Time",
        times(summary),
        "Summed over generations; several that run at once add up to more than the elapsed time.",
    );
    section("Outcomes", outcomes(summary), "");
    section("Policies", sections::compositions(summary), "");
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
        vec![
            group.policy.clone(),
            budget(group),
            format!("{}/{}", group.n_right, group.n),
            group.accuracy.map_or(UNDEFINED.to_owned(), percent),
            percents(group.ci_lo.zip(group.ci_hi)),
            number(group.mean_new_tokens, 1),
            number(group.time.as_ref().map(|time| time.mean_wall_s), 2),
            number(group.mean_held, 1),
            number(group.mean_steady, 1),
            number(group.mean_peak, 1),
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
        "s",
        "held",
        "steady",
        "peak",
        "kv",
        "evictions",
        "certificate",
        "protect",
        "needs attention",
    ];
    table(&heads, &summary.groups.iter().map(row).collect::<Vec<_>>(), &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
}

/// Limits that ended generations, and what a right answer cost.
fn cost(summary: &Summary) -> String {
    let of = |cost: Option<Cost>, show: fn(f64) -> String| {
        let bounds = |cost: Cost| {
            let end = |bound: Option<f64>| bound.map_or(String::new(), show);
            format!("{}..{}", end(cost.lo), end(cost.hi))
        };
        [cost.map_or(UNDEFINED.to_owned(), |cost| show(cost.ratio)), cost.map_or(UNDEFINED.to_owned(), bounds)]
    };
    let row = |group: &Group| {
        let first = [
            group.policy.clone(),
            budget(group),
            number(group.mean_new_tokens, 1),
            format!("{}/{}", group.n_capped, group.n_decoded),
            percents(group.capped_lo.zip(group.capped_hi)),
        ];
        let tokens = of(group.tokens_per_right, |tokens| format!("{tokens:.0}"));
        first.into_iter().chain(tokens).chain(of(group.kv_byte_steps_per_right, bytes)).collect()
    };
    let heads =
        ["policy", "budget", "tokens", "capped", "% 95 %", "tokens/right", "95 %", "KV byte-steps/right", "95 %"];
    table(&heads, &summary.groups.iter().map(row).collect::<Vec<_>>(), &[2, 3, 4, 5, 6, 7, 8])
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
                percent(paired.difference),
                percents(paired.lo.zip(paired.hi)),
                exact_p(paired.p),
                exact_p(paired.p_adjusted),
                if paired.primary { "primary" } else { "exploratory" }.to_owned(),
                paired.n_for_margin.map_or(UNDEFINED.to_owned(), |n| n.to_string()),
                paired.verdict.clone(),
            ]
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = [
        "policy",
        "budget",
        "against",
        "pairs",
        "wins",
        "losses",
        "points",
        "95 %",
        "p",
        "p adjusted",
        "declared",
        "n for margin",
        "verdict",
    ];
    table(&heads, &rows, &[3, 4, 5, 6, 7, 8, 9, 11])
}

/// How often each outcome occurred, with the outcomes that occurred at all as columns.
fn outcomes(summary: &Summary) -> String {
    let names: Vec<&str> = crate::experiment::outcome::Outcome::ALL
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
    if let Some(margin) = summary.margin {
        notes.push(format!("declared before the run: equivalent means within {} points", 100.0 * margin));
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
                "{name}: positions are rewound, so new tokens can get smaller positions than kept keys; use it only to \
                 reproduce runs that did this"
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
