//! Files of JSON lines from an unknown source. Objects are read one at a time, so a long file need not fit into memory,
//! and an endless line is an error.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    marker::PhantomData,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use crate::{
    error::{Error, Result},
    fs,
};

/// Largest file in bytes: a hundred thousand long traces.
const MOST_BYTES: u64 = 1 << 33;
/// Longest line in bytes: some million token ids and their labels.
const LONGEST_LINE: u64 = 1 << 26;
/// Characters of a broken line that an error shows.
const EXCERPT: usize = 60;

/// Reads the objects of a file of JSON lines, each with its line number, from 1. Blank lines are passed over, and so are byte
/// order marks. `expected` is what errors say that a line should be.
///
/// # Errors
/// If the file cannot be opened; the iterator, where it or a line of it is too long, and where a line is not UTF-8 or no such
/// object. It ends there.
pub fn json_lines<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<JsonLines<T>> {
    JsonLines::open(path, expected, MOST_BYTES, LONGEST_LINE)
}

/// The iterator of [`json_lines`].
#[derive(Debug)]
pub struct JsonLines<T> {
    path: PathBuf,
    expected: &'static str,
    reader: BufReader<File>,
    most_bytes: u64,
    longest_line: u64,
    /// Bytes and lines read, the one in `text` included.
    bytes: u64,
    line: usize,
    text: Vec<u8>,
    failed: bool,
    object: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> JsonLines<T> {
    fn open(path: &Path, expected: &'static str, most_bytes: u64, longest_line: u64) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            expected,
            reader: BufReader::new(fs::open(path)?),
            most_bytes,
            longest_line,
            bytes: 0,
            line: 0,
            text: Vec::new(),
            failed: false,
            object: PhantomData,
        })
    }

    /// The next line that is not blank.
    fn read(&mut self) -> Result<Option<(usize, T)>> {
        while self.read_line()? {
            let text = std::str::from_utf8(&self.text).map_err(|error| {
                self.bad_line("UTF-8 text", format!("another byte at {}", error.valid_up_to()), None)
            })?;
            let text = text.trim_start_matches('\u{FEFF}').trim();
            if text.is_empty() {
                continue;
            }
            let object = serde_json::from_str(text).map_err(|source| {
                let got = format!("{:?}", text.chars().take(EXCERPT).collect::<String>());
                self.bad_line(self.expected, got, Some(source))
            })?;
            return Ok(Some((self.line, object)));
        }
        Ok(None)
    }

    /// Puts the next line into `text`; false at the end of the file.
    fn read_line(&mut self) -> Result<bool> {
        self.text.clear();
        // One byte more than a line may have, for its end.
        let line = (&mut self.reader).take(self.longest_line + 1).read_until(b'\n', &mut self.text);
        let n = line.map_err(fs::failed("read", &self.path))? as u64;
        self.bytes += n;
        self.line += 1;
        if n > self.longest_line && !self.text.ends_with(b"\n") {
            return Err(Error::LongLine { path: self.path.clone(), line: self.line, limit: self.longest_line });
        }
        if self.bytes > self.most_bytes {
            return Err(Error::TooLarge { path: self.path.clone(), limit: self.most_bytes, got: self.bytes });
        }
        Ok(n > 0)
    }

    fn bad_line(&self, expected: &'static str, got: String, source: Option<serde_json::Error>) -> Error {
        Error::BadLine { path: self.path.clone(), line: self.line, expected, got, source }
    }
}

impl<T: DeserializeOwned> Iterator for JsonLines<T> {
    type Item = Result<(usize, T)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = self.read();
        self.failed = read.is_err();
        read.transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// What comes of a file with these limits.
    fn read(text: &[u8], most_bytes: u64, longest_line: u64) -> Vec<Result<(usize, Vec<u32>)>> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text).expect("written");
        JsonLines::open(file.path(), "a list", most_bytes, longest_line).expect("a file").collect()
    }

    #[test]
    fn lines_keep_their_numbers() {
        let lines: Result<Vec<_>> = read("\u{FEFF}[1]\r\n\n \n[2,3]".as_bytes(), 100, 10).into_iter().collect();
        assert_eq!(lines.expect("two lists"), [(1, vec![1]), (4, vec![2, 3])]);
    }

    #[test]
    fn limits_are_kept() {
        assert_eq!(read(b"[1,2]\n[3,4]", 100, 5).len(), 2);
        let long = read(b"[1]\n[1,2 ]\n[1]", 100, 5);
        assert!(matches!(long.as_slice(), [Ok(_), Err(Error::LongLine { line: 2, limit: 5, .. })]), "{long:?}");
        let large = read(b"[1]\n\n\n\n[1]", 6, 5);
        assert!(matches!(large.as_slice(), [Ok(_), Err(Error::TooLarge { limit: 6, got: 7, .. })]), "{large:?}");
    }

    #[test]
    fn a_broken_line_is_named_and_the_last() {
        let broken = read(b"[1]\n{}\n[1]", 100, 10);
        let [Ok(_), Err(error)] = broken.as_slice() else { panic!("{broken:?}") };
        assert!(error.to_string().ends_with(", line 2: expected a list, got \"{}\""), "{error}");
        let error = read(b"\n[\xFF]", 100, 10).pop().and_then(Result::err).expect("another byte").to_string();
        assert!(error.ends_with(", line 2: expected UTF-8 text, got another byte at 1"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_endless_line_ends() {
        let mut lines = json_lines::<Vec<u32>>(Path::new("/dev/zero"), "a list").expect("a device");
        assert!(matches!(lines.next(), Some(Err(Error::LongLine { line: 1, .. }))));
        assert!(lines.next().is_none());
    }
}
