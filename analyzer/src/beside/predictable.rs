//! Does the late band say more than that a token was predictable? Rho within traces of the label with `hs_l2`, averaged
//! over the layers of band B and smoothed: plain, and given the surprisal of the token, smoothed in the same way.
//!
//! If predictability explains the late band, the second is 0.

use epikv_signals::Smoother;
use epikv_stats::moments::{mean, mean_of_counts};
use epikv_stats::partial::partial_spearman;
use epikv_stats::pool::clipped_z;
use epikv_stats::spearman;

use crate::error::Result;
use crate::study::bands::{BAND_SIGNAL, Band};
use crate::study::column::smooth;
use crate::study::pools::{problem_sets, problems};
use crate::study::resamples::Resamples;
use crate::study::sample::Sample;
use crate::study::settings::Settings;

/// Tokens that a partial coefficient needs.
const MIN_TOKENS: usize = 8;

/// Band B against the labels of one problem set, with and without surprisal. Undefined parts are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenSurprisal {
    /// The problem set.
    pub dataset: String,
    /// Traces at which both coefficients are defined.
    pub n_traces: usize,
    /// Their problems: the units of the figures.
    pub n_problems: usize,
    /// Rho within traces.
    pub rho: Option<f64>,
    /// Its interval by the bootstrap over problems.
    pub interval: Option<(f64, f64)>,
    /// Rho within traces given the surprisal.
    pub given: Option<f64>,
    /// Its interval.
    pub given_interval: Option<(f64, f64)>,
}

/// Every problem set and pool; none without the step norm of band B and the surprisal.
///
/// # Errors
/// If the window of the smoothers is empty.
pub fn given_surprisal(samples: &[Sample], n_layers: usize, settings: &Settings) -> Result<Vec<GivenSurprisal>> {
    let [_, band] = Band::both(n_layers);
    let resamples = Resamples::new(settings.seed, settings.replicates);
    let mut found = Vec::new();
    for (dataset, own) in problem_sets(samples, &settings.pools) {
        let z = own.iter().map(|sample| of_trace(sample, &band, settings)).collect::<Result<Vec<_>>>()?;
        let problems = problems(&own).only(|trace| z[trace].is_some());
        let z: Vec<[f64; 2]> = z.into_iter().flatten().collect();
        let figure = |at: usize| {
            let z = problems.means(&z.iter().map(|z| z[at]).collect::<Vec<f64>>());
            let rho = mean_of_counts(&z, &vec![1; z.len()]).map(f64::tanh);
            (rho, rho.and_then(|rho| resamples.draws_of_rho(&z).interval(rho, settings.confidence)))
        };
        let ((rho, interval), (given, given_interval)) = (figure(0), figure(1));
        if rho.is_some() {
            let (n_traces, n_problems) = (z.len(), problems.len());
            found.push(GivenSurprisal { dataset, n_traces, n_problems, rho, interval, given, given_interval });
        }
    }
    Ok(found)
}

