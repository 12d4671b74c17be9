//! Drives the binary as a user does.

mod bad_input;
mod config;
mod pipeline;
mod support;
