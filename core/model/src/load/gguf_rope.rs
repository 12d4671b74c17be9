//! Llama 3 RoPE scaling of a GGUF file.
//!
//! The converter writes no constants but a tensor `rope_freqs.weight`: the divisor of each frequency. Llama 3's rule with
//! its ramp between wavelengths `c / 4` and `c` (c = original context; 1 and 4 are `low_freq_factor` and
//! `high_freq_factor` of every published model) is recovered from it, so that a GGUF file and the folder that it was made
//! from give one configuration. Divisors that no such rule gives are refused rather than approximated.

use std::f64::consts::TAU;

use crate::config::RopeScaling;

const LOW: f64 = 1.0;
const HIGH: f64 = 4.0;
/// The divisors are f32; the rule reproduces them to about 1e-6.
const TOLERANCE: f64 = 1e-4;
/// The original context of Llama 3.1 to 3.3, taken where the divisors leave a choice.
const USUAL_CONTEXT: f64 = 8192.0;

/// The scaling whose divisors are `divisors`, or `None` if there is none. `theta` is the RoPE base.
pub(super) fn scaling_of(divisors: &[f32], theta: f64) -> Option<RopeScaling> {
    let divisors: Vec<f64> = divisors.iter().map(|&divisor| f64::from(divisor)).collect();
    let factor = *divisors.last()?;
    let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * b.abs();
    if divisors.iter().all(|&divisor| near(divisor, 1.0)) {
        return Some(RopeScaling::Default);
    }
    if !(factor.is_finite() && factor > 1.0) {
        return None;
    }
    let n = divisors.len() as f64;
    let wavelengths: Vec<f64> = (0..divisors.len()).map(|i| TAU * theta.powf(i as f64 / n)).collect();
    let context = original_context(&divisors, &wavelengths, factor)?;
    let fits = divisors.iter().zip(&wavelengths).all(|(&divisor, &w)| near(divisor, rule(w, factor, context)));
    fits.then_some(RopeScaling::Llama3 {
        factor,
        low_freq_factor: LOW,
        high_freq_factor: HIGH,
        original_max_positions: context as usize,
    })
}

/// Divisor of the frequency with wavelength `w`.
fn rule(w: f64, factor: f64, context: f64) -> f64 {
    let smooth = ((context / w - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
    1.0 / ((1.0 - smooth) / factor + smooth)
}

/// From a divisor on the ramp, or, if none lies there, any whole number between the wavelengths that bound it.
fn original_context(divisors: &[f64], wavelengths: &[f64], factor: f64) -> Option<f64> {
    let pairs = || divisors.iter().zip(wavelengths);
    let on_ramp = |divisor: f64| divisor > 1.0 + TOLERANCE && divisor < factor * (1.0 - TOLERANCE);
    let context = if let Some((divisor, w)) = pairs().find(|&(&divisor, _)| on_ramp(divisor)) {
        let smooth = (1.0 / divisor - 1.0 / factor) / (1.0 - 1.0 / factor);
        ((smooth * (HIGH - LOW) + LOW) * w).round()
    } else {
        let (_, &longest_kept) = pairs().take_while(|&(&divisor, _)| divisor < factor * (1.0 - TOLERANCE)).last()?;
        let (_, &shortest_divided) = pairs().find(|&(_, &w)| w > longest_kept)?;
        let between = HIGH * longest_kept..LOW * shortest_divided;
        if between.contains(&USUAL_CONTEXT) { USUAL_CONTEXT } else { between.start.ceil() }
    };
    (context.is_finite() && (1.0..1e9).contains(&context)).then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divisors(theta: f64, n: usize, factor: f64, context: f64) -> Vec<f32> {
        (0..n).map(|i| rule(TAU * theta.powf(i as f64 / n as f64), factor, context) as f32).collect()
    }

    #[test]
    fn the_rule_is_that_of_the_paper_at_its_ends() {
        let middle = 8192.0 / 2.5; // smooth = 1/2
        for (w, divisor) in [(100.0, 1.0), (10_000.0, 8.0), (middle, 1.0 / (0.5 / 8.0 + 0.5))] {
            assert!((rule(w, 8.0, 8192.0) - divisor).abs() < 1e-12);
        }
    }

    #[test]
    fn published_and_tiny_models_are_recovered() {
        for (theta, n, factor, context) in [(5e5, 64, 8.0, 8192.0), (5e5, 32, 32.0, 8192.0), (1e4, 8, 8.0, 128.0)] {
            let found = scaling_of(&divisors(theta, n, factor, context), theta);
            let expected = RopeScaling::Llama3 {
                factor,
                low_freq_factor: 1.0,
                high_freq_factor: 4.0,
                original_max_positions: context as usize,
            };
            assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn without_a_divisor_on_the_ramp_any_context_gives_the_same_frequencies() {
        let (theta, factor) = (1e6, 8.0); // eight-fold wavelengths: 4.0e4 and 3.2e5 ... lie around the ramp
        let given = divisors(theta, 4, factor, 3000.0);
        assert_eq!(given, [1.0, 1.0, 8.0, 8.0]);
        let Some(RopeScaling::Llama3 { original_max_positions, .. }) = scaling_of(&given, theta) else { panic!() };
        assert_eq!(divisors(theta, 4, factor, original_max_positions as f64), given);
    }

    #[test]
    fn ones_are_no_scaling_and_other_divisors_are_refused() {
        assert_eq!(scaling_of(&[1.0; 8], 1e4), Some(RopeScaling::Default));
        let mut long = divisors(5e5, 64, 8.0, 8192.0);
        long[20] = 1.7;
        assert_eq!(scaling_of(&long, 5e5), None);
        for bad in [&[][..], &[f32::NAN, 2.0], &[1.0, f32::INFINITY], &[0.0, 0.0], &[8.0, 8.0], &[1.0, f32::NAN]] {
            assert_eq!(scaling_of(bad, 1e4), None, "{bad:?}");
        }
    }
}
