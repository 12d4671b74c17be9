//! The short form of a report: what fits on a few screens, with the rest named.

/// Lines of a report at most.
pub(crate) const REPORT_LINES: usize = 140;

/// The file that holds the whole report.
pub(crate) const DETAILS: &str = "report_details.md";

/// The report with the sections that fit into `lines` lines, in order, and a last line that names those left out.
pub(crate) fn short(whole: &str, lines: usize) -> String {
    if whole.lines().count() <= lines {
        return whole.to_owned();
    }
    let starts = whole.match_indices("\n## ").map(|(at, _)| at + 1);
    let starts: Vec<usize> = [0].into_iter().chain(starts).chain([whole.len()]).collect();
    let (mut kept, mut left_out) = (String::new(), Vec::new());
    // Two lines are for what is left out.
    let mut room = lines.saturating_sub(2);
    for ends in starts.windows(2) {
        let section = &whole[ends[0]..ends[1]];
        let n = section.lines().count();
        if n <= room {
            kept.push_str(section);
            room -= n;
        } else {
            let title = section.lines().next().unwrap_or_default();
            left_out.push(title.trim_start_matches('#').trim().to_owned());
        }
    }
    format!("{}\n\nMore in [{DETAILS}]({DETAILS}): {}.\n", kept.trim_end(), left_out.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_do_not_fit_are_named() {
        let long = "row\n".repeat(30);
        let whole = format!("# Title\n\n## In short\n\n- found\n\n## Long\n\n{long}\n## Notes\n\n- one\n");
        assert_eq!(short(&whole, 60), whole);
        let cut = short(&whole, 20);
        assert_eq!(
            cut,
            "# Title\n\n## In short\n\n- found\n\n## Notes\n\n- one\n\nMore in [report_details.md](report_details.md): Long.\n"
        );
        assert!(cut.lines().count() <= 20);
    }
}
