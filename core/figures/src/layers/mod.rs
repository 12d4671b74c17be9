//! Lines over the layers of a model.

pub(crate) mod lines;
mod look;
pub(crate) mod panel;

pub use lines::{Line, LineChart, LinePanel, LinePoint};
pub use look::{LineLook, Marker};
pub use panel::Shade;
