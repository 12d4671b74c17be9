//! The figures of a study, each as data first ([`gallery()`]). The drawing is in `epikv-figures`.

mod gallery;
mod look;

use epikv_figures::layers::Shade;
pub use epikv_figures::layers::{Line, LineChart, LinePanel, LinePoint};
pub use epikv_figures::{Chart, ENDINGS, HeatChart, HeatPanel, png};

pub use gallery::{About, GALLERY, LAYERS, gallery};

use crate::study::bands::Band;

/// The bands as a figure shades them.
fn shades(bands: &[Band]) -> Vec<Shade> {
    bands.iter().map(|band| Shade { name: band.name, layers: band.layers.clone() }).collect()
}
