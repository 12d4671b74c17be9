//! The page of the documentation that the tables of policies, parts and scores give: `docs/policies.md`.

use std::fmt::Write;

use epikv_signals::SCORES;

use super::parse::PARTS;
use super::registry::POLICIES;

/// What stands above the tables.
const HEAD: &str = "# Policies and scores

This page is made from the tables in the code:

```sh
cargo run --release -- policies --markdown > docs/policies.md
```

## Policies

What they mean and how they are compared: [eviction.md](eviction.md).

";

/// What stands above the table of scores.
const SCORE_HEAD: &str = "
## Scores

A score says what a token is worth; higher is kept. A frozen score gives each token one number, when the token is fed. The
others are computed from what is held, at each eviction. Tokens can be drawn (`select=draw`) by a score that is a weight. A
score of what is held averages over the heads that share a kept set.

";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    // Writing to a string does not fail.
    page.push_str("| policy | what it does | composition | source |\n| --- | --- | --- | --- |\n");
    for row in POLICIES {
        let _ = writeln!(page, "| `{}` | {} | `{}` | {} |", row.name, row.doc, row.policy, row.source);
    }
    page.push_str("\n## Parts\n\n| part | values |\n| --- | --- |\n");
    for (name, values) in PARTS.iter() {
        let _ = writeln!(page, "| `{name}` | {values} |");
    }
    page.push_str(SCORE_HEAD);
    page.push_str(
        "| score | what it is | needs | kind | source | differs in |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for row in SCORES {
        let spec = row.spec;
        let kind = match (spec.frozen, spec.weight) {
            (true, _) => "frozen",
            (_, true) => "weight of what is held",
            _ => "of what is held",
        };
        let forms: Vec<String> = row.forms().iter().map(|form| format!("`{form}`")).collect();
        let needs: Vec<&str> = spec.needs.iter().map(|need| need.name()).collect();
        let (forms, needs) = (forms.join(", "), needs.join(", "));
        let _ = writeln!(page, "| {forms} | {} | {needs} | {kind} | {} | {} |", spec.doc, spec.source, spec.differs);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_fresh() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/policies.md");
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        let how = "cargo run --release -- policies --markdown > docs/policies.md";
        assert!(stored == page(), "docs/policies.md is not what the tables say; run\n    {how}");
    }
}
