//! The grid of windows over the reasoning span.

use std::ops::Range;

/// Windows of `width` at starts `from, from + stride, ..` below `boundary`, each clipped at the boundary.
///
/// So every position of `from..boundary` is covered, interior ones by `width / stride` windows, and the last window may be
/// short. Empty where there is no reasoning.
pub fn windows(from: usize, boundary: usize, width: usize, stride: usize) -> Vec<Range<usize>> {
    (from..boundary).step_by(stride).map(|start| start..boundary.min(start.saturating_add(width))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_grid_of_the_paper() {
        assert_eq!(windows(10, 60, 32, 16), [10..42, 26..58, 42..60, 58..60]);
        assert_eq!(windows(10, 15, 32, 16), [Range { start: 10, end: 15 }], "shorter than one window");
        assert!(windows(10, 10, 32, 16).is_empty(), "no reasoning");
        assert_eq!(windows(1, 4, usize::MAX, usize::MAX), [Range { start: 1, end: 4 }], "wider than anything");
    }

    proptest! {
        #[test]
        fn every_position_is_covered_and_nothing_else(from in 0_usize..50, n in 0_usize..200, width in 1_usize..40, s in 1_usize..40) {
            let stride = s.min(width);
            let grid = windows(from, from + n, width, stride);
            prop_assert_eq!(grid.len(), n.div_ceil(stride));
            for pos in from..from + n {
                prop_assert!(grid.iter().any(|w| w.contains(&pos)));
            }
            prop_assert!(grid.iter().all(|w| w.start >= from && w.end <= from + n && w.len() <= width && !w.is_empty()));
        }
    }
}
