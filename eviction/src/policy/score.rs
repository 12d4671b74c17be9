//! What a token is worth to a policy. Higher is kept.
//!
//! | score | value of the token at position `p` | when |
//! | --- | --- | --- |
//! | `recency` | `p` | frozen |
//! | `random` | a number in [0, 1) that depends on (seed, problem, sample, `p`) and nothing else | frozen |
//! | `epikv` | [`Epikv`]: z-score of the step at layer 10 less that at layer 21 | frozen |
//! | `epikv-raw` | the same with rolling means | frozen |
//! | `layer(L)`, `layer(-L)` | [`BandScore`]: z-score of the step at layer `L` of this model, or its negative | frozen |
//! | `kv-key` | [`KvKey`]: rolling mean of the key's variance over channels | frozen |
//! | `labels` | share of the windows over `p` that flipped the answer; 1 where there is no label | frozen |
//! | `k-norm`, `key-diff` | [`KeyScore`]: minus the key's length, or its cosine with the mean direction | live |
//! | `h2o` | [`AttentionSum`]: attention received since the start, `h2o(decode)` since the prompt's end | live |
//! | `tova` | [`AttentionSum`]: attention received from the newest token | live |
//! | `raas` | [`Stamps`]: when it last received at least the median of the newest row of attention | live |
//! | `snapkv`, `snapkv-decode`, `r-kv`, `vase` | [`WindowAttention`]: attention received from the newest tokens, computed at an eviction | live |
//! | `lag-kv`, `epikv-lag`, `epikv-lag-key` | [`LagScore`]: spread of channels on the scale of a neighbouring chunk | live |
//!
//! A frozen score is given once, when the token is fed. Signals score generated tokens only: a prompt token that is not
//! protected, and a token at which a signal is undefined, counts as lowest.

use std::fmt;
use std::str::FromStr;

use epikv_model::cache::Pos;
use epikv_model::sampler::RandomStream;
use epikv_model::taps::ProbePlan;
use epikv_signals::{
    AttentionRows, AttentionSum, BandScore, Epikv, KeyScore, KvKey, Lag, LagScore, Signal, Stamps, WindowAttention,
};

use crate::error::{Error, Result};
use crate::policy::own_score::{OwnKind, OwnScore};
use crate::policy::windows;

/// Keeps the numbers of this score apart from those that choose tokens, which have the same keys.
const STREAM: u64 = 0x0065_7669_6374_696f;

/// A score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Score {
    /// Newer is higher.
    Recency,
    /// Drawn.
    Random,
    /// The difference of two layers.
    Epikv(Bands),
    /// One layer.
    Layer(OneLayer),
    /// Key variance.
    KvKey,
    /// By the keys held.
    Keys(KeyScore),
    /// Attention received.
    H2o(AttentionRows),
    /// When it was last looked at.
    Raas,
    /// Attention received from the newest tokens.
    Window(WindowAttention),
    /// Spread of channels beside a neighbouring chunk.
    Lag(LagScore),
    /// Labels of an earlier `epikv label`, replayed.
    Labels,
    /// One from outside this crate.
    Own(&'static OwnScore),
}

/// How the difference of two layers is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bands {
    /// Rolling means instead of z-scores.
    pub raw: bool,
    /// The layers of this model; those that 10 and 21 of 32 map to where not given.
    pub layers: Option<[usize; 2]>,
    /// Length of the rolling window; 64 where not given.
    pub window: Option<usize>,
}

/// A layer of this model whose z-score is the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneLayer {
    /// The layer, 0-based.
    pub layer: usize,
    /// Small steps are kept.
    pub minus: bool,
}

impl OneLayer {
    fn signal(self, n_layers: usize) -> Result<BandScore> {
        Ok(BandScore::at_layer(self.layer, self.minus, n_layers)?)
    }
}

impl Bands {
    fn signal(self, n_layers: usize) -> Result<Epikv> {
        let score = match self.layers {
            Some(layers) => Epikv::new(layers, n_layers)?,
            None => Epikv::of_depth(n_layers)?,
        };
        let score = if self.raw { score.raw() } else { score };
        Ok(match self.window {
            Some(window) => score.with_window(window)?,
            None => score,
        })
    }
}

impl Score {
    /// What the forward pass must record for it.
    ///
    /// # Errors
    /// If the model is too shallow for it.
    pub fn plan(self, n_layers: usize) -> Result<ProbePlan> {
        Ok(match self {
            Self::Recency | Self::Random | Self::Labels | Self::Keys(_) | Self::Lag(_) => ProbePlan::default(),
            Self::Epikv(bands) => bands.signal(n_layers)?.plan(),
            Self::Layer(one) => one.signal(n_layers)?.plan(),
            Self::KvKey => KvKey::new(n_layers)?.plan(),
            Self::H2o(rows) => AttentionSum::plan(rows, n_layers),
            Self::Raas => Stamps::plan(n_layers),
            Self::Window(_) => WindowAttention::plan(n_layers),
            Self::Own(own) => match own.kind {
                OwnKind::Signal(build) => build(n_layers)?.plan(),
                OwnKind::Cache(_) => ProbePlan::default(),
            },
        })
    }

