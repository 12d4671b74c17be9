//! Rotary position embedding in the half-split form: channel `i` pairs with `i + D/2`.

/// Rotates every head of one token in place.
///
/// `(a, b) = (x[i], x[i + D/2])` becomes `(a cos - b sin, b cos + a sin)`, with the angle of channel pair `i`.
///
/// # Shapes
/// `x`: `[heads, D]`; `cos`, `sin`: `[D/2]`.
///
/// # Panics
/// If `x` is not whole heads.
///
/// # References
/// Su et al. 2021, in the channel order of GPT-NeoX and Transformers.
pub fn rotate(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let half = cos.len();
    assert!(half > 0 && sin.len() == half && x.len().is_multiple_of(2 * half), "rotate: heads are not whole");
    for head in x.chunks_exact_mut(2 * half) {
        let (first, second) = head.split_at_mut(half);
        for i in 0..half {
            let (a, b) = (first[i], second[i]);
            first[i] = a * cos[i] - b * sin[i];
            second[i] = b * cos[i] + a * sin[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_swaps_the_halves() {
        let mut x = [1.0, 2.0, 3.0, 4.0];
        rotate(&mut x, &[0.0, 0.0], &[1.0, 1.0]);
        assert_eq!(x, [-3.0, -4.0, 1.0, 2.0]);
    }
}
