//! Tensor names of GGUF files in Hugging Face naming.

/// Names that are not known stay as they are, to be listed as unexpected.
pub(super) fn hugging_face_name(name: &str) -> String {
    match name {
        "token_embd.weight" => "model.embed_tokens.weight".to_owned(),
        "output_norm.weight" => "model.norm.weight".to_owned(),
        "output.weight" => "lm_head.weight".to_owned(),
        _ => block_name(name).unwrap_or_else(|| name.to_owned()),
    }
}

fn block_name(name: &str) -> Option<String> {
    let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
    let (part, kind) = part.rsplit_once('.')?;
    let part = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "attn_output" => "self_attn.o_proj",
        "ffn_norm" => "post_attention_layernorm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{part}.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_change_and_others_stay() {
        assert_eq!(hugging_face_name("output.weight"), "lm_head.weight");
        assert_eq!(hugging_face_name("blk.12.attn_k.bias"), "model.layers.12.self_attn.k_proj.bias");
        for other in ["blk.3.ffn_gate_exps.weight", "blk.", "blk.1.attn_q", "v.weight"] {
            assert_eq!(hugging_face_name(other), other);
        }
    }
}