    /// The layers that it reads, where it does not read all.
    ///
    /// # Errors
    /// If the model is too shallow for it.
    pub fn layers(self, n_layers: usize) -> Result<Option<[usize; 2]>> {
        match self {
            Self::Epikv(bands) => Ok(Some(bands.signal(n_layers)?.layers())),
            _ => Ok(None),
        }
    }

    /// Whether it is a function of attention weights, in a model of so many layers.
    pub fn needs_attention(self, n_layers: usize) -> bool {
        self.plan(n_layers).is_ok_and(|plan| plan.needs_attention())
    }

    /// Whether it is computed from what is held, and not given once when a token is fed.
    pub fn is_live(self) -> bool {
        match self {
            Self::Keys(_) | Self::H2o(_) | Self::Raas | Self::Window(_) | Self::Lag(_) => true,
            Self::Own(own) => matches!(own.kind, OwnKind::Cache(_)),
            _ => false,
        }
    }

    /// Whether it is a weight that tokens can be drawn by: never below zero.
    pub fn is_weight(self) -> bool {
        match self {
            Self::H2o(_) => true,
            Self::Window(how) => how.lambda.is_none(),
            _ => false,
        }
    }

    /// The signal that gives it, where one does.
    pub(crate) fn signal(self, n_layers: usize) -> Result<Option<Box<dyn Signal>>> {
        Ok(match self {
            Self::Epikv(bands) => Some(Box::new(bands.signal(n_layers)?)),
            Self::Layer(one) => Some(Box::new(one.signal(n_layers)?)),
            Self::KvKey => Some(Box::new(KvKey::new(n_layers)?)),
            Self::Own(OwnScore { kind: OwnKind::Signal(build), .. }) => Some(build(n_layers)?),
            _ => None,
        })
    }
}

/// The number that the score `random` gives a position.
pub(crate) fn drawn(pos: Pos, stream: RandomStream) -> f32 {
    let own = RandomStream { seed: stream.seed ^ STREAM, ..stream };
    own.uniform(pos.0 as usize) as f32
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recency => f.write_str("recency"),
            Self::Random => f.write_str("random"),
            Self::KvKey => f.write_str("kv-key"),
            Self::Keys(KeyScore::Norm) => f.write_str("k-norm"),
            Self::Keys(KeyScore::Difference) => f.write_str("key-diff"),
            Self::H2o(AttentionRows::All) => f.write_str("h2o"),
            Self::H2o(AttentionRows::Decode) => f.write_str("h2o(decode)"),
            Self::H2o(AttentionRows::Newest) => f.write_str("tova"),
            Self::Raas => f.write_str("raas"),
            Self::Window(how) => f.write_str(&windows::name(*how)),
            Self::Lag(LagScore { lag, chunk }) => {
                f.write_str(match lag {
                    Lag::Next => "lag-kv",
                    Lag::Previous => "epikv-lag",
                    Lag::PreviousKeys => "epikv-lag-key",
                })?;
                if *chunk == LagScore::CHUNK { Ok(()) } else { write!(f, "({chunk})") }
            }
            Self::Labels => f.write_str("labels"),
            Self::Own(own) => f.write_str(own.name),
            Self::Layer(OneLayer { layer, minus }) => write!(f, "layer({}{layer})", if *minus { "-" } else { "" }),
            Self::Epikv(bands) => {
                f.write_str(if bands.raw { "epikv-raw" } else { "epikv" })?;
                let layers = bands.layers.map(|[a, b]| format!("{a}+{b}"));
                let window = bands.window.map(|w| format!("window{w}"));
                let given: Vec<String> = layers.into_iter().chain(window).collect();
                if given.is_empty() { Ok(()) } else { write!(f, "({})", given.join("+")) }
            }
        }
    }
}

/// What a score may be on the command line.
pub(crate) const FORMS: &str = "recency, random, epikv, epikv-raw, epikv(LAYER+LAYER), layer(LAYER), layer(-LAYER), kv-key, k-norm, \
     key-diff, h2o, h2o(decode), tova, raas, snapkv, snapkv-decode, r-kv, vase, each (windowN+meanN+largestN+lambdaX), lag-kv, \
     epikv-lag, epikv-lag-key, each (CHUNK), labels";

