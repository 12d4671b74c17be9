//! What the number of problems can show: the power of a test of rho on `n` independent units, by Fisher's z.

use epikv_signals::Smoother;
use epikv_stats::power::{min_detectable_rho, power};

use crate::study::findings::{DatasetFindings, Source};
use crate::study::settings::Settings;

/// Power that a study is planned for.
const PLANNED: f64 = 0.8;

pub(super) fn lines(dataset: &DatasetFindings, settings: &Settings) -> Vec<String> {
    let n = dataset.find(Source::None, "position", None, Smoother::Raw).map_or(0, |f| f.correlation.n_eff) as u64;
    let alpha = settings.confidence.alpha();
    let Some(least) = min_detectable_rho(n, alpha, PLANNED) else { return Vec::new() };
    let at = |rho: f64| power(rho, n, alpha).map(|power| format!("{:.0} % at {rho}", 100.0 * power));
    let powers: Vec<String> = [0.1, 0.2, 0.3, 0.5].into_iter().filter_map(at).collect();
    vec![format!(
        "with problems as units, n_eff = {n}, the least |rho| found with {:.0} % power at level {alpha:.2} is {least:.2}; power {}",
        100.0 * PLANNED,
        powers.join(", ")
    )]
}
