//! Words of the libraries as they are typed.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use epikv_words::Word;

/// Parses the names of a choice; `--help` and errors list them.
pub(crate) fn word<W: Word>() -> impl TypedValueParser<Value = W> {
    let listed = |value: &W| PossibleValue::new(value.name()).help(value.help());
    let parser = PossibleValuesParser::new(W::VALUES.iter().map(listed));
    parser.try_map(|name| W::from_name(&name).ok_or("expected another word"))
}
