//! Reads one numeral: thousands separators, decimals, repeating decimals, powers of ten, bases.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};

use super::repeating::continued;
use super::token::{Number, Token};
use crate::number::power_of_ten;

/// Most digits of one numeral.
const MOST_DIGITS: usize = 6_000;
/// Most digits after the decimal point: fractions cost more than integers.
const MOST_PLACES: usize = 1_000;
/// Largest power of ten in scientific notation that is written out.
const LARGEST_EXPONENT: u32 = 1_000;

/// How ambiguous numerals are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// `1,234` is one number.
    pub(crate) commas: bool,
    /// `1 234` is one number.
    pub(crate) spaces: bool,
    /// `2,74` is a decimal.
    pub(crate) decimal_comma: bool,
}

/// A numeral and the number of characters it takes. `inside` says that a bracket is open, where a comma separates
/// items; the text at `at` starts with a digit, or with a full stop before a digit.
pub(crate) fn numeral(text: &[char], at: usize, options: Options, inside: bool) -> Option<(Token, usize)> {
    if let Some(found) = based(text, at) {
        return Some(found);
    }
    let mut end = at;
    let mut digits: String = run_of_digits(text, end);
    end += digits.len();
    let mut commas = false;
    if (1..=3).contains(&digits.len()) {
        while let Some(group) = thousands_group(text, end, options, inside, &mut commas) {
            digits.extend(&text[group - 3..group]);
            end = group;
        }
    }
    if digits.len() > MOST_DIGITS {
        return None;
    }
    let mut value = BigRational::from_integer(digits.parse().unwrap_or_else(|_| BigInt::zero()));
    let mut places = None;
    // The digits after the point, as long as nothing stands behind them.
    let mut fraction = String::new();
    if let Some((shown, next)) = decimals(text, end, options, commas) {
        if shown.len() > MOST_PLACES {
            return None;
        }
        let count = u32::try_from(shown.len()).unwrap_or(u32::MAX);
        value += BigRational::new(shown.parse().unwrap_or_else(|_| BigInt::zero()), power_of_ten(count));
        end = next;
        places = Some(count);
        fraction = shown;
    }
    if let Some((repeated, next)) = repeating(text, end, places.is_some()) {
        let shown = places.unwrap_or(0);
        let length = u32::try_from(repeated.len()).unwrap_or(u32::MAX);
        let nines: BigInt = power_of_ten(length) - 1;
        let tail = BigRational::new(repeated.parse().unwrap_or_else(|_| BigInt::zero()), nines * power_of_ten(shown));
        value += tail;
        end = next;
        places = None;
        fraction.clear();
    } else if let Some((exponent, next)) = exponent(text, end, places.is_some()) {
        let scale = power_of_ten(exponent.unsigned_abs());
        value *= if exponent < 0 { BigRational::new(BigInt::one(), scale) } else { BigRational::from_integer(scale) };
        end = next;
        // 1.50e3 shows two places of a thousand, which is none of one.
        places = places.and_then(|shown| u32::try_from(i64::from(shown) - i64::from(exponent)).ok());
        // Dots behind a power of ten continue no digits.
        fraction.clear();
    }
    let dots = ["...", "\\ldots"].iter().find(|dots| starts_with(text, end, dots));
    if let Some(dots) = dots.filter(|_| fraction.len() > 2) {
        if let Some(tail) = continued(&fraction) {
            value = value.trunc() + tail;
            places = None;
        }
        end += dots.len();
    }
    end += ordinal(text, end);
    Some((Token::Num(Number { value, places, digits, commas }), end - at))
}

fn run_of_digits(text: &[char], at: usize) -> String {
    text.iter().skip(at).take_while(|c| c.is_ascii_digit()).collect()
}

fn starts_with(text: &[char], at: usize, pattern: &str) -> bool {
    pattern.chars().enumerate().all(|(k, c)| text.get(at + k) == Some(&c))
}

/// End of a group of exactly three digits behind a separator.
fn thousands_group(text: &[char], at: usize, options: Options, inside: bool, commas: &mut bool) -> Option<usize> {
    // Separators that cannot be anything else first, the plain comma and the space after them.
    let sure = ["{,}", ",\\!", "\\!,", "\\,", "\\;", "\\:", "\\ "]
        .iter()
        .find(|sep| starts_with(text, at, sep))
        .map(|sep| sep.len());
    // `12'000`, as in Switzerland.
    let sure = sure.or_else(|| matches!(text.get(at), Some('\'' | '’')).then_some(1));
    let comma = (options.commas && !inside && text.get(at) == Some(&',')).then_some(1);
    let space = (options.spaces && text.get(at) == Some(&' ')).then_some(1);
    // `111, \! 111`: a negative space after a comma and a space.
    let loose = starts_with(text, at, ", \\!").then_some(4);
    let length = sure.or(loose).or(comma).or(space)?;
    let mut start = at + length;
    if sure.or(loose).is_some() {
        while text.get(start) == Some(&' ') {
            start += 1;
        }
    }
    let digits = run_of_digits(text, start);
    if digits.len() != 3 {
        return None;
    }
    *commas |= sure.or(loose).is_none() && comma.is_some();
    Some(start + 3)
}

