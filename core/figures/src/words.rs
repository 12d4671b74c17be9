//! Text that fits.

/// Letters of a name that are shown.
const SHOWN: usize = 36;

/// A name that fits beside others.
pub fn shortened(name: &str) -> String {
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// Breaks a text at spaces into lines of at most `most` letters; a longer word has a line of its own.
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_break_at_spaces() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("muchtoolong a", 4), ["muchtoolong", "a"]);
        assert!(wrapped("", 4).is_empty());
    }

    #[test]
    fn names_end_at_a_letter() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"\u{3c1}".repeat(40)), "\u{3c1}".repeat(36) + "...");
    }
}
