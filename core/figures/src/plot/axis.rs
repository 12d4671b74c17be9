//! Axes from zero up with round ticks.

/// Steps of an axis at most.
const MOST_STEPS: f64 = 6.0;

/// An axis from 0 to `hi`, which is a tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    pub(super) hi: f64,
    step: f64,
}

impl Axis {
    /// An axis that holds all of some values; one without values, or with none above zero, ends at 1.
    pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let most = values.into_iter().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let scale = 10_f64.powf((most / MOST_STEPS).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * scale);
        let step = steps.into_iter().find(|step| most / step <= MOST_STEPS).unwrap_or(10.0 * scale);
        // A value that is a tick must not gain a step by rounding.
        Self { hi: (most / step - 1e-9).ceil().max(1.0) * step, step }
    }

    /// Ticks with their texts.
    pub(super) fn ticks(self) -> Vec<(f64, String)> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
