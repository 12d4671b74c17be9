//! Number words, and short words that are no products of variables.

/// Whether a short run of letters is a word rather than a product.
pub(crate) fn is_short_word(run: &str) -> bool {
    const SHORT: [&str; 46] = [
        "not", "it", "is", "the", "are", "no", "yes", "all", "any", "odd", "to", "of", "so", "we", "be", "by", "has",
        "his", "her", "he", "she", "at", "as", "on", "if", "was", "day", "may", "red", "none", "true", "both", "that",
        "then", "per", "cup", "egg", "pen", "box", "bag", "ton", "car", "men", "way", "bus", "pie",
    ];
    let lower = run.to_lowercase();
    let shape = run == lower || run.chars().skip(1).all(char::is_lowercase);
    shape && (SHORT.contains(&lower.as_str()) || number_word(&lower).is_some())
}

/// Words for the sign of approximation.
pub(crate) fn is_approximation(word: &str) -> bool {
    ["about", "approximately", "approx", "roughly"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The number that a few English words say: `ten`, `twenty-five`, `one hundred`.
pub(crate) fn number_word(text: &str) -> Option<i64> {
    const SMALL: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let mut total = 0i64;
    let mut part = 0i64;
    let mut any = false;
    for word in text.split([' ', '-']).filter(|word| !word.is_empty()) {
        if let Some(n) = SMALL.iter().position(|small| *small == word) {
            part += i64::try_from(n).ok()?;
        } else if let Some(n) = TENS.iter().position(|tens| *tens == word) {
            part += 10 * (i64::try_from(n).ok()? + 2);
        } else {
            match word {
                "hundred" => part = part.max(1).checked_mul(100)?,
                "thousand" | "million" => {
                    let scale = if word == "thousand" { 1_000 } else { 1_000_000 };
                    total = total.checked_add(part.max(1).checked_mul(scale)?)?;
                    part = 0;
                }
                "and" if any => {}
                _ => return None,
            }
        }
        any = true;
    }
    any.then(|| total.checked_add(part)).flatten()
}

#[cfg(test)]
mod tests {
    use super::number_word;

    #[test]
    fn words_are_read() {
        assert_eq!(number_word("ten"), Some(10));
        assert_eq!(number_word("twenty-five"), Some(25));
        assert_eq!(number_word("one hundred and two"), Some(102));
        assert_eq!(number_word("evelyn"), None);
        assert_eq!(number_word(""), None);
    }
}
