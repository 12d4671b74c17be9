//! Sampling: from logits to a token, greedy or with random numbers that depend on (seed, problem, sample, step) only.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// How tokens are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sampling {
    /// The largest logit; among equals the lowest id.
    #[default]
    Greedy,
    /// From the smallest set of likeliest tokens that holds `top_p` of the probability at `temperature`.
    TopP {
        /// Divides the logits; above zero.
        temperature: f32,
        /// In (0, 1].
        top_p: f32,
        /// Which random numbers.
        stream: RandomStream,
    },
}

impl Sampling {
    /// As flags have it: temperature 0 is greedy.
    pub fn of(temperature: f32, top_p: f32, stream: RandomStream) -> Self {
        if temperature == 0.0 { Self::Greedy } else { Self::TopP { temperature, top_p, stream } }
    }
}

/// Names a sequence of random numbers. Step `t` always gets the same number, whatever was drawn before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomStream {
    /// Seed of the run.
    pub seed: u64,
    /// A stable number of the problem.
    pub problem: u64,
    /// Which sample of the problem.
    pub sample: u32,
}

impl RandomStream {
    /// The number of step `step`, uniform in [0, 1) with 53 bits.
    pub fn uniform(&self, step: usize) -> f64 {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&self.problem.to_le_bytes());
        key[16..20].copy_from_slice(&self.sample.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_word_pos(2 * step as u128);
        (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A stable number of a name, for [`RandomStream::problem`].
pub fn stream_number(name: &str) -> u64 {
    let digest = Sha256::digest(name.as_bytes());
    u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
}

/// A chosen token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Its id.
    pub token: u32,
    /// Largest logit minus the second largest: how close the arg-max was to another token.
    pub margin: f32,
}

/// Chooses from the logits of one position. `None` if a logit is not a number.
pub(crate) fn choose(logits: &[f32], sampling: Sampling, step: usize) -> Option<Choice> {
    let (mut best, mut top, mut second) = (0, f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (id, &logit) in logits.iter().enumerate() {
        if logit.is_nan() {
            return None;
        }
        if logit > top {
            (best, second, top) = (id, top, logit);
        } else if logit > second {
            second = logit;
        }
    }
    let margin = top - second;
    let token = match sampling {
        Sampling::Greedy => best,
        Sampling::TopP { temperature, top_p, stream } => sample(logits, top, temperature, top_p, stream.uniform(step)),
    };
    Some(Choice { token: token as u32, margin })
}

fn sample(logits: &[f32], top: f32, temperature: f32, top_p: f32, u: f64) -> usize {
    let weight = |l: f32| (f64::from(l - top) / f64::from(temperature)).exp();
    let mut likeliest: Vec<(f64, usize)> = logits.iter().enumerate().map(|(id, &l)| (weight(l), id)).collect();
    likeliest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let total: f64 = likeliest.iter().map(|(w, _)| w).sum();
    let (mut kept, mut mass) = (0, 0.0);
    while kept < likeliest.len() && (kept == 0 || mass < f64::from(top_p) * total) {
        mass += likeliest[kept].0;
        kept += 1;
    }
    let mut left = u * mass;
    for &(w, id) in &likeliest[..kept] {
        left -= w;
        if left < 0.0 {
            return id;
        }
    }
    likeliest[kept - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: RandomStream = RandomStream { seed: 7, problem: 11, sample: 0 };

    fn top_p(temperature: f32, top_p: f32) -> Sampling {
        Sampling::TopP { temperature, top_p, stream: STREAM }
    }

    #[test]
    fn greedy_takes_the_lowest_id_of_equals_and_reports_the_margin() {
        let choice = choose(&[1.0, 3.0, 3.0, 2.5], Sampling::Greedy, 0);
        assert_eq!(choice, Some(Choice { token: 1, margin: 0.0 }));
        assert_eq!(choose(&[1.0, 3.0, 2.5], Sampling::Greedy, 0).map(|c| c.margin), Some(0.5));
        assert_eq!(choose(&[1.0, f32::NAN], Sampling::Greedy, 0), None);
    }

    #[test]
    fn a_step_has_its_own_number_whatever_came_before() {
        let forward: Vec<f64> = (0..50).map(|t| STREAM.uniform(t)).collect();
        let backward: Vec<f64> = (0..50).rev().map(|t| STREAM.uniform(t)).collect();
        assert!(forward.iter().eq(backward.iter().rev()));
        assert!(forward.iter().all(|u| (0.0..1.0).contains(u)));
        assert!((forward[0] - RandomStream { sample: 1, ..STREAM }.uniform(0)).abs() > 1e-9);
        let mean = (0..4000).map(|t| STREAM.uniform(t)).sum::<f64>() / 4000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }

    #[test]
    fn frequencies_follow_the_probabilities() {
        let logits = [0.0, 1.0, 2.0, -1.0];
        let mut counts = [0.0; 4];
        for step in 0..20_000 {
            counts[choose(&logits, top_p(1.0, 1.0), step).expect("numbers").token as usize] += 1.0 / 20_000.0;
        }
        let z: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
        for (count, &l) in counts.iter().zip(&logits) {
            assert!((count - f64::from(l).exp() / z).abs() < 0.012, "{counts:?}");
        }
    }

    #[test]
    fn a_small_top_p_is_greedy() {
        for step in 0..100 {
            assert_eq!(choose(&[0.0, 1.0, 0.9], top_p(1.0, 0.1), step).map(|c| c.token), Some(1));
        }
    }
}
