//! Labels in files: of a folder, of the published form, and beside scores of another method.

pub mod exchange;
pub mod folder;
pub mod lines;
pub mod sentences;
