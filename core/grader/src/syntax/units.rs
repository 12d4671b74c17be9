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
    /// Temperature from absolute zero on, which differs from other scales by more than a factor.
    Absolute,
    Speed,
    Force,
    Energy,
    Power,
    Voltage,
    Current,
    Frequency,
    Pressure,
    Percent,
    /// One thing in another that is not in the table as a whole: which ones, as a sum of weights.
    Compound(i32),
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

use UnitKind::{
    Absolute, Angle, Area, Clock, Compound, Current, Energy, Force, Frequency, Length, Mass, Money, Other, Percent,
    Power, Pressure, Speed, Temperature, Time, Voltage, Volume,
};

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
    ("cl", "cl", Volume, 1, 100),
    ("gallon", "gallon", Volume, 3_785_411_784, 1_000_000_000),
    ("gal", "gallon", Volume, 3_785_411_784, 1_000_000_000),
    ("quart", "quart", Volume, 3_785_411_784, 4_000_000_000),
    ("qt", "quart", Volume, 3_785_411_784, 4_000_000_000),
    ("pint", "pint", Volume, 3_785_411_784, 8_000_000_000),
    ("cup", "cup", Volume, 3_785_411_784, 16_000_000_000),
    ("tablespoon", "tablespoon", Volume, 3_785_411_784, 256_000_000_000),
    ("tbsp", "tablespoon", Volume, 3_785_411_784, 256_000_000_000),
    ("teaspoon", "teaspoon", Volume, 3_785_411_784, 768_000_000_000),
    ("tsp", "teaspoon", Volume, 3_785_411_784, 768_000_000_000),
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
    ("oz", "ounce", Mass, 45_359_237, 1_600_000),
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
    ("kph", "kph", Speed, 5, 18),
    ("kmh", "kph", Speed, 5, 18),
    ("newton", "newton", Force, 1, 1),
    ("kilonewton", "kilonewton", Force, 1000, 1),
    ("joule", "joule", Energy, 1, 1),
    ("megajoule", "megajoule", Energy, 1_000_000, 1),
    ("kj", "kj", Energy, 1000, 1),
    ("kilojoule", "kj", Energy, 1000, 1),
    ("kwh", "kwh", Energy, 3_600_000, 1),
    ("watt", "watt", Power, 1, 1),
    ("kw", "kw", Power, 1000, 1),
    ("kilowatt", "kw", Power, 1000, 1),
    ("megawatt", "megawatt", Power, 1_000_000, 1),
    ("volt", "volt", Voltage, 1, 1),
    ("kv", "kv", Voltage, 1000, 1),
    ("millivolt", "millivolt", Voltage, 1, 1000),
    ("ampere", "ampere", Current, 1, 1),
    ("amp", "ampere", Current, 1, 1),
    ("milliampere", "milliampere", Current, 1, 1000),
    ("kelvin", "kelvin", Absolute, 1, 1),
    ("hertz", "hertz", Frequency, 1, 1),
    ("hz", "hertz", Frequency, 1, 1),
    ("khz", "khz", Frequency, 1000, 1),
    ("mhz", "mhz", Frequency, 1_000_000, 1),
    ("ghz", "ghz", Frequency, 1_000_000_000, 1),
    ("pascal", "pascal", Pressure, 1, 1),
    ("kpa", "kpa", Pressure, 1000, 1),
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

/// Symbols of one capital letter and the like, which mean something else as small letters.
const SYMBOLS: &[(&str, &str)] = &[
    ("N", "newton"),
    ("J", "joule"),
    ("W", "watt"),
    ("V", "volt"),
    ("A", "ampere"),
    ("K", "kelvin"),
    ("Pa", "pascal"),
    ("kN", "kilonewton"),
    ("MJ", "megajoule"),
    ("MW", "megawatt"),
    ("mV", "millivolt"),
    ("mA", "milliampere"),
];

/// Whether a word is a symbol that only capitals make a unit.
pub(crate) fn is_unit_symbol(word: &str) -> bool {
    SYMBOLS.iter().any(|(symbol, _)| *symbol == word)
}

