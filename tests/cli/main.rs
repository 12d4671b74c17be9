//! Drives the binary as a user does.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod bad_model;
mod between;
mod commit;
mod config;
mod correlate;
mod device;
mod evict;
mod evict_refused;
mod export;
mod figures;
mod grade;
mod import;
mod label;
mod manners;
mod my_policy;
mod pipeline;
mod plan;
mod replay;
mod resume;
mod support;
