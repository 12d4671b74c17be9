//! Causal rolling mean, deviation and z-score, streaming and by slice with equal bits.
//!
//! For the values `x_j` of a window that ends at position `t` and holds `c <= w` values:
//!
//! ```text
//! mean = sum(x_j) / c
//! sd   = sqrt(sum((x_j - mean)^2) / (c - ddof))        0 for c <= ddof
//! z    = (x_t - mean) / (sd + eps)                     0 for c < 2
//! ```
//!
//! Both sums are recomputed for every position, in f64, over the window in position order and about its oldest value.
//! Nothing is ever subtracted from a running sum, so an outlier is forgotten when it leaves the window, a constant
//! window has `z` exactly 0, and a large offset costs no digits (prefix sums in f32 lose half the variances at an
//! offset of 1000). The streaming and the slice form call the same function on the same slice. Cost `O(w)` a value.
//!
//! The window includes position `t`, so `|z| <= sqrt(w - 1)` for `ddof = 0`. With `lagged` it ends at `t - 1`.
//!
//! # References
//!
//! Chan, Golub & `LeVeque` 1983, *American Statistician* 37:242 (two-pass and shifted variance).

use crate::error::{Error, Result};

/// Independent partial sums, so that the window vectorises. Part of the definition: changing it changes bits.
const LANES: usize = 8;

/// A checked rolling window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RollingSpec {
    window: usize,
    ddof: usize,
    eps: f64,
    min_periods: usize,
    lagged: bool,
}

impl RollingSpec {
    /// A window of `window` values with `ddof` 0, `eps` 1e-6 and at least one value.
    ///
    /// # Errors
    ///
    /// [`Error::Window`] for an empty window.
    pub fn new(window: usize) -> Result<Self> {
        if window == 0 {
            return Err(Error::Window { got: window });
        }
        Ok(Self { window, ddof: 0, eps: 1e-6, min_periods: 1, lagged: false })
    }

    /// Divides by `c - ddof` instead of `c`.
    #[must_use]
    pub fn with_ddof(self, ddof: usize) -> Self {
        Self { ddof, ..self }
    }

    /// Changes the term added to the deviation.
    ///
    /// # Errors
    ///
    /// [`Error::Eps`] unless it is finite and at least 0.
    pub fn with_eps(self, eps: f64) -> Result<Self> {
        if eps.is_finite() && eps >= 0.0 { Ok(Self { eps, ..self }) } else { Err(Error::Eps { got: eps }) }
    }

    /// Leaves positions with fewer than `min_periods` values undefined. 0 counts as 1.
    ///
    /// # Errors
    ///
    /// [`Error::MinPeriods`] when the window can't hold so many.
    pub fn with_min_periods(self, min_periods: usize) -> Result<Self> {
        if min_periods > self.window {
            return Err(Error::MinPeriods { got: min_periods, window: self.window });
        }
        Ok(Self { min_periods: min_periods.max(1), ..self })
    }

    /// Ends the window one position before the value that is scored.
    #[must_use]
    pub fn lagged(self) -> Self {
        Self { lagged: true, ..self }
    }

    /// The statistics of `x` against the values of its window, in position order.
    fn point(&self, window: &[f64], x: f64) -> Option<RollingPoint> {
        let count = window.len();
        if count < self.min_periods {
            return None;
        }
        let pivot = window[0];
        let shift = lane_sum(window, |v| v - pivot) / count as f64;
        let squares = lane_sum(window, |v| (v - pivot - shift) * (v - pivot - shift));
        let sd = if count > self.ddof { (squares / (count - self.ddof) as f64).sqrt() } else { 0.0 };
        // With eps = 0 a window without spread would give 0/0.
        let scale = sd + self.eps;
        let distance = x - pivot - shift;
        let z = if count < 2 || distance == 0.0 { 0.0 } else { distance / scale };
        let point = RollingPoint { mean: pivot + shift, sd, z };
        (point.mean.is_finite() && point.sd.is_finite() && point.z.is_finite()).then_some(point)
    }
}

/// Sum of `f` over the window in [`LANES`] interleaved partial sums, added up in lane order.
fn lane_sum(window: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let mut chunks = window.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane += f(v);
        }
    }
    for (lane, &v) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane += f(v);
    }
    lanes.iter().sum()
}

/// Rolling statistics at one position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RollingPoint {
    /// Mean of the window.
    pub mean: f64,
    /// Standard deviation of the window.
    pub sd: f64,
    /// `(x - mean) / (sd + eps)`, 0 below two values.
    pub z: f64,
}

