//! Looks of the lines that are the same in every figure.

use epikv_figures::layers::{LineLook, Marker};
use epikv_figures::{BLUE, GREEN, GREY, VERMILION};

pub(super) static POOLED: LineLook = LineLook::new(BLUE, "", 1.7, Marker::Filled).wide(1.6);
pub(super) static PUBLISHED: LineLook = LineLook::new(VERMILION, "", 1.3, Marker::Open).wide(1.0);
pub(super) static WITHIN: LineLook = LineLook::new(GREEN, "4 2", 1.2, Marker::Unseen).wide(1.1);
pub(super) static RANDOM_WEIGHTS: LineLook = LineLook::new(GREY, "0.9 1.9", 1.2, Marker::Unseen).wide(0.9);
