//! The HTML page of labelled traces, made from records.
//!
//! [`traces_page`] takes traces and their occlusion windows and gives one page that stands alone: no script, no fonts, no
//! images, nothing fetched. Every text of a record is escaped on its way in, whatever it holds.
//!
//! Not here: models, tokenizers and files. The caller writes the page.

mod checked;
mod error;
mod facts;
mod figure;
mod html;
mod outcome;
mod page;
#[cfg(test)]
mod shared;
mod style;

pub use error::{Error, Result};
pub use page::traces_page;
