"""Every signal of the table, computed the plain way from what Transformers records of a whole sequence.

    python make_signal_goldens.py        # seconds; writes llama-untied-gqa.json and qwen3.json beside itself

The forward pass is Transformers' (f32, eager attention); the formulas are written out here in f64 and share no code with
the crate. Models are those of ../model. Positions that are stored cover the first tokens, the edge of the rolling window
of 64 and the edges of the chunks of 128.
"""

import json
import random
from pathlib import Path

import numpy as np
import torch
import transformers

HERE = Path(__file__).parent
WINDOW, CHUNK, N = 64, 128, 300
AGES = [0, 5, 64, 200]
SHOWN = [0, 1, 2, 3, 10, 62, 63, 64, 65, 66, 100, 126, 127, 128, 129, 130, 200, 254, 255, 256, 257, 258, 298, 299]


def record(case, ids):
    """Embeddings [n, d], block outputs [L, n, d], logits [n, V], keys before and after rotation and values [L, H_kv, n, D], attention."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        HERE.parent / "model" / case, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    blocks, before_rope, embedded = [], [], []
    model.model.embed_tokens.register_forward_hook(lambda _m, _i, out: embedded.append(out[0]))
    for layer in model.model.layers:
        layer.register_forward_hook(lambda _m, _i, out: blocks.append(out[0] if isinstance(out, tuple) else out))
        norm = getattr(layer.self_attn, "k_norm", None) or layer.self_attn.k_proj
        norm.register_forward_hook(lambda _m, _i, out: before_rope.append(out))
    with torch.no_grad():
        out = model(torch.tensor([ids]), use_cache=True, output_attentions=True)
    config = model.config
    heads, dim = config.num_key_value_heads, getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    to_heads = lambda x: x.reshape(1, len(ids), heads, dim)[0].permute(1, 0, 2)
    f64 = lambda xs: np.stack([x.double().numpy() for x in xs])
    return {
        "embed": embedded[0].double().numpy(),
        "blocks": f64([b.reshape(len(ids), -1) for b in blocks]),
        "logits": out.logits[0].double().numpy(),
        "key": f64([layer.keys[0] for layer in out.past_key_values.layers]),
        "value": f64([layer.values[0] for layer in out.past_key_values.layers]),
        "key_prerope": f64([to_heads(k) for k in before_rope]),
        "attention": f64([a[0] for a in out.attentions]),
    }


def rolling(x, of):
    """`of` over the last 64 defined values up to each position, undefined where the value is."""
    out = np.full(len(x), np.nan)
    seen = []
    for t, v in enumerate(x):
        if not np.isnan(v):
            seen.append(v)
            out[t] = of(np.array(seen[-WINDOW:]))
    return out


def z_score(win):
    return 0.0 if len(win) < 2 else (win[-1] - win.mean()) / (win.std() + 1e-6)


def lag(x):
    """x [H, n, D] -> [n]"""
    out = []
    for t in range(x.shape[1]):
        c = t // CHUNK
        v = x[:, t]
        if c > 0:
            ref = x[:, (c - 1) * CHUNK : c * CHUNK]
            v = (v - ref.min(1)) / (ref.max(1) - ref.min(1) + 1e-9)
        out.append(v.std(-1, ddof=1).mean())
    return np.array(out)


def lag_next(x):
    """x [H, n, D] -> [n], undefined where the chunk after is not full"""
    out = np.full(x.shape[1], np.nan)
    for c in range(x.shape[1] // CHUNK - 1):
        own, after = x[:, c * CHUNK : (c + 1) * CHUNK], x[:, (c + 1) * CHUNK : (c + 2) * CHUNK]
        lo, hi = after.min(1, keepdims=True), after.max(1, keepdims=True)
        spread = ((own - lo) / (hi - lo + 1e-9)).std(-1, ddof=1)
        weight = np.exp(spread - spread.max(1, keepdims=True))
        out[c * CHUNK : (c + 1) * CHUNK] = (weight / weight.sum(1, keepdims=True)).mean(0)
    return out


def key_diff(k):
    """k [H, n, D] -> [n]"""
    unit = k / np.linalg.norm(k, axis=-1, keepdims=True)
    mean = np.cumsum(unit, 1) / np.arange(1, k.shape[1] + 1)[None, :, None]
    cos = (unit * mean).sum(-1) / np.linalg.norm(mean, axis=-1)
    return (1 - cos).mean(0)


def map_layer(layer, n_layers):
    return (2 * layer + 1) * n_layers // 64


def signals(r, ids):
    n_layers = len(r["blocks"])
    per_layer = {}
    step = np.full((n_layers, len(ids)), np.nan)
    cos = step.copy()
    h = r["blocks"]
    step[:, 1:] = np.linalg.norm(h[:, 1:] - h[:, :-1], axis=-1)
    norm = np.linalg.norm(h, axis=-1)
    cos[:, 1:] = 1 - (h[:, 1:] * h[:, :-1]).sum(-1) / (norm[:, 1:] * norm[:, :-1])
    per_layer |= {"hs_l2": step, "hs_cos": cos, "hs_norm": norm}
    means = {}
    for name, x in [("kv_key", r["key"]), ("kv_val", r["value"])]:
        means |= {f"{name}_var": x.var(-1, ddof=1).mean(1), f"{name}_norm": np.linalg.norm(x, axis=-1).mean(1)}
    pre = r["key_prerope"]
    means |= {"kv_key_var_prerope": pre.var(-1, ddof=1).mean(1), "kv_key_norm_prerope": np.linalg.norm(pre, axis=-1).mean(1)}
    means["kv_val_range"] = (r["value"].max(-1) - r["value"].min(-1)).mean(1)
    means["cross_head_var"] = r["key"].mean(-1).var(1, ddof=1)
    means |= {"lag_key": np.stack([lag(k) for k in r["key"]]), "lag_val": np.stack([lag(v) for v in r["value"]])}
    means["key_diff"] = np.stack([key_diff(k) for k in r["key"]])
    model = {name: x.mean(0) for name, x in means.items()}
    per_layer |= means

    top = np.sort(r["logits"], -1)
    log_p = r["logits"] - top[:, -1:]
    log_p = log_p - np.log(np.exp(log_p).sum(-1, keepdims=True))
    surprisal = np.full(len(ids), np.nan)
    surprisal[1:] = -log_p[np.arange(len(ids) - 1), ids[1:]]
    embed_l2 = np.full(len(ids), np.nan)
    embed_l2[1:] = np.linalg.norm(np.diff(r["embed"], axis=0), axis=-1)
    model |= {"embed_l2": embed_l2}
    model |= {"surprisal": surprisal, "entropy": -(np.exp(log_p) * log_p).sum(-1), "margin": top[:, -1] - top[:, -2]}

    band = lambda a, b: step[map_layer(a, n_layers) : map_layer(b, n_layers) + 1].mean(0)
    z10, z21 = rolling(band(10, 10), z_score), rolling(band(21, 21), z_score)
    model["epikv"] = z10 - z21
    model["epikv_raw"] = rolling(band(10, 10), np.mean) - rolling(band(21, 21), np.mean)
    model |= {"epikv_a": z10, "epikv_b": -z21}
    if (map_layer(7, n_layers), map_layer(13, n_layers)) != (map_layer(18, n_layers), map_layer(25, n_layers)):
        model["band_adaptive"] = 1.29 * rolling(band(7, 13), z_score) - rolling(band(18, 25), z_score)
    model["kv_key"] = rolling(model["kv_key_var"], np.mean)
    model["kv_val"] = rolling(model["kv_val_var"], np.mean)
    model["lag_kv_key"] = lag(r["key"].mean(0))
    model["lag_kv"] = model["lag_kv_key"] + lag(r["value"].mean(0))

    entropy = -(r["attention"] * np.log(np.where(r["attention"] > 0, r["attention"], 1))).sum(-1).mean(1)
    age = np.arange(len(ids))[:, None] - np.arange(len(ids))[None, :]
    distance = (r["attention"] * age).sum(-1).mean(1)
    received = r["attention"].sum(-2).mean(1)
    by = lambda most: (r["attention"] * ((age >= 0) & (age <= most))).sum(-2).mean(1).mean(0)
    last_row = r["attention"][:, :, -1].mean(1)
    per_layer |= {"attn_entropy": entropy, "attn_distance": distance}
    model |= {"attn_entropy": entropy.mean(0), "attn_distance": distance.mean(0)}
    late = {"h2o_attn": received.mean(0), "attn_last": last_row.mean(0)}
    late |= {f"h2o_attn@age={most}": by(most) for most in AGES}
    late["lag_next"] = np.mean([lag_next(k) + lag_next(v) for k, v in zip(r["key"], r["value"])], 0)
    return per_layer, model, late


def numbers(x):
    return [None if np.isnan(x[p]) else float(f"{x[p]:.9g}") for p in SHOWN]


def main():
    for seed, case in enumerate(["llama-untied-gqa", "qwen3"]):
        draw = random.Random(seed)
        vocab = json.loads((HERE.parent / "model" / case / "config.json").read_text())["vocab_size"]
        ids = [draw.randrange(3, vocab) for _ in range(N)]
        per_layer, model, late = signals(record(case, ids), np.array(ids))
        golden = {
            "meta": {"torch": torch.__version__, "transformers": transformers.__version__, "numpy": np.__version__},
            "ids": ids,
            "positions": SHOWN,
            "per_layer": {name: [numbers(x) for x in values] for name, values in per_layer.items()},
            "model": {name: numbers(x) for name, x in model.items()},
            "late": {name: numbers(x) for name, x in late.items()},
        }
        (HERE / f"{case}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


main()
