//! How long hostile answers take: the mean of several runs, in milliseconds. The goal is under 10. Time on the processor
//! where the system tells it (Linux), so that other programs play no part; elapsed time elsewhere.
//!
//! ```sh
//! cargo run --release -p epikv-grader --example hostile
//! ```
#![expect(clippy::print_stdout, reason = "an example shows its result")]

#[path = "../tests/support/hostile.rs"]
mod hostile;

use std::time::{Duration, Instant};

use epikv_grader::{Mode, compare, extract};

/// Enough for a clock that ticks every few milliseconds.
const RUNS: u32 = 40;
/// Characters of an answer that are shown.
const SHOWN: usize = 32;

fn mean(run: impl Fn()) -> Duration {
    let (start, on_processor) = (Instant::now(), processor_time());
    for _ in 0..RUNS {
        run();
    }
    let spent = on_processor.zip(processor_time()).map(|(before, after)| after.saturating_sub(before));
    spent.unwrap_or_else(|| start.elapsed()) / RUNS
}

/// What this thread has spent on a processor.
fn processor_time() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn main() {
    println!("{:<SHOWN$} {:<15} {:>11} {:>11}", "answer", "verdict", "compare, ms", "extract, ms");
    let mut slowest = Duration::ZERO;
    for (a, b) in hostile::pairs() {
        let compared = mean(|| drop(compare(&a, &b, Mode::Lenient)));
        let extracted = mean(|| drop(extract(&a, Mode::Lenient)));
        slowest = slowest.max(compared).max(extracted);
        let head: String = a.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
        let verdict = compare(&a, &b, Mode::Lenient).verdict.name();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{head:<SHOWN$} {verdict:<15} {:>11.3} {:>11.3}", ms(compared), ms(extracted));
    }
    println!("slowest: {:.3} ms", slowest.as_secs_f64() * 1e3);
}
