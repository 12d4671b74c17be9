//! Times Spearman's rho of one column against binary labels, for `benches/peers/spearman.py`.
//!
//! `cargo run --release -p epikv-stats --example time_column -- FOLDER RUNS` reads `signal.f32` and `label.u8` (little-endian,
//! one byte a label) of a folder and prints rho and the least and median seconds as JSON. Reading is not timed.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use epikv_stats::{BinaryRanks, RankScratch};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("expected FOLDER RUNS")?);
    let runs: usize = args.next().ok_or("expected FOLDER RUNS")?.parse()?;
    let bytes = std::fs::read(folder.join("signal.f32"))?;
    let signal: Vec<f32> = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    let important: Vec<bool> = std::fs::read(folder.join("label.u8"))?.into_iter().map(|one| one != 0).collect();
    let (mut seconds, mut rho) = (Vec::new(), None);
    for _ in 0..runs.max(1) {
        // Buffers are part of the work: a caller with one column has none to lend.
        let started = Instant::now();
        let ranks = BinaryRanks::from_f32(&signal, &important, &mut RankScratch::default());
        rho = ranks.and_then(|ranks| ranks.rho());
        seconds.push(started.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let rho = rho.ok_or("rho is undefined")?;
    writeln!(
        std::io::stdout(),
        "{{\"rho\": {rho:.17}, \"min_s\": {:.6}, \"median_s\": {:.6}}}",
        seconds[0],
        seconds[seconds.len() / 2]
    )?;
    Ok(())
}
