//! The mean direction of keys, and how much a key points along it.
//!
//! ```text
//! a      = sum over keys i of k_i / |k_i|
//! cos(k) = (k / |k|) . a / |a|
//! ```
//!
//! The mean and the sum have one direction, so the sum is what is stored. A key of length zero has no direction and adds
//! nothing.

use super::numbers::norm;

/// The sum of the directions of some keys, `[D]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directions(Vec<f64>);

impl Directions {
    /// Adds the direction of a key.
    pub(crate) fn add(&mut self, key: &[f32]) {
        self.0.resize(key.len(), 0.0);
        if let Some(direction) = direction(key) {
            self.0.iter_mut().zip(direction).for_each(|(sum, x)| *sum += x);
        }
    }

    /// The mean direction so far.
    pub(crate) fn mean(&self) -> MeanDirection<'_> {
        MeanDirection { sum: &self.0, length: self.0.iter().map(|x| x * x).sum::<f64>().sqrt() }
    }
}

/// The mean direction of some keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeanDirection<'a> {
    sum: &'a [f64],
    /// `|a|`.
    length: f64,
}

impl MeanDirection<'_> {
    /// The cosine of a key with the mean direction; `None` where one of them has no length.
    pub(crate) fn cosine(self, key: &[f32]) -> Option<f64> {
        let product: f64 = direction(key)?.zip(self.sum).map(|(x, sum)| x * sum).sum();
        (self.length > 0.0).then(|| product / self.length)
    }
}

/// `k / |k|`.
fn direction(key: &[f32]) -> Option<impl Iterator<Item = f64> + '_> {
    let length = norm(key);
    (length > 0.0 && length.is_finite()).then(|| key.iter().map(move |&x| f64::from(x) / length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let mut keys = Directions::default();
        keys.add(&[3.0, 0.0]);
        keys.add(&[0.0, 0.5]);
        keys.add(&[0.0, 0.0]);
        let half = 0.5_f64.sqrt();
        assert!((keys.mean().cosine(&[0.0, 7.0]).expect("a direction") - half).abs() < 1e-15);
        assert_eq!(keys.mean().cosine(&[0.0, 0.0]), None);
        assert_eq!(Directions::default().mean().cosine(&[1.0]), None);
    }
}
