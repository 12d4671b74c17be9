//! RoPE fields of a `config.json`, in both styles.
//!
//! Transformers 4.x writes `rope_theta` beside `rope_scaling {type | rope_type, factor, ...}` (or null); 5.x writes one
//! object `rope_parameters {rope_type, rope_theta, factor, ...}`. As in Transformers 5, a `rope_scaling` that is not empty
//! is taken before `rope_parameters`, and a base inside the object before the one beside it.

use std::path::Path;

use super::json_fields::Fields;
use crate::config::RopeScaling;
use crate::error::Result;

const DEFAULT_THETA: f64 = 10_000.0;
const KINDS: &str = "default, linear or llama3";

/// Base and scaling; `max_positions` stands in for a missing original context, as in Transformers.
pub(super) fn read(path: &Path, top: &Fields<'_>, max_positions: usize) -> Result<(f64, RopeScaling)> {
    let beside = top.number("rope_theta")?.unwrap_or(DEFAULT_THETA);
    let (name, object) = match top.object("rope_scaling")?.filter(|object| !object.is_empty()) {
        Some(object) => ("rope_scaling", object),
        None => match top.object("rope_parameters")? {
            Some(object) => ("rope_parameters", object),
            None => return Ok((beside, RopeScaling::Default)),
        },
    };
    let fields = Fields::new(path, name, object);
    if let Some((layer_type, _)) = object.iter().find(|(_, value)| value.is_object()) {
        return Err(fields.error(layer_type, "one set of RoPE fields for all layers"));
    }
    let holders = [*top, fields];
    if holders.iter().any(|f| f.get("partial_rotary_factor").is_some_and(|share| share.as_f64() != Some(1.0))) {
        let at = if fields.get("partial_rotary_factor").is_some() { &fields } else { top };
        return Err(at.error("partial_rotary_factor", "1, the whole head turned"));
    }
    let theta = fields.number("rope_theta")?.unwrap_or(beside);
    let key = if fields.get("rope_type").is_some() { "rope_type" } else { "type" };
    let scaling = match fields.text(key)?.unwrap_or("default") {
        "default" => RopeScaling::Default,
        "linear" => RopeScaling::Linear { factor: factor(&fields)? },
        "llama3" => llama3(top, &fields, max_positions)?,
        _ => return Err(fields.error(key, KINDS)),
    };
    Ok((theta, scaling))
}

fn factor(fields: &Fields<'_>) -> Result<f64> {
    let factor = fields.needed_number("factor")?;
    if factor.is_finite() && factor >= 1.0 { Ok(factor) } else { Err(fields.error("factor", "a number of at least 1")) }
}

fn llama3(top: &Fields<'_>, fields: &Fields<'_>, max_positions: usize) -> Result<RopeScaling> {
    const ORIGINAL: &str = "original_max_position_embeddings";
    let low_freq_factor = fields.needed_number("low_freq_factor")?;
    let high_freq_factor = fields.needed_number("high_freq_factor")?;
    if !(low_freq_factor > 0.0 && low_freq_factor.is_finite()) {
        return Err(fields.error("low_freq_factor", "a number above 0"));
    }
    if !(high_freq_factor > low_freq_factor && high_freq_factor.is_finite()) {
        return Err(fields.error("high_freq_factor", format!("a number above low_freq_factor = {low_freq_factor}")));
    }
    let original_max_positions = match top.size(ORIGINAL)? {
        Some(outside) => outside,
        None => fields.size(ORIGINAL)?.unwrap_or(max_positions),
    };
    if original_max_positions == 0 {
        return Err(fields.error(ORIGINAL, "a number above 0"));
    }
    Ok(RopeScaling::Llama3 { factor: factor(fields)?, low_freq_factor, high_freq_factor, original_max_positions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(f64, RopeScaling)> {
        let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap();
        let path = Path::new("config.json");
        read(path, &Fields::new(path, "", &map), 2048)
    }

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn nothing_means_base_10000_unscaled() {
        assert_eq!(parse("{}").unwrap(), (10_000.0, RopeScaling::Default));
        assert_eq!(parse(r#"{"rope_theta": 5e5, "rope_scaling": null}"#).unwrap(), (5e5, RopeScaling::Default));
    }

    #[test]
    fn both_styles_give_the_same() {
        let new = parse(r#"{"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6}}"#).unwrap();
        let old = parse(r#"{"rope_theta": 1000000.0, "rope_scaling": {"type": "linear", "factor": 4}}"#).unwrap();
        assert_eq!(new, old);
        assert_eq!(new, (1e6, RopeScaling::Linear { factor: 4.0 }));
    }

    #[test]
    fn llama3_takes_the_context_where_the_original_one_is_not_given() {
        let fields = r#""rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4"#;
        let (_, scaling) = parse(&format!(r#"{{"rope_scaling": {{{fields}}}}}"#)).unwrap();
        assert!(matches!(scaling, RopeScaling::Llama3 { original_max_positions: 2048, .. }));
        let given = format!(r#"{{"rope_scaling": {{{fields}, "original_max_position_embeddings": 128}}}}"#);
        assert!(matches!(parse(&given).unwrap().1, RopeScaling::Llama3 { original_max_positions: 128, .. }));
    }

    #[test]
    fn unknown_kinds_are_named() {
        for kind in ["yarn", "dynamic", "longrope", "mrope"] {
            let text = message(&format!(r#"{{"rope_scaling": {{"rope_type": "{kind}", "factor": 2}}}}"#));
            assert_eq!(
                text,
                format!("config.json: rope_scaling.rope_type: expected default, linear or llama3, got \"{kind}\"")
            );
        }
    }

    #[test]
    fn per_layer_and_partial_rope_are_refused() {
        let nested = r#"{"rope_parameters": {"full_attention": {"rope_type": "default"}}}"#;
        assert!(message(nested).contains("rope_parameters.full_attention"));
        let partial = r#"{"partial_rotary_factor": 0.5, "rope_parameters": {"rope_type": "default"}}"#;
        assert!(message(partial).contains("partial_rotary_factor"));
    }

    #[test]
    fn impossible_factors_are_refused() {
        assert!(message(r#"{"rope_scaling": {"type": "linear"}}"#).contains("factor: expected a number, got nothing"));
        assert!(message(r#"{"rope_scaling": {"type": "linear", "factor": 0.5}}"#).contains("at least 1"));
        let crossed =
            r#"{"rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1}}"#;
        assert!(message(crossed).contains("high_freq_factor"));
    }
}
