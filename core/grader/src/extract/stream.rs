//! Watches a text that arrives piece by piece for the end of its first box.

use super::boxes::{LONGEST_BLANK, command_len, is_blank};

/// Says when the first complete box of a growing text is closed, so that generation can stop there.
///
/// Feed it only the text after the point of interest (the answer part): boxes before that point are then not seen.
/// Pieces may be cut anywhere. A box without braces (`\boxed 5`) is closed by the first space, dollar sign or
/// backslash after its argument.
///
/// ```
/// let mut watch = epikv_grader::BoxStream::new();
/// assert!(!watch.push(r"so it is \bo"));
/// assert!(!watch.push(r"xed{\frac{1}{"));
/// assert!(watch.push("2}}. "));
/// ```
#[derive(Clone, Debug, Default)]
pub struct BoxStream {
    /// Bytes not yet understood: at most a command and the space after it.
    pending: Vec<u8>,
    state: State,
    /// The content of the box so far, as long as it may be nothing but space.
    content: Vec<u8>,
    done: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Outside of any box.
    #[default]
    Outside,
    /// Inside braces of a box, with the number of open braces.
    Inside { depth: usize },
    /// In the argument of a box without braces.
    Bare { depth: usize },
}

/// Longest lead that can still become a box: a doubled backslash, the command, a few spaces.
const LONGEST_LEAD: usize = 40;

impl BoxStream {
    /// A watch that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece; true once the first complete box is closed, and from then on.
    pub fn push(&mut self, piece: &str) -> bool {
        if self.done {
            return true;
        }
        self.pending.extend_from_slice(piece.as_bytes());
        let bytes = std::mem::take(&mut self.pending);
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let Some(step) = self.step(&bytes, at, byte) else {
                break;
            };
            at += step;
            if self.done {
                return true;
            }
        }
        self.pending = bytes.get(at..).unwrap_or_default().to_vec();
        self.done
    }

    /// Bytes taken at `at`, or `None` where more text is needed to decide.
    fn step(&mut self, bytes: &[u8], at: usize, byte: u8) -> Option<usize> {
        match self.state {
            State::Outside if byte == b'\\' => self.command(bytes, at),
            State::Outside => Some(1),
            State::Inside { depth } => {
                if byte == b'\\' {
                    let next = *bytes.get(at + 1)?;
                    self.keep(&[byte, next]);
                    return Some(2);
                }
                self.state = match (byte, depth) {
                    (b'{', _) => State::Inside { depth: depth + 1 },
                    (b'}', 1) => {
                        self.done = !std::str::from_utf8(&self.content).is_ok_and(is_blank);
                        self.content.clear();
                        self.state = State::Outside;
                        return Some(1);
                    }
                    (b'}', _) => State::Inside { depth: depth - 1 },
                    _ => State::Inside { depth },
                };
                if !byte.is_ascii_whitespace() {
                    self.keep(&[byte]);
                }
                Some(1)
            }
            State::Bare { depth } => {
                match byte {
                    b'\\' if depth > 0 => {
                        bytes.get(at + 1)?;
                        return Some(2);
                    }
                    b'{' => self.state = State::Bare { depth: depth + 1 },
                    b'}' if depth > 0 => self.state = State::Bare { depth: depth - 1 },
                    b'}' | b'$' | b'\\' => self.done = true,
                    _ if depth == 0 && byte.is_ascii_whitespace() => self.done = true,
                    _ => {}
                }
                Some(1)
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.content.len() <= LONGEST_BLANK {
            self.content.extend_from_slice(bytes);
        }
    }

    fn command(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let rest = bytes.get(at..).unwrap_or_default();
        let in_name = |b: &u8| b.is_ascii_alphabetic() || *b == b'\\';
        // The length first: looking for the end of each name of a long run of backslashes would cost its square.
        if rest.len() < LONGEST_LEAD && rest.iter().skip(1).all(in_name) {
            return None;
        }
        let Some(len) = command_len(bytes, at) else {
            return Some(rest.len().min(2));
        };
        let space = rest.iter().skip(len).take_while(|b| b.is_ascii_whitespace()).count();
        let after = len + space;
        match rest.get(after) {
            None if rest.len() < LONGEST_LEAD => None,
            Some(b'{') => {
                self.state = State::Inside { depth: 1 };
                Some(after + 1)
            }
            Some(b'0'..=b'9' | b'-' | b'+') => {
                self.state = State::Bare { depth: 0 };
                Some(after + 1)
            }
            _ => Some(len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_end() {
        let text = r"in \boxed{} I put \{ and \boxed{\left\{\frac{1}{2}\right.} and more";
        let end = text.find(" and more").unwrap_or_default();
        for size in 1..12 {
            let mut watch = BoxStream::new();
            let mut seen = 0;
            let mut closed = None;
            for piece in text.as_bytes().chunks(size) {
                seen += piece.len();
                if watch.push(std::str::from_utf8(piece).unwrap_or_default()) && closed.is_none() {
                    closed = Some(seen);
                }
            }
            let closed = closed.unwrap_or_default();
            assert!(closed >= end && closed < end + size, "size {size}: {closed} for {end}");
        }
    }

    #[test]
    fn bare_and_open_boxes() {
        assert!(BoxStream::new().push(r"$\boxed5$"));
        assert!(BoxStream::new().push(r"\boxed 12 "));
        assert!(!BoxStream::new().push(r"\boxed{12"));
        assert!(!BoxStream::new().push("plain text"));
        assert!(!BoxStream::new().push(r"\boxed{\ } and \boxed{\text{}} and \boxed{\quad~}"));
        assert!(BoxStream::new().push(r"\boxed{\ } \boxed{0}"));
    }
}
