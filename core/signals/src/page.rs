//! The page of the documentation that the table of signals gives: `docs/signals.md`.

use std::fmt::Write;

use crate::signals::SIGNALS;

/// What stands above the table.
const HEAD: &str = "# Signals

This page is made from the table of signals in the code:

```sh
cargo run --release -- signals --markdown > docs/signals.md
```

A signal gives one number a token, and `epikv correlate` ranks it against the labels. A signal of layers has a value at
each layer, and some have the mean over layers too.

Every score of [policies.md](policies.md) is a signal as well, except `labels`: `SCORE` is the score of a token when the
trace has ended, and `SCORE@age=W` the score when `W` tokens have followed the token. A frozen score has its one number and
takes no age. No token is evicted meanwhile, all layers and heads share one kept set, and prompt tokens have no value.

```sh
epikv correlate --model DIR_OR_GGUF --traces traces.parquet --labels run/label --kernel explicit \\
  --signals 'hs_l2,snapkv,r-kv@age=64,vase@age=64,raas@age=64' --out run/scores
```

Each age runs the score once a token, so a long trace takes long under `@age`.

";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| signal | values | unit | what it is | source |\n| --- | --- | --- | --- | --- |\n");
    for row in SIGNALS {
        let (spec, values) = (row.spec, row.values());
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| `{}` | {values} | {} | {} | {} |",
            spec.name,
            spec.unit,
            cell(spec.doc),
            cell(spec.source)
        );
    }
    page
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_fresh() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/signals.md");
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        let how = "cargo run --release -- signals --markdown > docs/signals.md";
        assert!(stored == page(), "docs/signals.md is not what the table says; run\n    {how}");
    }
}
