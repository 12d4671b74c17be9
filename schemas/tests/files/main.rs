//! Record files as a caller sees them: one binary, one module a subject.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod disk;
mod docs;
mod errors;
mod foreign;
mod manifest;
mod row_groups;
mod tools;
mod versions;
