//! Words on the command line and in messages: names of choices, and hints of errors.
//!
//! - [`words!`] defines an enum whose values have a name each. The list of values, the names, the parser and the help
//!   text all come from that one list; the command line and the record files read them there.
//! - [`Word`] is the trait of such an enum, for code that takes any of them.
//! - [`Hint`] is the advice that an error gives.
//! - [`caught`] makes an error of a panic in a library.
//! - [`exact_p`] and [`resampled_p`] write p-values.
//!
//! ```
//! epikv_words::words! {
//!     /// Where a regeneration ends.
//!     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
//!     pub enum Stop {
//!         /// At the model's own end.
//!         Eos = "eos",
//!         /// At the end of the first complete box.
//!         AtBox = "at-box",
//!     }
//! }
//!
//! assert_eq!(Stop::AtBox.name(), "at-box");
//! assert_eq!(Stop::from_name("eos"), Some(Stop::Eos));
//! assert_eq!(Stop::ALL, [Stop::Eos, Stop::AtBox]);
//! ```

mod guard;
mod hint;
mod p_value;
mod word;

pub use guard::caught;
pub use hint::Hint;
pub use p_value::{exact_p, resampled_p};
pub use word::Word;
