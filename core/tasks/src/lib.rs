//! Problems, prompts and the spans of a trace.
//!
//! From a problem file to a row of the traces file: [`problem::read_problems`], then [`prompt::Prompt::of_problem`], a model's
//! generation, then [`trace::build_trace`], which finds the spans ([`span::find_spans`]) and grades the answer. Traces made
//! elsewhere come in through [`import::import_traces`].
//!
//! This crate runs no model: of `epikv-model` it uses the tokenizer, the chat template and the word for how a generation ended.
//!
//! ```
//! use epikv_model::tokenizer::Tokenizer;
//! use epikv_tasks::span::{BoundaryKind, find_spans};
//!
//! let tokenizer = Tokenizer::builtin_bytes()?;
//! let mut ids = tokenizer.encode("2+2?<think>", false)?;
//! let n_prompt = ids.len();
//! ids.extend(tokenizer.encode(r"Two and two.</think>\boxed{4}", false)?);
//! let split = find_spans(&tokenizer, &ids, n_prompt)?;
//! assert_eq!(split.spans.kind, BoundaryKind::ThinkEnd);
//! assert_eq!(split.answer_text(), r"\boxed{4}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod error;
pub mod import;
pub mod made_by;
pub mod problem;
pub mod prompt;
mod rows;
#[cfg(test)]
mod shared;
pub mod span;
pub mod tiny;
pub mod trace;

pub use error::{Error, Result};
pub use rows::parts;
