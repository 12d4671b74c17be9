//! Effect of smoothing on |rho|, with every signal under the same smoothers, and its effect without any relation.

use epikv_signals::Smoother;
use epikv_stats::moments::mean;
use epikv_stats::quantile::median;

use crate::study::findings::{DatasetFindings, Finding, Source};
use crate::study::settings::Settings;

/// |rho| below which a ratio says nothing.
const SMALL: f64 = 0.01;

pub(super) fn lines(dataset: &DatasetFindings, settings: &Settings) -> Vec<String> {
    let of_model =
        |smoother| dataset.findings.iter().filter(move |f| f.source == Source::Model && f.smoother == smoother);
    let spread =
        |smoother| mean(&of_model(smoother).filter_map(|f| f.correlation.pooled.tested.null_sd).collect::<Vec<_>>());
    let size = |f: &Finding| f.correlation.pooled.rho.map(f64::abs);
    let line = |smoother: Smoother| {
        let pairs: Vec<(f64, f64)> = of_model(smoother)
            .filter_map(|f| {
                let raw = dataset.find(f.source, f.signal, f.layer, Smoother::Raw)?;
                Some((size(f)?, size(raw)?))
            })
            .collect();
        let larger = pairs.iter().filter(|(smoothed, raw)| smoothed > raw).count();
        let ratios: Vec<f64> =
            pairs.iter().filter(|(_, raw)| *raw > SMALL).map(|(smoothed, raw)| smoothed / raw).collect();
        let ratio = median(&ratios)?;
        let spread = spread(smoother).zip(spread(Smoother::Raw));
        let null = spread.map_or_else(String::new, |(smoothed, raw)| {
            format!("; under other problems' labels rho has a standard deviation of {smoothed:.3}, raw of {raw:.3}")
        });
        Some(format!(
            "{} has the larger pooled |rho| in {larger} of {} columns, median ratio {ratio:.2}{null}",
            smoother.name(settings.window),
            pairs.len()
        ))
    };
    settings.smoothers.iter().filter(|s| **s != Smoother::Raw).filter_map(|s| line(*s)).collect()
}
