//! The byte alphabet of byte-level BPE: each byte has one printable character that stands for it in the vocabulary.
//!
//! Printable Latin-1 bytes stand for themselves; the other 68 are moved to `U+0100..` in order, so that a space is
//! `Ġ` and a line feed `Ċ`. The table is that of GPT-2 and of every byte-level tokenizer since.

/// Code points of the first stand-in for a byte that is not printable.
const FIRST_MOVED: u32 = 0x100;

/// True for the bytes that stand for themselves.
fn printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The character of each byte, in byte order.
pub(super) fn alphabet() -> [char; 256] {
    let mut moved = FIRST_MOVED;
    std::array::from_fn(|index| {
        let byte = index as u8;
        if printable(byte) {
            return char::from(byte);
        }
        let stand_in = char::from_u32(moved).unwrap_or(char::REPLACEMENT_CHARACTER);
        moved += 1;
        stand_in
    })
}

/// From characters back to bytes.
#[derive(Debug, Clone)]
pub(super) struct ByteTable {
    /// Indexed by code point; all stand-ins lie below `FIRST_MOVED + 68`.
    byte_of: Vec<Option<u8>>,
}

impl ByteTable {
    pub(super) fn new() -> Self {
        let mut byte_of = vec![None; FIRST_MOVED as usize + 256];
        for (byte, character) in alphabet().into_iter().enumerate() {
            byte_of[character as usize] = Some(byte as u8);
        }
        Self { byte_of }
    }

    /// Appends what a vocabulary entry stands for: its bytes, or its own UTF-8 if any character is outside the
    /// alphabet, which is the case of added tokens such as `<｜User｜>`.
    pub(super) fn push(&self, token: &str, out: &mut Vec<u8>) {
        let start = out.len();
        for character in token.chars() {
            let Some(Some(byte)) = self.byte_of.get(character as usize) else {
                out.truncate(start);
                out.extend_from_slice(token.as_bytes());
                return;
            };
            out.push(*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_stand_ins() {
        let table = alphabet();
        assert_eq!(table[usize::from(b' ')], 'Ġ');
        assert_eq!(table[usize::from(b'\n')], 'Ċ');
        assert_eq!(table[usize::from(b'a')], 'a');
        assert_eq!(table[0xAD], 'Ń');
    }

    #[test]
    fn every_byte_comes_back() {
        let (table, back) = (alphabet(), ByteTable::new());
        for byte in 0..=255_u8 {
            let mut out = Vec::new();
            back.push(&table[usize::from(byte)].to_string(), &mut out);
            assert_eq!(out, [byte]);
        }
    }

    #[test]
    fn a_token_outside_the_alphabet_is_its_own_text() {
        let mut out = b"x".to_vec();
        ByteTable::new().push("<｜User｜>", &mut out);
        assert_eq!(out, "x<｜User｜>".as_bytes());
    }
}
