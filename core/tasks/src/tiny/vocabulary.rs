//! The tokens of the embedded model: one for each word, digit, letter and sign. Ids never change; new tokens go to the end.

/// Padding.
pub const PAD: u32 = 0;
/// Begin of sequence.
pub const BOS: u32 = 1;
/// End of sequence.
pub const EOS: u32 = 2;
/// Any other word.
pub const UNKNOWN: u32 = 3;
/// `<think>`.
pub const THINK_START: u32 = 4;
/// `</think>`.
pub const THINK_END: u32 = 5;
/// `\boxed{`.
pub const BOX_START: u32 = 6;
/// `}`.
pub const BOX_END: u32 = 7;

/// Tokens that are matched before any others, and are no words of a problem.
pub const N_CONTROL: usize = 6;

/// All tokens in the order of their ids: control tokens, box, signs, words, digits, letters.
pub const TOKENS: [&str; 81] = [
    "<pad>", "<bos>", "<eos>", "<unk>", "<think>", "</think>", "\\boxed{", "}", // 0..8
    ";", "+", "-", "*", "?", "=", ".", "so", "wait", "check", "yes", // 8..19
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", // 19..29
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", // 29..
    "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z", // ..55
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", // 55..
    "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z", // ..81
];

/// Id of `;`.
pub(super) const SEMICOLON: u32 = 8;
/// Id of `+`.
pub(super) const PLUS: u32 = 9;
/// Id of `-`.
pub(super) const MINUS: u32 = 10;
/// Id of `*`.
pub(super) const TIMES: u32 = 11;
/// Id of `?`.
pub(super) const QUESTION: u32 = 12;
/// Id of `=`.
pub(super) const EQUALS: u32 = 13;
/// Id of `.`.
pub(super) const STOP: u32 = 14;
/// Id of `so`.
pub(super) const SO: u32 = 15;
/// Id of `wait`.
pub(super) const WAIT: u32 = 16;
/// Id of `check`.
pub(super) const CHECK: u32 = 17;
/// Id of `yes`.
pub(super) const YES: u32 = 18;

const FIRST_DIGIT: u32 = 19;
const FIRST_LETTER: u32 = 29;

/// Letters that values can have: `a..z`, then `A..Z`.
pub const N_LETTERS: usize = 52;

/// Id of a digit.
pub fn digit(value: u8) -> u32 {
    debug_assert!(value < 10, "values are modulo 10");
    FIRST_DIGIT + u32::from(value)
}

/// Whether an id is a digit's.
pub(super) fn is_digit(id: u32) -> bool {
    (FIRST_DIGIT..FIRST_LETTER).contains(&id)
}

/// Id of the letter with number `index`.
pub fn letter(index: usize) -> u32 {
    debug_assert!(index < N_LETTERS, "letters end at Z");
    FIRST_LETTER + index as u32
}

/// Ids of all letters, digits and signs of operations.
pub(super) fn content() -> impl Iterator<Item = u32> {
    [PLUS, MINUS, TIMES].into_iter().chain(FIRST_DIGIT..TOKENS.len() as u32)
}

/// The text of ids as the tokenizer decodes them: with spaces between them, but none between digits.
pub fn text(ids: &[u32]) -> String {
    let mut text = String::new();
    for (at, &id) in ids.iter().enumerate() {
        if at > 0 && !(is_digit(id) && is_digit(ids[at - 1])) {
            text.push(' ');
        }
        text.push_str(TOKENS.get(id as usize).copied().unwrap_or("<unk>"));
    }
    text
}