/// Digits after the decimal point.
fn decimals(text: &[char], at: usize, options: Options, commas: bool) -> Option<(String, usize)> {
    let skip = match text.get(at)? {
        '.' => 1,
        '{' if starts_with(text, at, "{.}") => 3,
        ',' if options.decimal_comma && !commas => 1,
        _ => return None,
    };
    let digits = run_of_digits(text, at + skip);
    let repeats = skip == 1 && repeating(text, at + 1, true).is_some();
    if digits.is_empty() && !repeats {
        return None;
    }
    let end = at + skip + digits.len();
    Some((digits, end))
}

/// The digits under a line: `0.\overline{3}`.
fn repeating(text: &[char], at: usize, after_point: bool) -> Option<(String, usize)> {
    if !after_point {
        return None;
    }
    let lead = ["\\overline{", "\\bar{", "\\dot{"].iter().find(|lead| starts_with(text, at, lead))?.len();
    let digits = run_of_digits(text, at + lead);
    let end = at + lead + digits.len();
    (!digits.is_empty() && digits.len() < 1000 && text.get(end) == Some(&'}')).then_some((digits, end + 1))
}

/// `e3`, `e-5`; a sign is taken only after a decimal, since `2e+3` is also a sum.
fn exponent(text: &[char], at: usize, decimal: bool) -> Option<(i32, usize)> {
    if !matches!(text.get(at), Some('e' | 'E')) {
        return None;
    }
    let signed = matches!(text.get(at + 1), Some('-' | '+'));
    if signed && !decimal && text.get(at + 1) == Some(&'+') {
        return None;
    }
    let start = at + 1 + usize::from(signed);
    let digits = run_of_digits(text, start);
    let end = start + digits.len();
    if digits.is_empty() || text.get(end).is_some_and(|c| c.is_alphabetic()) {
        return None;
    }
    let value = digits.parse::<u32>().ok().filter(|value| *value <= LARGEST_EXPONENT)?;
    let value = i32::try_from(value).ok()?;
    Some((if text.get(at + 1) == Some(&'-') { -value } else { value }, end))
}

/// Length of an ordinal ending: `3rd`.
fn ordinal(text: &[char], at: usize) -> usize {
    let found = ["st", "nd", "rd", "th"].iter().any(|end| starts_with(text, at, end));
    if found && !text.get(at + 2).is_some_and(|c| c.is_alphanumeric()) { 2 } else { 0 }
}

/// `2516_9`, `152A_{11}`, `0.0011_{2}`.
pub(super) fn based(text: &[char], at: usize) -> Option<(Token, usize)> {
    let mut end = at;
    let mut point = None;
    while let Some(c) = text.get(end) {
        match c {
            '0'..='9' | 'A'..='Z' => {}
            '.' if point.is_none() && text.get(end + 1).is_some_and(char::is_ascii_digit) => {
                point = Some(end);
            }
            _ => break,
        }
        end += 1;
        if end - at > 400 {
            return None;
        }
    }
    let digits: String = text.get(at..end)?.iter().collect();
    while text.get(end) == Some(&' ') {
        end += 1;
    }
    if text.get(end) != Some(&'_') {
        return None;
    }
    end += 1;
    while text.get(end) == Some(&' ') {
        end += 1;
    }
    let braced = text.get(end) == Some(&'{');
    let base_digits = run_of_digits(text, end + usize::from(braced));
    end += usize::from(braced) + base_digits.len();
    if braced && text.get(end) != Some(&'}') {
        return None;
    }
    end += usize::from(braced);
    let base = base_digits.parse::<u32>().ok().filter(|base| (2..=36).contains(base))?;
    let mut value = BigInt::zero();
    let mut scale = BigInt::one();
    let mut after = false;
    for c in digits.chars() {
        if c == '.' {
            after = true;
            continue;
        }
        value = value * base + c.to_digit(36).filter(|digit| *digit < base)?;
        if after {
            scale *= base;
        }
    }
    Some((Token::Based { digits, base, value: BigRational::new(value, scale) }, end - at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, usize)> {
        let chars: Vec<char> = text.chars().collect();
        let options = Options { commas: true, spaces: false, decimal_comma: false };
        numeral(&chars, 0, options, false).map(|(token, len)| (token.text(), len))
    }

    #[test]
    fn numerals_are_read() {
        let cases = [
            ("1,234,567", "1234567", 9),
            ("1{,}234", "1234", 7),
            ("32,\\! 349", "32349", 9),
            ("2\\,220", "2220", 6),
            ("1,23", "1", 1),
            ("4,6,14", "4", 1),
            ("0.50", "1/2", 4),
            (".4", "2/5", 2),
            ("0.\\overline{3}", "1/3", 14),
            ("0.1\\overline{6}", "1/6", 15),
            ("1.5e3", "1500", 5),
            ("2516_9", "2516_9", 6),
            ("152A_{11}", "152A_11", 9),
            ("3rd", "3", 3),
            ("12'000", "12000", 6),
            ("5'11", "5", 1),
            ("42.", "42", 2),
            ("0.333...", "1/3", 8),
            ("0.1212\\ldots", "4/33", 12),
            ("1.25e-2...", "1/80", 7),
            ("4.5e-3\\ldots", "9/2000", 6),
        ];
        for (text, value, len) in cases {
            assert_eq!(read(text), Some((value.to_owned(), len)), "{text}");
        }
    }
}
