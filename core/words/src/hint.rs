//! What an error advises.

use std::error::Error;

/// An error that may know what the user can try.
pub trait Hint: Error {
    /// What the user can try; `None` where there is no advice.
    fn hint(&self) -> Option<String>;
}
