//! Signals over positions: rolling windows, moving averages, trends.

pub mod ema;
pub mod rolling;
pub mod trend;
