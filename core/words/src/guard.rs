//! Panics of libraries as errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives, or the message with which it panicked. The panic prints nothing of itself.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !SILENT.get() {
                usual(info);
            }
        }));
    });
    let before = SILENT.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    SILENT.set(before);
    outcome.map_err(|cause| message(&*cause))
}

fn message(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| cause.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_panic_is_its_message() {
        assert_eq!(super::caught(|| 1), Ok(1));
        assert_eq!(super::caught(|| -> u8 { panic!("no {}", 7) }), Err("no 7".to_owned()));
    }
}