/// What the page says.
pub fn markdown(found: &[GivenSurprisal], n_layers: usize, settings: &Settings) -> String {
    if found.is_empty() {
        return String::new();
    }
    let [_, band] = Band::both(n_layers);
    let figure = |rho: Option<f64>, interval: Option<(f64, f64)>| {
        let interval = interval.map_or_else(|| "[-]".to_owned(), |(lo, hi)| format!("[{lo:+.3}, {hi:+.3}]"));
        rho.map_or_else(|| "-".to_owned(), |rho| format!("{rho:+.3} {interval}"))
    };
    let line = |found: &GivenSurprisal| {
        format!(
            "- {}: {}, {}: rho within traces of {} problems {}, given the surprisal {}",
            found.dataset,
            band.describe(),
            Smoother::Mean.name(settings.window),
            found.n_problems,
            figure(found.rho, found.interval),
            figure(found.given, found.given_interval)
        )
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    format!("## Band B given surprisal\n\n{}", lines.join("\n"))
}

/// Fisher's z of both coefficients of a trace; `None` where one is undefined.
fn of_trace(sample: &Sample, band: &Band, settings: &Settings) -> Result<Option<[f64; 2]>> {
    let recording = &sample.recording;
    let smoothed = |signal: &str, layer: Option<usize>| {
        let column = recording.columns.iter().find(|c| c.signal == signal && c.layer == layer);
        column.map(|c| smooth(&c.values, recording.n_prompt, Smoother::Mean, settings)).transpose()
    };
    let layers = band.layers.clone().map(|layer| smoothed(BAND_SIGNAL, Some(layer))).collect::<Result<Vec<_>>>()?;
    let (Some(layers), Some(surprisal)) =
        (layers.into_iter().collect::<Option<Vec<_>>>(), smoothed("surprisal", None)?)
    else {
        return Ok(None);
    };
    let (mut steps, mut labels, mut controls) = (Vec::new(), Vec::new(), Vec::new());
    for &(pos, important) in sample.mask.tokens() {
        let of_layers: Option<Vec<f64>> = layers.iter().map(|layer| layer[pos].map(f64::from)).collect();
        if let (Some(step), Some(control)) = (of_layers.and_then(|all| mean(&all)), surprisal[pos]) {
            steps.push(step);
            labels.push(f64::from(u8::from(important)));
            controls.push(f64::from(control));
        }
    }
    if steps.len() < MIN_TOKENS {
        return Ok(None);
    }
    let plain = spearman(&steps, &labels);
    let partial = partial_spearman(&steps, &labels, &[&controls]).map(|p| p.r);
    Ok(plain.zip(partial).map(|(plain, partial)| [clipped_z(plain).0, clipped_z(partial).0]))
}

#[cfg(test)]
mod tests {
    use epikv_stats::{Confidence, FisherMethod};

    use super::*;
    use crate::record::{Column, Recording, WindowFrom};
    use crate::shared::label;
    use crate::study::join::Mask;

    #[test]
    fn a_band_that_is_surprisal_says_nothing_more() {
        let n = 60;
        let surprisal: Vec<Option<f32>> = (0..n).map(|i| Some(((i * 37) % 61) as f32)).collect();
        let column = |signal, layer| Column { signal, layer, values: surprisal.clone() };
        let mut columns: Vec<Column> = (0..4).map(|layer| column(BAND_SIGNAL, Some(layer))).collect();
        columns.push(column("surprisal", None));
        let recording = Recording { trace_id: "t".to_owned(), token_ids: vec![1; n], n_prompt: 0, columns };
        let labels: Vec<_> =
            (0..n).map(|i| label(i as i32, 1, true, Some((i * 37) % 61 + (i * 13) % 17 > 38))).collect();
        let mask = Mask::new(&recording, &labels).expect("its labels");
        let mut sample = Sample {
            dataset: "d".to_owned(),
            problem_id: "p".to_owned(),
            recording,
            random: None,
            mask,
            windows: None,
        };
        let settings = Settings {
            smoothers: vec![Smoother::Mean],
            window: 1,
            window_from: WindowFrom::Decode,
            confidence: Confidence::P95,
            fisher: FisherMethod::Plain,
            replicates: 0,
            surrogates: 0,
            seed: 0,
            max_lag: 0,
            pools: Vec::new(),
        };
        let found = |sample: &Sample| given_surprisal(&vec![sample.clone(); 6], 4, &settings).expect("a window");
        assert!(found(&sample).is_empty(), "determined by it");
        assert_eq!(markdown(&[], 4, &settings), "");
        // A little else in the steps makes the partial coefficient defined, and it is far below the plain one.
        for (i, column) in sample.recording.columns.iter_mut().take(4).enumerate() {
            for (at, value) in column.values.iter_mut().enumerate() {
                *value = value.map(|v| v + ((at * 7 + i * 3) % 5) as f32 * 3.0);
            }
        }
        let [_, band] = Band::both(4);
        let [plain, partial] = of_trace(&sample, &band, &settings).expect("a window").expect("defined");
        assert!(plain > 0.8 && partial.abs() < 0.35, "{plain} {partial}");
        // Six times the same trace: one problem.
        let six = found(&sample).remove(0);
        assert_eq!((six.dataset.as_str(), six.n_traces, six.n_problems), ("d", 6, 1));
        assert!((six.rho.expect("defined") - plain.tanh()).abs() < 1e-12);
        assert!((six.given.expect("defined") - partial.tanh()).abs() < 1e-12);
        assert!(markdown(&[six], 4, &settings).contains("given the surprisal"));
    }
}
