//! Axes and their ticks: round numbers, few of them.

/// Ticks of the axis of rho at most.
const RHO_TICKS: f64 = 7.0;

/// Steps of the axis of layers at most.
const LAYER_STEPS: usize = 7;

/// The smallest range that is drawn, so that noise does not fill the panel.
const LEAST: f64 = 0.1;

/// The axis of rho: its ends are ticks, and zero is always on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RhoAxis {
    /// Ends and steps in units of `step`.
    lowest: i32,
    highest: i32,
    step: f64,
    digits: usize,
}

impl RhoAxis {
    /// An axis over all of some finite values.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let (lo, hi) = values.into_iter().fold((-LEAST, LEAST), |(lo, hi), value| (lo.min(value), hi.max(value)));
        let steps = [(0.05, 2), (0.1, 1), (0.2, 1), (0.5, 1)];
        let fits = |&(step, _): &(f64, usize)| (hi / step).ceil() - (lo / step).floor() < RHO_TICKS;
        let (step, digits) = steps.into_iter().find(fits).unwrap_or(steps[3]);
        Self { lowest: (lo / step).floor() as i32, highest: (hi / step).ceil() as i32, step, digits }
    }

    pub(crate) fn lo(self) -> f64 {
        f64::from(self.lowest) * self.step
    }

    pub(crate) fn hi(self) -> f64 {
        f64::from(self.highest) * self.step
    }

    /// Ticks with their texts; the minus is a minus sign, not a hyphen.
    pub(crate) fn ticks(self) -> Vec<(f64, String)> {
        let text = |value: f64| {
            let sign = if value < 0.0 { "\u{2212}" } else { "" };
            format!("{sign}{:.*}", self.digits, value.abs())
        };
        (self.lowest..=self.highest).map(|i| f64::from(i) * self.step).map(|value| (value, text(value))).collect()
    }
}

/// Steps of an axis from zero up at most.
const MOST_STEPS: f64 = 6.0;

/// An axis from 0 to `hi`, which is a tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    pub(crate) hi: f64,
    step: f64,
}

impl Axis {
    /// An axis that holds all of some values; one without values, or with none above zero, ends at 1.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let most = values.into_iter().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let scale = 10_f64.powf((most / MOST_STEPS).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * scale);
        let step = steps.into_iter().find(|step| most / step <= MOST_STEPS).unwrap_or(10.0 * scale);
        // A value that is a tick must not gain a step by rounding.
        Self { hi: (most / step - 1e-9).ceil().max(1.0) * step, step }
    }

    /// Ticks with their texts.
    pub(crate) fn ticks(self) -> Vec<(f64, String)> {
        let n = (self.hi / self.step).round() as usize;
        let digits = (-self.step.log10().floor()).max(0.0) as usize;
        let text = |value: f64| match value {
            v if v >= 1e9 => format!("{}G", v / 1e9),
            v if v >= 1e6 => format!("{}M", v / 1e6),
            v if v >= 1e4 => format!("{}k", v / 1e3),
            v => format!("{v:.digits$}"),
        };
        (0..=n).map(|i| i as f64 * self.step).map(|value| (value, text(value))).collect()
    }
}

/// Layers that get a tick.
pub(crate) fn layer_ticks(n_layers: usize) -> Vec<usize> {
    (0..n_layers).step_by(round_step(n_layers.saturating_sub(1), LAYER_STEPS)).collect()
}

/// The smallest of 1, 2, 5, 10, 20, ... that goes into a length at most so many times.
pub fn round_step(length: usize, most: usize) -> usize {
    let scales = (0..).map_while(|power| 10_usize.checked_pow(power));
    let mut steps = scales.flat_map(|scale| [1, 2, 5].map(|digit| digit * scale));
    steps.find(|step| length / step <= most).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        for (n, want) in [(0, 1), (10, 1), (21, 2), (100, 10), (1234, 200), (99_999, 10_000), (110_000, 20_000)] {
            assert_eq!(round_step(n, 10), want, "{n}");
        }
    }

    #[test]
    fn ends_are_round_and_zero_is_inside() {
        let axis = RhoAxis::over([0.02, 0.31]);
        assert_eq!(
            axis.ticks().iter().map(|t| t.1.as_str()).collect::<Vec<_>>(),
            ["\u{2212}0.1", "0.0", "0.1", "0.2", "0.3", "0.4"]
        );
        assert!(axis.lo() <= -0.1 && axis.hi() >= 0.31);
        let flat = RhoAxis::over([]);
        assert_eq!((flat.ticks().len(), flat.ticks()[2].1.as_str()), (5, "0.00"));
        assert!(RhoAxis::over([-1.0, 1.0]).ticks().len() <= 7);
    }

    #[test]
    fn layers_are_marked_in_round_steps() {
        assert_eq!(layer_ticks(4), [0, 1, 2, 3]);
        assert_eq!(layer_ticks(32), [0, 5, 10, 15, 20, 25, 30]);
        assert_eq!(layer_ticks(1), [0]);
        assert!(layer_ticks(0).is_empty() && layer_ticks(80).len() <= 8);
    }

    #[test]
    fn ticks_are_round_and_few() {
        let texts = |most: f64| Axis::over([most]).ticks().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(512.0), ["0", "100", "200", "300", "400", "500", "600"]);
        assert_eq!(texts(1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(0.0), texts(1.0));
        assert_eq!(texts(0.013).last().map(String::as_str), Some("0.015"));
        for most in [3.0, 7.0, 41.0, 99.9, 1e5, 2.5e6, 1e-4] {
            let axis = Axis::over([most, 0.0]);
            assert!(axis.hi >= most && axis.ticks().len() <= 7, "{most}: {axis:?}");
        }
    }
}
