//! Texts that live as long as the program: names that are made from what was typed.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The text, kept once.
pub(crate) fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // A thread that panicked while it held the lock left whole entries only.
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(text) {
        return known;
    }
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    all.insert(text);
    text
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn a_text_is_kept_once() {
        assert!(std::ptr::eq(kept("snapkv@end"), kept(&format!("snapkv@{}", "end"))));
    }
}
