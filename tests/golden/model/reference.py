"""A second decoder in numpy f64, written from the papers' formulas, and its mutants.

It checks the golden numbers (Transformers in f32 must agree with it) and measures how far a wrong decoder lands from
them. Weights are a dict of Hugging Face tensor names; `config` is the dict of config.json in the 5.x style.
"""

import numpy as np

# name -> (what is wrong, does it apply to this config)
MUTANTS = {
    "no_rope_scaling": lambda c: c["rope_parameters"]["rope_type"] != "default",
    "rope_theta_10000": lambda c: c["rope_parameters"]["rope_theta"] != 10000.0,
    "rope_interleaved": lambda c: True,
    "eps_other_default": lambda c: True,  # 1e-6 where the config says 1e-5, and the reverse
    "eps_1e-3": lambda c: True,
    "gqa_interleaved": lambda c: 1 < kv_heads(c) < c["num_attention_heads"],
    "missing_bias": lambda c: c["model_type"] == "qwen2",
    "missing_qk_norm": lambda c: c["model_type"] == "qwen3",
    "qk_norm_after_rope": lambda c: c["model_type"] == "qwen3",
    "head_dim_from_hidden": lambda c: head_dim(c) != c["hidden_size"] // c["num_attention_heads"],
    "post_norm_tap": lambda c: True,  # last residual tapped after the final norm; logits are right
}


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def kv_heads(config):
    return config.get("num_key_value_heads") or config["num_attention_heads"]


def inverse_frequencies(config, mutant=None):
    """Angle per position of each channel pair, f64."""
    rope = config["rope_parameters"]
    theta = 10000.0 if mutant == "rope_theta_10000" else rope["rope_theta"]
    d = head_dim(config)
    freq = theta ** (-np.arange(0, d, 2, dtype=np.float64) / d)
    kind = "default" if mutant == "no_rope_scaling" else rope["rope_type"]
    if kind == "linear":
        return freq / rope["factor"]
    if kind == "llama3":
        turns = rope["original_max_position_embeddings"] * freq / (2 * np.pi)
        lo, hi = rope["low_freq_factor"], rope["high_freq_factor"]
        blend = np.clip((turns - lo) / (hi - lo), 0.0, 1.0)  # 0: fully scaled, 1: left alone
        return freq * ((1 - blend) / rope["factor"] + blend)
    assert kind == "default", kind
    return freq


def rotate(x, angle, interleaved):
    """x [heads, T, D], angle [T, D/2]; channel i pairs with i + D/2 (or 2i with 2i + 1)."""
    cos, sin = np.cos(angle), np.sin(angle)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape)
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def forward(config, weights, ids, mutant=None):
    """Logits [T, V], residuals [L][T, H], attention [L][heads, T, T], and the rotated and plain keys, values, queries."""
    w = {k: v.astype(np.float64) for k, v in weights.items()}
    eps = config["rms_norm_eps"]
    if mutant == "eps_other_default":
        eps = 1e-6 if eps == 1e-5 else 1e-5
    if mutant == "eps_1e-3":
        eps = 1e-3
    n_q, n_kv, d = config["num_attention_heads"], kv_heads(config), head_dim(config)
    if mutant == "head_dim_from_hidden":  # what a decoder does that scales by the wrong D (shapes still fit by force)
        scale = 1.0 / np.sqrt(config["hidden_size"] // n_q)
    else:
        scale = 1.0 / np.sqrt(d)
    t = len(ids)
    angle = np.arange(t)[:, None] * inverse_frequencies(config, mutant)[None, :]
    interleaved = mutant == "rope_interleaved"

    def norm(x, weight):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight

    def linear(x, name):
        y = x @ w[name + ".weight"].T
        bias = None if mutant == "missing_bias" else w.get(name + ".bias")
        return y if bias is None else y + bias

    out = {"resid": [], "attn": [], "q": [], "k": [], "k_pre": [], "v": []}
    x = out["embed"] = w["model.embed_tokens.weight"][np.asarray(ids)]
    causal = np.triu(np.full((t, t), -np.inf), 1)
    for layer in range(config["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        h = norm(x, w[p + "input_layernorm.weight"])
        q, k, v = (
            linear(h, p + "self_attn." + s).reshape(t, n, d).transpose(1, 0, 2)
            for s, n in (("q_proj", n_q), ("k_proj", n_kv), ("v_proj", n_kv))
        )
        qk_norm = p + "self_attn.q_norm.weight" in w and mutant != "missing_qk_norm"
        if qk_norm and mutant != "qk_norm_after_rope":
            q, k = norm(q, w[p + "self_attn.q_norm.weight"]), norm(k, w[p + "self_attn.k_norm.weight"])
        k_pre = k
        q, k = rotate(q, angle, interleaved), rotate(k, angle, interleaved)
        if qk_norm and mutant == "qk_norm_after_rope":
            q, k = norm(q, w[p + "self_attn.q_norm.weight"]), norm(k, w[p + "self_attn.k_norm.weight"])
        heads = np.arange(n_q)
        group = heads % n_kv if mutant == "gqa_interleaved" else heads // (n_q // n_kv)
        scores = np.einsum("htd,hsd->hts", q, k[group]) * scale + causal
        attn = np.exp(scores - scores.max(-1, keepdims=True))
        attn /= attn.sum(-1, keepdims=True)
        mixed = np.einsum("hts,hsd->thd", attn, v[group]).reshape(t, n_q * d)
        x = x + linear(mixed, p + "self_attn.o_proj")
        h = norm(x, w[p + "post_attention_layernorm.weight"])
        gate = linear(h, p + "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, p + "mlp.up_proj"), p + "mlp.down_proj")
        for key, value in (("resid", x), ("attn", attn), ("q", q), ("k", k), ("k_pre", k_pre), ("v", v)):
            out[key].append(value)
    out["final_norm"] = norm(x, w["model.norm.weight"])
    if mutant == "post_norm_tap":
        out["resid"][-1] = out["final_norm"]
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    out["logits"] = out["final_norm"] @ head.T
    return out


def entropy_share(attn):
    """Mean over heads and rows of entropy / log(number of visible keys), rows with at least 8 keys."""
    rows = np.arange(7, attn.shape[1])
    p = attn[:, rows, :]
    h = -(p * np.log(np.maximum(p, 1e-300))).sum(-1)
    return float((h / np.log(rows + 1)).mean())
