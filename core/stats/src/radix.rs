//! Sorting f32 values as integer keys: three counting passes of 11, 11 and 10 bits, least significant first.
//!
//! A float's bits sort as an integer once negative values are inverted and the sign of the others is set; `-0.0` is
//! folded onto `+0.0` first, since the two must tie. Short columns go to the comparison sort of the standard library; the
//! result is the same.

/// Below this many keys the comparison sort is faster than three passes over 2048 counters.
const SHORT: usize = 768;
const RADIX: usize = 1 << 11;
const SHIFTS: [u32; 3] = [0, 11, 22];

/// A `u32` that orders as the value does, `-0.0` as `+0.0`. A `NaN` has a key too, beyond the infinity of its sign.
#[inline]
pub fn ordered_key(x: f32) -> u32 {
    const SIGN: u32 = 1 << 31;
    let bits = (x + 0.0).to_bits();
    let negative = 0_u32.wrapping_sub(bits >> 31);
    bits ^ (negative | SIGN)
}

/// Sorts `keys` (`[n]`) upwards in place. `scratch` is `[n]` and its content is lost. Cost `O(n)`.
///
/// # Panics
///
/// If the lengths differ.
pub fn sort_keys(keys: &mut [u32], scratch: &mut [u32]) {
    sort_by_digits(keys, scratch, |key| key);
}

/// A key with what belongs to it: the key in the upper half, so that whole numbers order as keys do.
#[inline]
pub(crate) fn tagged(key: u32, tag: u32) -> u64 {
    u64::from(key) << 32 | u64::from(tag)
}

/// The key of a tagged one.
#[inline]
pub(crate) fn key_of(tagged: u64) -> u32 {
    (tagged >> 32) as u32
}

/// Sorts [`tagged`] keys upwards by key; equal keys keep their order, or in short columns take that of their tags.
/// Cost `O(n)`, memory 8 bytes a key.
pub(crate) fn sort_tagged(keys: &mut [u64]) {
    let mut scratch = vec![0; if keys.len() < SHORT { 0 } else { keys.len() }];
    sort_by_digits(keys, &mut scratch, key_of);
}

fn sort_by_digits<T: Copy + Ord>(keys: &mut [T], scratch: &mut [T], key_of: impl Fn(T) -> u32) {
    if keys.len() < SHORT {
        keys.sort_unstable();
        return;
    }
    assert_eq!(keys.len(), scratch.len(), "the scratch column is as long as the keys");
    let mut counts = vec![[0_usize; RADIX]; SHIFTS.len()];
    for &key in keys.iter() {
        let key = key_of(key);
        for (&shift, count) in SHIFTS.iter().zip(&mut counts) {
            count[digit(key, shift)] += 1;
        }
    }
    let n = keys.len();
    let (mut from, mut to) = (&mut *keys, &mut *scratch);
    let mut in_scratch = false;
    for (&shift, count) in SHIFTS.iter().zip(&mut counts) {
        if count.contains(&n) {
            continue; // all keys share this digit
        }
        scatter(from, to, count, |key| digit(key_of(key), shift));
        std::mem::swap(&mut from, &mut to);
        in_scratch = !in_scratch;
    }
    if in_scratch {
        to.copy_from_slice(from);
    }
}

/// Moves every key to its place by one digit, keeping the order of equal digits. `count` becomes the running places.
fn scatter<T: Copy>(from: &[T], to: &mut [T], count: &mut [usize; RADIX], digit: impl Fn(T) -> usize) {
    let mut start = 0;
    for slot in count.iter_mut() {
        start += std::mem::replace(slot, start);
    }
    for &key in from {
        let slot = &mut count[digit(key)];
        to[*slot] = key;
        *slot += 1;
    }
}

/// The mask is the array length, so that indexing needs no check.
#[inline]
fn digit(key: u32, shift: u32) -> usize {
    (key >> shift) as usize & (RADIX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_values() {
        let values = [f32::NEG_INFINITY, -1.5, -f32::MIN_POSITIVE, 0.0, 1e-40, 2.0, f32::INFINITY];
        assert!(values.windows(2).all(|w| ordered_key(w[0]) < ordered_key(w[1])));
        assert_eq!(ordered_key(-0.0), ordered_key(0.0));
    }

    #[test]
    fn long_columns_take_the_radix_path() {
        let mut state = 1_u32;
        let mut keys: Vec<u32> = (0..5000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state
            })
            .collect();
        let mut want = keys.clone();
        want.sort_unstable();
        let mut scratch = vec![0; keys.len()];
        sort_keys(&mut keys, &mut scratch);
        assert_eq!(keys, want);
    }

    #[test]
    fn tags_go_with_their_keys_and_stay_in_order() {
        for n in [10, 5000_u32] {
            let key = |i: u32| ordered_key(((i * 7919) % 1013) as f32 - 500.0);
            let mut sorted: Vec<u64> = (0..n).map(|i| tagged(key(i), i)).collect();
            let mut want = sorted.clone();
            want.sort_unstable();
            sort_tagged(&mut sorted);
            assert_eq!(sorted, want);
        }
    }

    #[test]
    fn constant_digits_are_skipped() {
        let mut keys: Vec<u32> = (0..1000).rev().map(|i| 0x3f80_0000 | i).collect();
        let mut scratch = vec![0; 1000];
        sort_keys(&mut keys, &mut scratch);
        assert!(keys.windows(2).all(|w| w[0] < w[1]));
    }
}
