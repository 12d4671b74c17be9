//! Fillers: the tokens that replace an occluded window. One id a position, so the length of the context never changes.

use std::ops::Range;
use std::str::FromStr;

use epikv_model::sampler::RandomStream;
use epikv_model::tokenizer::Tokenizer;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Kinds of filler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filler {
    /// The end-of-sequence token, as in the published labels (its model pads with it).
    Eos,
    /// The padding token.
    Pad,
    /// One seeded ordinary token, the same everywhere.
    Random,
    /// A seeded ordinary token for each position of each window.
    RandMulti,
    /// A given token.
    Token(u32),
    /// A text, repeated until the window is full; its tokens begin again in each window.
    Text(String),
}

impl std::fmt::Display for Filler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Eos => f.write_str("eos"),
            Self::Pad => f.write_str("pad"),
            Self::Random => f.write_str("random"),
            Self::RandMulti => f.write_str("randmulti"),
            Self::Token(id) => write!(f, "token:{id}"),
            Self::Text(text) => write!(f, "text:{text:?}"),
        }
    }
}

impl FromStr for Filler {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let token = text.strip_prefix("token:").and_then(|id| id.parse().ok()).map(Self::Token);
        let given = text.strip_prefix("text:").map(unquoted).filter(|text| !text.is_empty()).map(Self::Text);
        match text {
            "eos" => Ok(Self::Eos),
            "pad" => Ok(Self::Pad),
            "random" => Ok(Self::Random),
            "randmulti" => Ok(Self::RandMulti),
            _ => token.or(given).ok_or_else(|| Error::Setting {
                setting: "--filler",
                expected: "eos, pad, random, randmulti, token:ID or text:TEXT".to_owned(),
                got: text.to_owned(),
            }),
        }
    }
}

/// A text as typed: between quotes with escapes such as `"\n"`, or as it stands.
fn unquoted(text: &str) -> String {
    let quoted = text.starts_with('"').then(|| serde_json::from_str(text).ok()).flatten();
    quoted.unwrap_or_else(|| text.to_owned())
}

/// A filler whose tokens are known to exist in a model.
#[derive(Debug, Clone)]
pub struct FillerSource {
    /// What is repeated; empty for a draw at each position.
    ids: Vec<u32>,
    /// Ids that random fillers draw from: every ordinary token.
    ordinary: Vec<u32>,
    seed: u64,
}

impl FillerSource {
    /// Resolves a filler for a model.
    pub fn new(kind: &Filler, seed: u64, tokenizer: &Tokenizer, eos: Option<u32>, vocab_size: usize) -> Result<Self> {
        let missing = |filler, token| Error::NoFillerToken { filler, token };
        let drawn = matches!(kind, Filler::Random | Filler::RandMulti);
        let known = vocab_size.min(tokenizer.vocab_size()) as u32;
        let ordinary: Vec<u32> =
            if drawn { (0..known).filter(|&id| !tokenizer.is_special(id)).collect() } else { Vec::new() };
        if drawn && ordinary.is_empty() {
            return Err(missing("random", "ordinary"));
        }
        let ids = match kind {
            Filler::Eos => vec![eos.ok_or(missing("eos", "end-of-sequence"))?],
            Filler::Pad => vec![tokenizer.pad_id().ok_or(missing("pad", "padding"))?],
            Filler::Token(id) => vec![*id],
            Filler::Text(text) => tokenizer.encode(text, false)?,
            Filler::Random => vec![draw(&ordinary, RandomStream { seed, problem: 0, sample: 0 }.uniform(0))],
            Filler::RandMulti => Vec::new(),
        };
        if ids.is_empty() && *kind != Filler::RandMulti {
            return Err(missing("text", "token of that"));
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocab_size) {
            return Err(Error::Setting {
                setting: "--filler",
                expected: format!("a token below the vocabulary of {vocab_size}"),
                got: id.to_string(),
            });
        }
        Ok(Self { ids, ordinary, seed })
    }

    /// The ids for a window of a trace.
    pub fn ids(&self, trace: u64, window: &Range<usize>) -> Vec<u32> {
        let stream = RandomStream { seed: self.seed, problem: trace, sample: window.start as u32 };
        if self.ids.is_empty() {
            return (0..window.len()).map(|i| draw(&self.ordinary, stream.uniform(i))).collect();
        }
        self.ids.iter().copied().cycle().take(window.len()).collect()
    }
}

fn draw(ids: &[u32], u: f64) -> u32 {
    ids[((u * ids.len() as f64) as usize).min(ids.len() - 1)]
}

/// Sha256 over filler ids, each as four little-endian bytes, in hexadecimal.
pub fn ids_sha256(ids: &[u32]) -> String {
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: &Filler) -> FillerSource {
        let tokenizer = Tokenizer::builtin_bytes().expect("built in");
        let eos = tokenizer.eos_id();
        FillerSource::new(kind, 3, &tokenizer, eos, tokenizer.vocab_size()).expect("known")
    }

    #[test]
    fn names_round_trip() {
        for name in ["eos", "pad", "random", "randmulti", "token:17", "text:\"a b\\n\""] {
            assert_eq!(name.parse::<Filler>().expect(name).to_string(), name);
        }
        assert_eq!("text:Hm, well".parse::<Filler>().expect("a text"), Filler::Text("Hm, well".to_owned()));
        assert!(["token:x", "text:", "text:\"\""].iter().all(|text| text.parse::<Filler>().is_err()));
    }

    #[test]
    fn one_id_or_many() {
        assert!(source(&Filler::Eos).ids(1, &(5..9)).windows(2).all(|w| w[0] == w[1]));
        assert_eq!(source(&Filler::Token(9)).ids(1, &(5..8)), [9, 9, 9]);
        assert_eq!(source(&Filler::Text("ab".to_owned())).ids(1, &(5..10)), {
            let ids = Tokenizer::builtin_bytes().expect("built in").encode("ab", false).expect("bytes");
            [ids[0], ids[1], ids[0], ids[1], ids[0]]
        });
        let random = source(&Filler::Random);
        assert_eq!(random.ids(1, &(5..9)), random.ids(2, &(21..25)), "one id for the whole run");
        let many = source(&Filler::RandMulti);
        assert_eq!(many.ids(1, &(5..37)), many.ids(1, &(5..37)));
        assert_ne!(many.ids(1, &(5..37)), many.ids(1, &(21..53)));
        assert_ne!(many.ids(1, &(5..37)), many.ids(2, &(5..37)));
    }

    #[test]
    fn a_token_outside_the_vocabulary_is_refused() {
        let tokenizer = Tokenizer::builtin_bytes().expect("built in");
        assert!(FillerSource::new(&Filler::Token(9999), 0, &tokenizer, None, 264).is_err());
        assert!(FillerSource::new(&Filler::Eos, 0, &tokenizer, None, 264).is_err(), "no eos");
    }
}