impl FromStr for Score {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::PartValue { part: "score", expected: FORMS, got: text.to_owned() };
        let (name, argument) = match text.split_once('(') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(wrong)?)),
            None => (text, None),
        };
        match (name, argument) {
            ("recency", None) => Ok(Self::Recency),
            ("random", None) => Ok(Self::Random),
            ("kv-key", None) => Ok(Self::KvKey),
            ("k-norm", None) => Ok(Self::Keys(KeyScore::Norm)),
            ("key-diff", None) => Ok(Self::Keys(KeyScore::Difference)),
            ("labels", None) => Ok(Self::Labels),
            ("h2o", None) => Ok(Self::H2o(AttentionRows::All)),
            ("tova", None) => Ok(Self::H2o(AttentionRows::Newest)),
            ("raas", None) => Ok(Self::Raas),
            ("snapkv" | "snapkv-decode" | "r-kv" | "vase", argument) => {
                windows::parse(name, argument).map(Self::Window).ok_or_else(wrong)
            }
            ("lag-kv" | "epikv-lag" | "epikv-lag-key", argument) => {
                let lag = match name {
                    "lag-kv" => Lag::Next,
                    "epikv-lag" => Lag::Previous,
                    _ => Lag::PreviousKeys,
                };
                let chunk = argument.map_or(Some(LagScore::CHUNK), |digits| digits.parse().ok());
                let chunk = chunk.filter(|n| (1..=1 << 20).contains(n)).ok_or_else(wrong)?;
                Ok(Self::Lag(LagScore { lag, chunk }))
            }
            ("h2o", Some("decode")) => Ok(Self::H2o(AttentionRows::Decode)),
            ("layer", Some(given)) => {
                let (digits, minus) = given.strip_prefix('-').map_or((given, false), |digits| (digits, true));
                let layer = digits.parse().map_err(|_| wrong())?;
                Ok(Self::Layer(OneLayer { layer, minus }))
            }
            ("epikv" | "epikv-raw", argument) => {
                let (mut layers, mut bands) = (Vec::new(), Bands { raw: name == "epikv-raw", ..Bands::default() });
                for part in argument.into_iter().flat_map(|a| a.split('+')) {
                    match part.strip_prefix("window") {
                        Some(window) => {
                            let window = window.parse().ok().filter(|n| (1..=1 << 20).contains(n));
                            bands.window = Some(window.ok_or_else(wrong)?);
                        }
                        None => layers.push(part.parse().map_err(|_| wrong())?),
                    }
                }
                bands.layers = match layers[..] {
                    [] => None,
                    [a, b] => Some([a, b]),
                    _ => return Err(wrong()),
                };
                Ok(Self::Epikv(bands))
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: RandomStream = RandomStream { seed: 1, problem: 2, sample: 3 };

    #[test]
    fn drawn_scores_are_keyed_and_are_not_the_numbers_that_choose_tokens() {
        let of = |stream| drawn(Pos(5), stream).to_bits();
        let other_keys =
            [RandomStream { seed: 9, ..KEYS }, RandomStream { problem: 9, ..KEYS }, RandomStream { sample: 9, ..KEYS }];
        assert!(other_keys.iter().all(|&keys| of(keys) != of(KEYS)));
        assert_ne!(of(KEYS), (KEYS.uniform(5) as f32).to_bits());
        assert!((0..500).all(|p| (0.0..=1.0).contains(&drawn(Pos(p), KEYS))));
    }

    #[test]
    fn what_is_written_can_be_read() {
        let texts = [
            "recency",
            "random",
            "kv-key",
            "k-norm",
            "key-diff",
            "labels",
            "h2o",
            "h2o(decode)",
            "tova",
            "raas",
            "snapkv",
            "snapkv(window16+mean5)",
            "snapkv-decode",
            "r-kv",
            "r-kv(lambda0.07)",
            "vase",
            "vase(window16+largest1)",
            "lag-kv",
            "lag-kv(32)",
            "epikv-lag",
            "epikv-lag-key(16)",
            "epikv",
            "epikv-raw",
        ];
        for text in texts.into_iter().chain([
            "epikv(1+3)",
            "epikv-raw(2+0+window16)",
            "epikv(window8)",
            "layer(3)",
            "layer(-3)",
        ]) {
            assert_eq!(text.parse::<Score>().expect("a score").to_string(), text);
        }
        for text in [
            "",
            "h2o(",
            "h2o(all)",
            "epikv(1)",
            "epikv(1+2+3)",
            "epikv(a+b)",
            "recency(3)",
            "epikv(1+2",
            "z",
            "layer",
            "layer(--1)",
            "raas(1)",
            "snapkv(window0)",
            "snapkv(mean4)",
            "snapkv(lambda0.5)",
            "r-kv(lambda2)",
            "r-kv(16)",
            "lag-kv(0)",
        ] {
            assert!(matches!(text.parse::<Score>(), Err(Error::PartValue { part: "score", .. })), "{text}");
        }
    }

    #[test]
    fn layers_and_attention_are_declared() {
        let epikv: Score = "epikv".parse().expect("a score");
        assert_eq!(epikv.layers(32).expect("deep enough"), Some([10, 21]));
        assert!(epikv.plan(1).is_err(), "both map to the only layer");
        assert!("epikv(1+9)".parse::<Score>().expect("a form").plan(4).is_err());
        for text in ["recency", "epikv", "kv-key", "h2o", "labels", "raas", "snapkv", "lag-kv"] {
            let score: Score = text.parse().expect("a score");
            // The window's weights are computed from queries, outside the forward pass.
            assert_eq!(score.needs_attention(4), text == "h2o" || text == "raas", "{text}");
            assert!(score.plan(4).is_ok());
        }
    }
}
