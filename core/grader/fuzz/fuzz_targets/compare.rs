//! Parser and comparer on any two texts, cut at the first line break.
//!
//! ```sh
//! cargo +nightly fuzz run compare --fuzz-dir core/grader/fuzz -- -max_len=512 -max_total_time=3600
//! ```
#![no_main]

#[path = "../../tests/support/invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (a, b) = text.split_once('\n').unwrap_or((text, "1"));
    invariants::hold(a, b);
});
