//! From findings to files and pages: rows of the record files, the report, and signals that lie in files.

pub(crate) mod in_short;
pub(crate) mod label_set;
pub(crate) mod notes;
pub(crate) mod page;
pub(crate) mod report;
pub mod rows;
pub(crate) mod stored;
pub(crate) mod summary;
