//! What commands print. Text from data reaches no terminal as a control sequence, and a reader that is gone is no failure.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Stderr, Stdout, Write};

/// Stdout. Whoever reads it may stop early; what cannot be written for another reason is an error.
pub(crate) fn out() -> Shown<Stdout> {
    Shown { inner: io::stdout(), may_fail: false }
}

/// Stderr. What cannot be written there changes no result and no exit code.
pub(crate) fn err() -> Shown<Stderr> {
    Shown { inner: io::stderr(), may_fail: true }
}

/// Stderr for log lines, whose colours are our own.
pub(crate) fn log() -> Forgiving {
    Forgiving(io::stderr())
}

/// A stream that shows control characters as `\u001b`, which JSON reads as the character.
#[derive(Debug)]
pub(crate) struct Shown<W> {
    inner: W,
    may_fail: bool,
}

impl<W> Shown<W> {
    fn forgiven(&self, outcome: io::Result<()>) -> io::Result<()> {
        match outcome {
            Err(error) if !self.may_fail && error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let outcome = match visible(&text) {
            Some(text) => self.inner.write_all(text.as_bytes()),
            None => self.inner.write_all(text.as_bytes()),
        };
        self.forgiven(outcome).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.inner.flush();
        self.forgiven(outcome)
    }
}

/// A stream whose failures are nobody's.
#[derive(Debug)]
pub(crate) struct Forgiving(Stderr);

impl Write for Forgiving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

/// The text with what would steer a terminal made visible; `None` where there is nothing of the kind.
fn visible(text: &str) -> Option<String> {
    // Controls of both ranges, and the marks that turn the direction of what follows.
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.contains(steers).then(|| {
        text.chars().fold(String::with_capacity(text.len() + 8), |mut shown, c| {
            if steers(c) {
                let _ = write!(shown, "\\u{:04x}", u32::from(c));
            } else {
                shown.push(c);
            }
            shown
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left_and_json_stays_json() {
        assert_eq!(visible("a\tb\nc é 数 ق"), None);
        let shown = visible("\u{1b}]0;x\u{7}\r\u{9b}31m\u{202e}").expect("controls");
        assert_eq!(shown, "\\u001b]0;x\\u0007\\u000d\\u009b31m\\u202e");
        let json = serde_json::json!({ "id": "\u{9b}31m\u{7f}\u{2067}" }).to_string();
        let read: serde_json::Value = serde_json::from_str(&visible(&json).expect("controls")).expect("JSON");
        assert_eq!(read["id"], "\u{9b}31m\u{7f}\u{2067}");
    }
}
