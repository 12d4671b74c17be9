//! The name of a layer's column.

/// Name of a layer's column.
pub(crate) fn column_name(family: &str, layer: u16) -> String {
    format!("{family}_l{layer:02}")
}

/// The layer that a column of the family holds. Only the exact spelling of [`column_name`] counts.
pub(crate) fn layer_of(family: &str, column: &str) -> Option<u16> {
    let digits = column.strip_prefix(family)?.strip_prefix("_l")?;
    let layer = digits.parse().ok()?;
    (column_name(family, layer) == column).then_some(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_has_a_column() {
        assert_eq!(column_name("hs_l2", 7), "hs_l2_l07");
        assert_eq!(layer_of("hs_l2", "hs_l2_l07"), Some(7));
        assert_eq!(layer_of("hs_l2", "hs_l2_l107"), Some(107));
        for other in ["hs_l2_l7", "hs_l2_l007", "hs_l2_l", "hs_l2", "hs_l2_l07_z64", "hs_l2_l99999", "hs_l2_l+7"] {
            assert_eq!(layer_of("hs_l2", other), None, "{other}");
        }
    }
}
