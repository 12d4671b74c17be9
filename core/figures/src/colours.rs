//! Colours, and the style of axes.

/// Colour of text and axes.
pub const INK: &str = "#1a1a1a";

/// Colour of what others are compared with.
pub const GREY: &str = "#595959";

/// Colours of Okabe and Ito (2008), told apart with the common colour-vision deficiencies.
pub const BLUE: &str = "#0072b2";
/// Orange-red, the other end of a scale that begins at [`BLUE`].
pub const VERMILION: &str = "#d55e00";
/// Bluish green.
pub const GREEN: &str = "#009e73";
/// Reddish purple.
pub const PURPLE: &str = "#cc79a7";
/// Orange.
pub const ORANGE: &str = "#e69f00";
/// Sky blue.
pub const SKY: &str = "#56b4e9";

/// The style of axes and their ticks.
pub(crate) const THIN: &str = "stroke=\"#1a1a1a\" stroke-width=\"0.6\"";
