//! Sorting f32 values as integer keys: at most three counting passes over at most 11 bits each, least significant first.
//!
//! A float's bits sort as an integer once negative values are inverted and the sign of the others is set; `-0.0` is
//! folded onto `+0.0` first, since the two must tie. Short columns go to the comparison sort of the standard library; the
//! result is the same.

/// Below this many keys the comparison sort is faster than three passes over 2048 counters.
const SHORT: usize = 768;
/// Up to this many keys two passes tell nearly all keys apart.
const FEW: usize = 1 << 16;
/// Bits of a pass at most, and its counters.
const MOST_BITS: u32 = 11;
const RADIX: usize = 1 << MOST_BITS;

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
/// If the lengths differ, or with 2^32 keys or more.
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

/// Only the bits in which the keys differ are sorted by, in as few passes of equal width as they take: a column of one sign and
/// few exponents takes two or three short ones. That also spreads the last digit, where all keys of one counter would wait for
/// each other. Columns of up to [`FEW`] keys take two passes over the highest bits; hardly any two keys agree in these, and the
/// few that do are put in order by comparison.
fn sort_by_digits<T: Copy + Ord>(keys: &mut [T], scratch: &mut [T], key_of: impl Fn(T) -> u32) {
    if keys.len() < SHORT {
        keys.sort_unstable();
        return;
    }
    assert_eq!(keys.len(), scratch.len(), "the scratch column is as long as the keys");
    assert!(u32::try_from(keys.len()).is_ok(), "a place has 32 bits: the counters of a pass fit into the first cache");
    let (least, most) =
        keys.iter().fold((u32::MAX, 0), |(least, most), &key| (least.min(key_of(key)), most.max(key_of(key))));
    let bits = u32::BITS - (most - least).leading_zeros();
    if bits == 0 {
        return; // all keys are equal
    }
    let n_passes = bits.div_ceil(MOST_BITS).min(if keys.len() <= FEW { 2 } else { u32::MAX });
    let width = bits.div_ceil(n_passes).min(MOST_BITS);
    let left = bits.saturating_sub(n_passes * width);
    let high = |key: T| key_of(key).wrapping_sub(least) >> left;
    let digit = |key: T, pass: u32| (high(key) >> (pass * width)) as usize & ((1 << width) - 1);
    let mut counts = vec![[0_u32; RADIX]; n_passes as usize];
    for &key in keys.iter() {
        for (pass, count) in (0..).zip(&mut counts) {
            let at = digit(key, pass) & (RADIX - 1);
            count[at] = count[at].wrapping_add(1);
        }
    }
    let (mut from, mut to) = (&mut *keys, &mut *scratch);
    for (pass, count) in (0..).zip(&mut counts) {
        scatter(from, to, count, |key| digit(key, pass));
        std::mem::swap(&mut from, &mut to);
    }
    if n_passes % 2 == 1 {
        to.copy_from_slice(from);
    }
    if left > 0 {
        for equal in keys.chunk_by_mut(|&a, &b| high(a) == high(b)).filter(|equal| equal.len() > 1) {
            equal.sort_unstable();
        }
    }
}

/// Moves every key to its place by one digit, keeping the order of equal digits. `count` becomes the running places.
///
/// The mask is the array length, so that indexing needs no check; nothing wraps, since there are as many places as keys.
fn scatter<T: Copy>(from: &[T], to: &mut [T], count: &mut [u32; RADIX], digit: impl Fn(T) -> usize) {
    let mut start = 0_u32;
    for slot in count.iter_mut() {
        start = start.wrapping_add(std::mem::replace(slot, start));
    }
    for &key in from {
        let slot = &mut count[digit(key) & (RADIX - 1)];
        to[*slot as usize] = key;
        *slot = slot.wrapping_add(1);
    }
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
    fn any_range_of_keys_is_sorted() {
        let mixed = |i: u32| i.wrapping_mul(2_654_435_761);
        for bits in 0..=32 {
            let mask = u32::MAX.checked_shr(32 - bits).unwrap_or(0);
            for offset in [0, u32::MAX - mask] {
                let mut keys: Vec<u32> = (0..1000).map(|i| offset + (mixed(i) & mask)).collect();
                let mut want = keys.clone();
                want.sort_unstable();
                sort_keys(&mut keys, &mut vec![0; 1000]);
                assert_eq!(keys, want, "{bits} bits from {offset}");
            }
        }
    }
}