fn row(word: &str) -> Option<&'static Row> {
    let word = SYMBOLS.iter().find(|(symbol, _)| *symbol == word).map_or(word, |(_, name)| *name);
    let lower = word.to_lowercase();
    let find = |key: &str| TABLE.iter().find(|row| row.0 == key);
    find(&lower).or_else(|| lower.strip_suffix('s').and_then(find))
}

/// Whether a run of letters in a formula is a unit. Single letters are variables there, and so is `in`.
pub(crate) fn is_unit_word(word: &str) -> bool {
    // Products of variables rather than units.
    const PRODUCTS: [&str; 12] = ["in", "as", "ms", "gs", "qt", "cl", "kw", "kv", "kj", "hz", "ns", "pa"];
    let lower = word.to_lowercase();
    multiplier(word).is_some() || word.len() > 1 && !PRODUCTS.contains(&lower.as_str()) && row(word).is_some()
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
                "of" | "the" => {}
                "a" if word == "a" => {}
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
        if let Some(unit) = Self::per(&rest, power) {
            return unit;
        }
        if let [fluid, ounce] = rest.as_slice()
            && matches!(fluid.to_lowercase().as_str(), "fl" | "fluid")
            && Self::named(ounce).name == "ounce"
        {
            return Self {
                name: "fluid ounce".to_owned(),
                kind: Volume,
                factor: ratio(3_785_411_784, 128_000_000_000),
            };
        }
        let normal: Vec<String> = rest.iter().map(|word| Self::named(word).name).collect();
        Self { name: normal.join(" "), kind: Other, factor: ratio(1, 1) }
    }
}

impl Unit {
    /// One unit in another: `km per h`, `miles an hour`, `m per s` with the exponent behind it.
    fn per(words: &[&str], power: u32) -> Option<Self> {
        let [above, "per" | "an", below] = words else { return None };
        let (above, below) = (Self::named(above), Self::named(below));
        let power = i32::try_from(power).ok().filter(|power| (1..=3).contains(power))?;
        // A cubic metre is a thousand litres.
        let (kind, scale) = match (below.kind, power) {
            (Length, 2) => (Area, ratio(1, 1)),
            (Length, 3) => (Volume, ratio(1000, 1)),
            (kind, _) => (kind, ratio(1, 1)),
        };
        let left = if kind == below.kind { power } else { 1 };
        let weights = weight(above.kind)? - left * weight(kind)?;
        let factor = &above.factor / (below.factor.pow(power) * scale);
        let speed = weight(Length)? - weight(Time)?;
        let kind = if weights == speed { Speed } else { Compound(weights) };
        let name = if power == 1 {
            format!("{} per {}", above.name, below.name)
        } else {
            format!("{} per {}^{power}", above.name, below.name)
        };
        Some(Self { name, kind, factor })
    }
}

/// A weight for each kind, so far apart that sums of few of them differ.
fn weight(kind: UnitKind) -> Option<i32> {
    let place = match kind {
        Length => 0,
        Time => 1,
        Mass => 2,
        Money => 3,
        Area => 4,
        Volume => 5,
        Energy => 6,
        Force => 7,
        Power => 8,
        Angle => 9,
        _ => return None,
    };
    Some(7i32.pow(place))
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
        let unit = |text: &str, power: u32| Unit::phrase(&words(text), power);
        assert_eq!(unit("km per h", 1).factor, unit("m per s", 1).factor * ratio(5, 18));
        assert_eq!(unit("miles per hour", 1).factor, unit("mph", 1).factor);
        assert_eq!(unit("km per h", 1).kind, unit("mph", 1).kind);
        assert_ne!(unit("m per s", 2).kind, unit("m per s", 1).kind);
        assert_eq!(unit("g per cm", 3).factor, unit("kg per l", 1).factor);
        assert_ne!(unit("kg per m", 3).factor, unit("g per cm", 3).factor);
        assert_eq!(unit("quarts", 1).factor * ratio(4, 1), unit("gallon", 1).factor);
        assert_eq!(unit("A", 1).name, "ampere");
        assert!(is_unit_word("dollars"));
        assert!(!is_unit_word("m"));
    }
}