/// The streaming form: push one value, get its statistics.
///
/// # Examples
///
/// ```
/// use epikv_stats::{Rolling, RollingSpec};
///
/// let mut rolling = Rolling::new(RollingSpec::new(64)?);
/// let z: Vec<f64> = [1.0, 2.0, 4.0].iter().filter_map(|&x| rolling.push(x)).map(|p| p.z).collect();
/// assert_eq!(z[0], 0.0);
/// assert!((z[2] - 1.33630).abs() < 1e-5);
/// # Ok::<(), epikv_stats::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rolling {
    spec: RollingSpec,
    /// `[2 w]`. Every value is written at `i mod w` and `w` later, so that a full window is always one slice.
    ring: Vec<f64>,
    /// Values pushed since the start.
    pushed: usize,
}

impl Rolling {
    /// An empty window.
    pub fn new(spec: RollingSpec) -> Self {
        Self { spec, ring: vec![0.0; 2 * spec.window], pushed: 0 }
    }

    /// Takes the value of the next position and returns its statistics.
    ///
    /// Undefined (`None`) with fewer than `min_periods` values, and while the window holds a non-finite one.
    pub fn push(&mut self, x: f64) -> Option<RollingPoint> {
        if self.spec.lagged {
            let point = self.spec.point(self.values(), x);
            self.insert(x);
            point
        } else {
            self.insert(x);
            self.spec.point(self.values(), x)
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.pushed = 0;
    }

    /// The values in the window, oldest first.
    pub fn values(&self) -> &[f64] {
        let w = self.spec.window;
        if self.pushed < w {
            &self.ring[..self.pushed]
        } else {
            let start = self.pushed % w;
            &self.ring[start..start + w]
        }
    }

    fn insert(&mut self, x: f64) {
        let w = self.spec.window;
        let at = self.pushed % w;
        self.ring[at] = x;
        self.ring[at + w] = x;
        self.pushed += 1;
    }
}

/// Rolling statistics of a whole column `x` (`[n]`), `[n]`; bit-equal to pushing the values one by one.
///
/// A position is `None` where [`Rolling::push`] is.
pub fn rolling(x: &[f64], spec: RollingSpec) -> Vec<Option<RollingPoint>> {
    (0..x.len())
        .map(|t| {
            let end = if spec.lagged { t } else { t + 1 };
            spec.point(&x[end.saturating_sub(spec.window)..end], x[t])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(window: usize) -> RollingSpec {
        RollingSpec::new(window).expect("not empty")
    }

    fn z(x: &[f64], spec: RollingSpec) -> Vec<f64> {
        rolling(x, spec).into_iter().flatten().map(|p| p.z).collect()
    }

    #[test]
    fn golden_one_two_four() {
        // mean 7/3, sd sqrt(14)/3, z = (5/3) / (sd + 1e-6)
        let z = z(&[1.0, 2.0, 4.0], spec(64));
        assert!((z[2] - 1.33630).abs() < 1e-5);
        assert!((z[2] - (5.0 / 3.0) / (14.0_f64.sqrt() / 3.0 + 1e-6)).abs() < 1e-15);
        assert!((z[1] - 0.5 / (0.5 + 1e-6)).abs() < 1e-15);
        assert_eq!(z[0].to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn an_outlier_is_forgotten() {
        let points = rolling(&[1e5, 0.1, 0.2, 0.3, 0.4], spec(3).with_ddof(1));
        let last = points[4].expect("defined");
        assert!((last.sd - 0.1).abs() < 1e-16);
    }

    #[test]
    fn constant_values_have_no_deviation() {
        for p in rolling(&[0.1; 7], spec(3).with_eps(0.0).expect("finite")) {
            let p = p.expect("defined");
            assert_eq!((p.sd, p.z), (0.0, 0.0));
        }
    }

    #[test]
    fn lagged_leaves_the_value_out() {
        let points = rolling(&[1.0, 3.0, 4.0], spec(2).lagged());
        assert_eq!(points[0], None);
        assert_eq!(points[1].map(|p| p.z), Some(0.0));
        let last = points[2].expect("defined");
        assert!((last.z - 2.0 / (1.0 + 1e-6)).abs() < 1e-15);
    }

    #[test]
    fn infinity_is_undefined_until_it_leaves() {
        let x = [1.0, f64::INFINITY, 2.0, 3.0, 4.0];
        let defined: Vec<bool> = rolling(&x, spec(2)).iter().map(Option::is_some).collect();
        assert_eq!(defined, [true, false, false, true, true]);
    }

    #[test]
    fn settings_are_checked() {
        assert_eq!(RollingSpec::new(0), Err(Error::Window { got: 0 }));
        assert!(spec(4).with_min_periods(5).is_err());
        assert!(spec(4).with_eps(-1.0).is_err());
        let points = rolling(&[1.0, 2.0, 3.0], spec(3).with_min_periods(3).expect("fits"));
        assert_eq!(points[1], None);
        assert!(points[2].is_some());
    }

    #[test]
    fn reset_starts_over() {
        let mut rolling = Rolling::new(spec(2));
        let first = rolling.push(5.0);
        rolling.push(7.0);
        rolling.reset();
        assert_eq!(rolling.push(5.0), first);
        assert_eq!(rolling.values(), [5.0]);
    }
}
