//! How long hostile answers take: the least of several runs, in milliseconds. The goal is under 10.
//!
//! ```sh
//! cargo run --release --workspace --example hostile
//! ```
#![expect(clippy::print_stdout, reason = "an example shows its result")]

#[path = "../tests/support/hostile.rs"]
mod hostile;

use std::time::{Duration, Instant};

use epikv_grader::{Mode, compare, extract};

/// Runs of which the fastest counts, since other programs may be running.
const RUNS: usize = 7;
/// Characters of an answer that are shown.
const SHOWN: usize = 32;

fn fastest(run: impl Fn()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..RUNS).map(time).min().unwrap_or_default()
}

fn main() {
    println!("{:<SHOWN$} {:<12} {:>11} {:>11}", "answer", "verdict", "compare, ms", "extract, ms");
    let mut slowest = Duration::ZERO;
    for (a, b) in hostile::pairs() {
        let compared = fastest(|| drop(compare(&a, &b, Mode::Lenient)));
        let extracted = fastest(|| drop(extract(&a, Mode::Lenient)));
        slowest = slowest.max(compared).max(extracted);
        let head: String = a.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
        let verdict = compare(&a, &b, Mode::Lenient).verdict.name();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{head:<SHOWN$} {verdict:<12} {:>11.3} {:>11.3}", ms(compared), ms(extracted));
    }
    println!("slowest: {:.3} ms", slowest.as_secs_f64() * 1e3);
}
