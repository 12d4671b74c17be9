//! Units of measurement: which words are units, and how many base units each is.

use num_bigint::BigInt;
use num_rational::BigRational;

/// What a unit measures. Two units can be converted only within one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitKind {
    Length,
    Area,
    Volume,
    Time,
    Mass,
    Money,
    Angle,
    Temperature,
    Speed,
    Percent,
    /// Half of the day: before or after noon.
    Clock,
    /// A counted thing or a phrase that is not in the table.
    Other,
}

/// A unit as part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Normalised spelling.
    pub(crate) name: String,
    pub(crate) kind: UnitKind,
    /// Base units in one of it.
    pub(crate) factor: BigRational,
}

/// Spelling, normalised name, kind, factor (numerator and denominator).
type Row = (&'static str, &'static str, UnitKind, i64, i64);

use UnitKind::{Angle, Area, Clock, Length, Mass, Money, Other, Percent, Speed, Temperature, Time, Volume};

/// Base units: metre, litre, second, gram, one unit of each currency, degree. Plurals are found by dropping an `s`.
const TABLE: &[Row] = &[
    ("mm", "mm", Length, 1, 1000),
    ("millimeter", "mm", Length, 1, 1000),
    ("cm", "cm", Length, 1, 100),
    ("centimeter", "cm", Length, 1, 100),
    ("centimetre", "cm", Length, 1, 100),
    ("m", "m", Length, 1, 1),
    ("meter", "m", Length, 1, 1),
    ("metre", "m", Length, 1, 1),
    ("km", "km", Length, 1000, 1),
    ("kilometer", "km", Length, 1000, 1),
    ("kilometre", "km", Length, 1000, 1),
    ("inch", "in", Length, 254, 10_000),
    ("inches", "in", Length, 254, 10_000),
    ("in", "in", Length, 254, 10_000),
    ("ft", "ft", Length, 3048, 10_000),
    ("foot", "ft", Length, 3048, 10_000),
    ("feet", "ft", Length, 3048, 10_000),
    ("yd", "yd", Length, 9144, 10_000),
    ("yard", "yd", Length, 9144, 10_000),
    ("mi", "mile", Length, 1_609_344, 1000),
    ("mile", "mile", Length, 1_609_344, 1000),
    ("ml", "ml", Volume, 1, 1000),
    ("milliliter", "ml", Volume, 1, 1000),
    ("l", "l", Volume, 1, 1),
    ("liter", "l", Volume, 1, 1),
    ("litre", "l", Volume, 1, 1),
    ("gallon", "gallon", Volume, 3_785_411_784, 1_000_000_000),
    ("s", "s", Time, 1, 1),
    ("sec", "s", Time, 1, 1),
    ("second", "s", Time, 1, 1),
    ("min", "min", Time, 60, 1),
    ("minute", "min", Time, 60, 1),
    ("h", "h", Time, 3600, 1),
    ("hr", "h", Time, 3600, 1),
    ("hour", "h", Time, 3600, 1),
    ("day", "day", Time, 86_400, 1),
    ("week", "week", Time, 604_800, 1),
    ("mg", "mg", Mass, 1, 1000),
    ("g", "g", Mass, 1, 1),
    ("gm", "g", Mass, 1, 1),
    ("gram", "g", Mass, 1, 1),
    ("kg", "kg", Mass, 1000, 1),
    ("kilogram", "kg", Mass, 1000, 1),
    ("lb", "lb", Mass, 45_359_237, 100_000),
    ("pound", "lb", Mass, 45_359_237, 100_000),
    ("ounce", "ounce", Mass, 45_359_237, 1_600_000),
    ("dollar", "dollar", Money, 100, 1),
    ("usd", "dollar", Money, 100, 1),
    ("cent", "cent", Money, 1, 1),
    ("degree", "degree", Angle, 1, 1),
    ("deg", "degree", Angle, 1, 1),
    ("percent", "percent", Percent, 1, 1),
    ("percentage", "percent", Percent, 1, 1),
    ("pct", "percent", Percent, 1, 1),
    ("mph", "mph", Speed, 44_704, 100_000),
    ("am", "am", Clock, 1, 1),
    ("pm", "pm", Clock, 1, 1),
    ("celsius", "celsius", Temperature, 1, 1),
    ("fahrenheit", "fahrenheit", Other, 1, 1),
    ("euro", "euro", Other, 1, 1),
    ("yuan", "yuan", Other, 1, 1),
    ("rupee", "rupee", Other, 1, 1),
    ("rs", "rupee", Other, 1, 1),
    ("sterling", "sterling", Other, 1, 1),
    ("yen", "yen", Other, 1, 1),
    ("unit", "unit", Other, 1, 1),
    ("square", "square", Other, 1, 1),
    ("sq", "square", Other, 1, 1),
    ("cubic", "cubic", Other, 1, 1),
    ("cu", "cubic", Other, 1, 1),
    ("acre", "acre", Area, 40_468_564_224, 10_000_000),
    ("year", "year", Other, 1, 1),
    ("month", "month", Other, 1, 1),
];

