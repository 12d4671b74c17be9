//! Ticks: round numbers, few of them.

/// Ticks of the axis of rho at most, and of the axis of layers.
const RHO_TICKS: f64 = 7.0;
const LAYER_TICKS: usize = 8;

/// The smallest range that is drawn, so that noise does not fill the panel.
const LEAST: f64 = 0.1;

/// The axis of rho: its ends are ticks, and zero is always on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RhoAxis {
    /// Ends and steps in units of `step`.
    lowest: i32,
    highest: i32,
    step: f64,
    digits: usize,
}

impl RhoAxis {
    /// An axis over all of some finite values.
    pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let (lo, hi) = values.into_iter().fold((-LEAST, LEAST), |(lo, hi), value| (lo.min(value), hi.max(value)));
        let steps = [(0.05, 2), (0.1, 1), (0.2, 1), (0.5, 1)];
        let fits = |&(step, _): &(f64, usize)| (hi / step).ceil() - (lo / step).floor() < RHO_TICKS;
        let (step, digits) = steps.into_iter().find(fits).unwrap_or(steps[3]);
        Self { lowest: (lo / step).floor() as i32, highest: (hi / step).ceil() as i32, step, digits }
    }

    pub(super) fn lo(self) -> f64 {
        f64::from(self.lowest) * self.step
    }

    pub(super) fn hi(self) -> f64 {
        f64::from(self.highest) * self.step
    }

    /// Ticks with their texts; the minus is a minus sign, not a hyphen.
    pub(super) fn ticks(self) -> Vec<(f64, String)> {
        let text = |value: f64| {
            let sign = if value < 0.0 { "\u{2212}" } else { "" };
            format!("{sign}{:.*}", self.digits, value.abs())
        };
        (self.lowest..=self.highest).map(|i| f64::from(i) * self.step).map(|value| (value, text(value))).collect()
    }
}

/// Layers that get a tick.
pub(super) fn layer_ticks(n_layers: usize) -> Vec<usize> {
    let scales = (0..).map(|power| 10_usize.pow(power));
    let mut steps = scales.flat_map(|scale| [1, 2, 5].map(|digit| digit * scale));
    let step = steps.find(|step| n_layers.saturating_sub(1) / step < LAYER_TICKS).unwrap_or(1);
    (0..n_layers).step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
