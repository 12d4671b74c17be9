//! A run: its settings, its regenerations, and the rows that it makes of them.

pub mod config;
pub mod estimate;
pub(crate) mod job;
pub mod journal;
pub mod label;
pub(crate) mod labels;
pub mod noise;
pub(crate) mod pairs;
pub(crate) mod plan;
pub(crate) mod prefixes;
pub(crate) mod refine;
pub(crate) mod regenerate;
pub(crate) mod regenerations;
pub(crate) mod rows;
