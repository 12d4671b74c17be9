//! Which composition of the toolkit a policy of another program is.

use anyhow::{Context, Result};
use epikv_eviction::{NamedPolicy, Policy, PositionMode, Protect, Recency};
use epikv_model::cache::Scope;
use serde_json::{Map, Value};

use crate::check::lacking;
use crate::read::{count, members, word};

/// Tokens at the start that `lag-kv` sets apart.
const LAG_SINKS: usize = 4;

/// The recency that classes of the `EpiKV` authors are given unless told otherwise; it means a quarter of the budget.
const USUAL_RECENCY: usize = 128;

/// Settings of a run, each of which must be taken: one that is left over is something that the toolkit lacks.
pub(crate) struct Settings {
    left: Map<String, Value>,
}

impl Settings {
    pub(crate) fn of(value: &Value) -> Result<Self> {
        let mut left = members(value)?.clone();
        left.remove("note");
        Ok(Self { left })
    }

    /// A count, if it is given.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<usize>> {
        self.left.remove(name).map(|value| count(&value).with_context(|| name.to_owned())).transpose()
    }

    /// A count that must be given.
    pub(crate) fn need(&mut self, name: &str) -> Result<usize> {
        self.take(name)?.with_context(|| format!("expected the setting {name}, got none"))
    }

    /// A word that must be given.
    fn word(&mut self, name: &str) -> Result<String> {
        let value = self.left.remove(name).with_context(|| format!("expected the setting {name}, got none"))?;
        Ok(word(&value)?.to_owned())
    }

    /// A switch that must be given.
    fn switch(&mut self, name: &str) -> Result<bool> {
        let value = self.left.remove(name).with_context(|| format!("expected the setting {name}, got none"))?;
        value.as_bool().with_context(|| format!("{name}: expected true or false, got {value}"))
    }

    /// Whatever is left is not implemented.
    pub(crate) fn end(self, of: &str) -> Result<()> {
        let names: Vec<&str> = self.left.keys().map(String::as_str).collect();
        if names.is_empty() { Ok(()) } else { lacking(format!("{of} with {}", names.join(", "))) }
    }
}

/// A composition from its parts, as a command line writes them.
fn parse(parts: &str) -> Result<Policy> {
    Ok(parts.parse::<NamedPolicy>()?.policy)
}

/// The composition that cuts a prompt as a press of kvpress does.
pub(crate) fn press(press: &str, params: &Value) -> Result<Policy> {
    let mut settings = Settings::of(params)?;
    let parts = match press {
        "KnormPress" => "k-norm;protect=nothing".to_owned(),
        "KeyDiffPress" => "key-diff;protect=nothing".to_owned(),
        "TOVAPress" => "tova;protect=recency(1)".to_owned(),
        "StreamingLLMPress" => format!("streaming-llm;protect=sinks({});position=logical", settings.need("n_sink")?),
        "SnapKVPress" => {
            let (rows, width) = (settings.need("window_size")?, settings.need("kernel_size")?);
            format!("snapkv;score=snapkv(window{rows}+mean{width});protect=recency({rows})")
        }
        "LagKVPress" => {
            let (sinks, chunk) = (settings.need("n_sink")?, settings.need("lag_size")?);
            if settings.switch("cross_scoring")? || sinks != LAG_SINKS {
                return lacking(format!("lag-kv with scores across chunks, or other sinks than {LAG_SINKS}"));
            }
            format!("lag-kv;score=lag-kv({chunk});protect=nothing")
        }
        "KeyRerotationPress" => {
            let base = match settings.word("base")?.as_str() {
                "knorm" => "KnormPress",
                "keydiff" => "KeyDiffPress",
                "streaming_llm" => "StreamingLLMPress",
                other => return lacking(format!("{press} of {other}")),
            };
            let base = self::press(base, &Value::Object(settings.left))?;
            return Ok(Policy { position: PositionMode::Compacted, ..base });
        }
        _ => return lacking(press),
    };
    settings.end(press)?;
    parse(&format!("{parts};trigger=prefill"))
}

/// The composition that a class of the `EpiKV` authors is.
pub(crate) fn authors(run: &Value) -> Result<Policy> {
    let Some(class) = run.get("source_class") else { return parse("full") };
    let (class, mut settings) = (word(class)?, Settings::of(&run["params"])?);
    let budget = count(&run["K"])?;
    let recent = run["config"].get("keep_recent_k").map_or(Ok(USUAL_RECENCY), count)?;
    let mut bands = |name: &str| -> Result<String> {
        let window = settings.take("window")?.map_or(String::new(), |window| format!("+window{window}"));
        Ok(format!("{name}({}+{}{window})", settings.need("band_a_layer")?, settings.need("band_b_layer")?))
    };
    let score = match class {
        "HSVarianceEviction" => bands("epikv-raw")?,
        "DetrendendHSVarianceEviction" => bands("epikv")?,
        "KVKeyVarianceEviction" => "kv-key".to_owned(),
        "LagKVEviction" => format!("epikv-lag({})", settings.take("chunk_size")?.unwrap_or(128)),
        "LagKVKeyVarianceEviction" => format!("epikv-lag-key({})", settings.take("chunk_size")?.unwrap_or(128)),
        "H2OEviction" => "h2o(decode)".to_owned(),
        "RaaSEviction" => "raas".to_owned(),
        _ => return lacking(class),
    };
    let sinks = if class == "H2OEviction" { settings.take("num_sink_tokens")?.unwrap_or(4) } else { 0 };
    settings.end(class)?;
    let base = parse(&format!("window;score={score}"))?;
    let protect = match class {
        "H2OEviction" => {
            let recent = recent.min(budget.saturating_sub(sinks));
            Protect { prompt: false, sinks, recency: Recency::Tokens(recent) }
        }
        "RaaSEviction" => Protect { prompt: true, sinks: 0, recency: Recency::Tokens(1) },
        _ if recent == USUAL_RECENCY => base.protect,
        _ => Protect { recency: Recency::Tokens(recent.min(budget / 4)), ..base.protect },
    };
    let position = match word(&run["position_mode"])? {
        "logical" => PositionMode::Logical,
        "rewound" => PositionMode::Rewound,
        other => return lacking(format!("positions {other}")),
    };
    Ok(Policy { protect, position, scope: Scope::Global, ..base })
}
