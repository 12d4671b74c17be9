//! Maps layers of the reference model to a model of another depth.

/// Layers of the reference model, `DeepSeek-R1-Distill-Llama-8B`.
pub const REFERENCE_LAYERS: usize = 32;

/// The layer of a model of `n_layers` at the relative depth of `layer` in the reference model, both 0-based:
///
/// ```text
/// floor((layer + 1/2) n_layers / 32)
/// ```
///
/// For `layer < 32` the result is below `n_layers`, and with 32 layers it is `layer` itself.
///
/// # Panics
/// In debug builds, if the reference model has no such layer.
pub fn map_layer(layer: usize, n_layers: usize) -> usize {
    debug_assert!(layer < REFERENCE_LAYERS, "the reference model has {REFERENCE_LAYERS} layers");
    (2 * layer + 1) * n_layers / (2 * REFERENCE_LAYERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!((map_layer(10, 16), map_layer(21, 16)), (5, 10));
        assert_eq!((map_layer(10, 28), map_layer(21, 28)), (9, 18));
        assert_eq!((map_layer(0, 64), map_layer(31, 64)), (1, 63));
    }

    #[test]
    fn the_reference_model_maps_to_itself_and_others_stay_in_range_and_order() {
        assert!((0..REFERENCE_LAYERS).all(|l| map_layer(l, REFERENCE_LAYERS) == l));
        for n_layers in 1..=130 {
            let mapped: Vec<usize> = (0..REFERENCE_LAYERS).map(|l| map_layer(l, n_layers)).collect();
            assert!(mapped.is_sorted() && mapped.iter().all(|&l| l < n_layers), "{n_layers}: {mapped:?}");
        }
    }
}