fn row(word: &str) -> Option<&'static Row> {
    let lower = word.to_lowercase();
    let find = |key: &str| TABLE.iter().find(|row| row.0 == key);
    find(&lower).or_else(|| lower.strip_suffix('s').and_then(find))
}

/// Whether a run of letters in a formula is a unit. Single letters are variables there, and so is `in`.
pub(crate) fn is_unit_word(word: &str) -> bool {
    multiplier(word).is_some()
        || word.len() > 1 && word != "in" && word != "as" && word != "ms" && word != "gs" && row(word).is_some()
}

/// The power of ten that a word after a number stands for: `5 million`.
pub(crate) fn multiplier(word: &str) -> Option<u32> {
    Some(match word.to_lowercase().as_str() {
        "hundred" => 2,
        "thousand" => 3,
        "million" => 6,
        "billion" => 9,
        "trillion" => 12,
        _ => return None,
    })
}

/// Whether a word is a currency, which may stand before its number.
pub(crate) fn is_currency(word: &str) -> bool {
    matches!(Unit::named(word).name.as_str(), "euro" | "yen" | "rupee" | "yuan" | "dollar" | "cent" | "sterling")
}

impl Unit {
    pub(crate) fn named(word: &str) -> Self {
        row(word).map_or_else(
            || Self { name: word.to_lowercase(), kind: Other, factor: ratio(1, 1) },
            |&(_, name, kind, num, den)| Self { name: name.to_owned(), kind, factor: ratio(num, den) },
        )
    }

    /// Reads the words after a number, with an exponent if one was written: `square feet`, `cm` squared, `sq. units`.
    pub(crate) fn phrase(words: &[String], exponent: u32) -> Self {
        let mut power = exponent;
        let mut rest: Vec<&str> = Vec::new();
        for word in words {
            match word.to_lowercase().as_str() {
                "square" | "sq" | "squared" => power = 2,
                "cubic" | "cu" | "cubed" => power = 3,
                "of" | "the" | "a" => {}
                _ => rest.push(word),
            }
        }
        if let [word] = rest.as_slice() {
            let unit = Self::named(word);
            return match (power, unit.kind) {
                (2 | 3, Length) => {
                    let kind = if power == 2 { Area } else { Volume };
                    // A litre is a thousandth of a cubic metre.
                    let scale = if power == 3 { ratio(1000, 1) } else { ratio(1, 1) };
                    let factor = unit.factor.pow(power.cast_signed()) * scale;
                    Self { name: format!("{}^{power}", unit.name), kind, factor }
                }
                (2 | 3, _) => Self { name: format!("{}^{power}", unit.name), kind: Other, factor: ratio(1, 1) },
                _ => unit,
            };
        }
        let normal: Vec<String> = rest.iter().map(|word| Self::named(word).name).collect();
        Self { name: normal.join(" "), kind: Other, factor: ratio(1, 1) }
    }
}

fn ratio(num: i64, den: i64) -> BigRational {
    BigRational::new(BigInt::from(num), BigInt::from(den))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_normalised() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(Unit::phrase(&words("square feet"), 1), Unit::phrase(&words("ft"), 2));
        assert_eq!(Unit::phrase(&words("meters"), 1).name, "m");
        assert_eq!(Unit::phrase(&words("children tickets"), 1).kind, Other);
        assert_eq!(Unit::phrase(&words("cm"), 3).factor, Unit::phrase(&words("ml"), 1).factor);
        assert!(is_unit_word("dollars"));
        assert!(!is_unit_word("m"));
    }
}
