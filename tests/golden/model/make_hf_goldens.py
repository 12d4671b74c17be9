#!/usr/bin/env python3
"""Tiny seeded decoders in Hugging Face layout and what Transformers computes with them.

    python make_hf_goldens.py OUT

Writes OUT/<case>/{config.json, [config.legacy.json], model.safetensors | shards + index, hf.json} for every row of
CASES, and OUT/mutants.json: how far each wrong decoder of reference.py lands from the golden numbers. Fails when a
golden number disagrees with the f64 decoder, or a mutant is too close to be caught.
"""

import copy
import json
import math
import os
import sys
import warnings
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

import reference

TOL = {"logits": 3e-4, "resid": 2e-4}  # as in the shared parity cases
MIN_FACTOR = 10  # a mutant must miss by this many tolerances
MIN_MARGIN = 2e-3
N_GREEDY = 24
ENTROPY = 0.5  # attention entropy aimed at, as a share of uniform


def llama3_rope(theta, original):
    return {"rope_type": "llama3", "rope_theta": theta, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": original}


PLAIN = {"rope_type": "default", "rope_theta": 10000.0}

# name: seed, model_type, hidden, ffn, layers, q heads, kv heads, head_dim, vocab, tied, eps, rope, lengths, extras
CASES = {
    "qwen3": dict(seed=11, type="qwen3", hidden=32, ffn=64, layers=3, q=4, kv=2, d=16, vocab=97, tied=False, eps=1e-6,
                  rope={"rope_type": "default", "rope_theta": 1000000.0}, lengths=[3, 24, 96], legacy=True),
    "qwen3-tied": dict(seed=12, type="qwen3", hidden=48, ffn=32, layers=2, q=4, kv=2, d=16, vocab=113, tied=True,
                       eps=1e-6, rope={"rope_type": "default", "rope_theta": 1000000.0}, lengths=[9, 64], embed_sd=0.03),
    "qwen2": dict(seed=13, type="qwen2", hidden=48, ffn=32, layers=3, q=6, kv=3, d=8, vocab=127, tied=True, eps=1e-6,
                  rope={"rope_type": "default", "rope_theta": 1000000.0}, lengths=[1, 24, 96], legacy=True),
    "llama-untied-gqa": dict(seed=14, type="llama", hidden=32, ffn=64, layers=3, q=8, kv=2, d=8, vocab=101, tied=False,
                             eps=1e-5, rope=PLAIN, lengths=[5, 24, 96]),
    "llama-tied-mha": dict(seed=15, type="llama", hidden=32, ffn=48, layers=3, q=4, kv=4, d=8, vocab=160, tied=True,
                           eps=1e-6, rope=PLAIN, lengths=[24, 64], legacy="mha"),
    "llama-mqa": dict(seed=16, type="llama", hidden=32, ffn=48, layers=3, q=4, kv=1, d=16, vocab=97, tied=False,
                      eps=1e-5, rope=PLAIN, lengths=[24, 64]),
    "llama-llama3-rope": dict(seed=17, type="llama", hidden=32, ffn=64, layers=3, q=4, kv=2, d=16, vocab=97, tied=False,
                              eps=1e-5, rope=llama3_rope(10000.0, 64), lengths=[32, 300], legacy=True,
                              generation={"_from_model_config": True, "bos_token_id": 1, "do_sample": True,
                                          "eos_token_id": [2, 5, 7], "temperature": 0.6, "top_p": 0.95,
                                          "transformers_version": "4.46.0"}),
    "llama-linear-rope": dict(seed=18, type="llama", hidden=32, ffn=48, layers=3, q=4, kv=2, d=8, vocab=97, tied=False,
                              eps=1e-6, rope={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
                              lengths=[32, 300], max_position=64, legacy="type"),
    "llama-theta-500000": dict(seed=19, type="llama", hidden=32, ffn=48, layers=2, q=4, kv=2, d=8, vocab=97, tied=False,
                               eps=1e-5, rope={"rope_type": "default", "rope_theta": 500000.0}, lengths=[24, 96],
                               legacy=True),
    "llama-bf16": dict(seed=20, type="llama", hidden=32, ffn=64, layers=3, q=4, kv=2, d=8, vocab=97, tied=False,
                       eps=1e-5, rope=PLAIN, lengths=[24, 64], store=torch.bfloat16),
    "qwen2-f16": dict(seed=21, type="qwen2", hidden=32, ffn=64, layers=3, q=4, kv=2, d=8, vocab=97, tied=False,
                      eps=1e-6, rope={"rope_type": "default", "rope_theta": 10000.0}, lengths=[24, 64],
                      store=torch.float16),
    "qwen3-sharded": dict(seed=22, type="qwen3", hidden=32, ffn=48, layers=3, q=4, kv=2, d=8, vocab=97, tied=False,
                          eps=1e-6, rope={"rope_type": "default", "rope_theta": 1000000.0}, lengths=[24, 64], shards=2),
}


def make_config(case):
    """The config.json dict, 5.x style."""
    config = {
        "architectures": [{"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[case["type"]]],
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "dtype": str(case.get("store", torch.float32)).removeprefix("torch."),
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": case["hidden"],
        "initializer_range": 0.02,
        "intermediate_size": case["ffn"],
        "max_position_embeddings": case.get("max_position", 2048),
        "model_type": case["type"],
        "num_attention_heads": case["q"],
        "num_hidden_layers": case["layers"],
        "num_key_value_heads": case["kv"],
        "pad_token_id": 0,
        "rms_norm_eps": case["eps"],
        "rope_parameters": case["rope"],
        "tie_word_embeddings": case["tied"],
        "transformers_version": transformers.__version__,
        "use_cache": True,
        "vocab_size": case["vocab"],
    }
    if case["type"] != "llama":
        config |= {"layer_types": ["full_attention"] * case["layers"], "max_window_layers": 28, "sliding_window": None,
                   "use_sliding_window": False}
    if case["type"] != "qwen2":
        config |= {"attention_bias": False, "head_dim": case["d"]}
    if case["type"] == "llama":
        config |= {"mlp_bias": False, "pretraining_tp": 1}
    return dict(sorted(config.items()))


def make_legacy_config(config, style):
    """The same model as a 4.x release wrote it."""
    old = copy.deepcopy(config)
    rope = old.pop("rope_parameters")
    old["rope_theta"] = rope.pop("rope_theta")
    old["torch_dtype"] = old.pop("dtype")
    old["transformers_version"] = "4.46.0"
    old.pop("layer_types", None)
    if rope["rope_type"] == "default":
        old["rope_scaling"] = None
    elif style == "type":  # the key before 4.43
        old["rope_scaling"] = {"type": rope["rope_type"], "factor": rope["factor"]}
    else:
        old["rope_scaling"] = rope
    if style == "mha":  # before GQA: no KV head count, no head_dim, no bias switches, theta left to its default
        for key in ("num_key_value_heads", "head_dim", "attention_bias", "mlp_bias", "rope_theta", "rope_scaling"):
            old.pop(key)
        old["transformers_version"] = "4.28.0"
    return dict(sorted(old.items()))


def make_weights(case, config, rng):
    """f32 tensors by name. Embeddings are small so that eps matters; q/k are scaled until attention is far from uniform."""
    hidden, ffn, d, layers = case["hidden"], case["ffn"], case["d"], case["layers"]
    normal = lambda *shape, sd: torch.from_numpy(rng.normal(0.0, sd, shape)).float()
    gain = lambda n, mean: torch.from_numpy(mean * np.exp(rng.normal(0.0, 0.3, n))).float()
    embed_sd = case.get("embed_sd", 0.05 if case["tied"] else 0.012)
    w = {"model.embed_tokens.weight": normal(case["vocab"], hidden, sd=embed_sd)}
    for layer in range(layers):
        p = f"model.layers.{layer}."
        w[p + "input_layernorm.weight"] = gain(hidden, 1.0)
        for s, n in (("q", case["q"]), ("k", case["kv"]), ("v", case["kv"])):
            w[p + f"self_attn.{s}_proj.weight"] = normal(n * d, hidden, sd=1.0 / math.sqrt(hidden))
            if case["type"] == "qwen2":
                w[p + f"self_attn.{s}_proj.bias"] = normal(n * d, sd=0.3)
        if case["type"] == "qwen3":
            w[p + "self_attn.q_norm.weight"] = gain(d, 1.0)
            w[p + "self_attn.k_norm.weight"] = gain(d, 1.0)
        w[p + "self_attn.o_proj.weight"] = normal(hidden, case["q"] * d, sd=0.5 / math.sqrt(case["q"] * d))
        w[p + "post_attention_layernorm.weight"] = gain(hidden, 1.0)
        w[p + "mlp.gate_proj.weight"] = normal(ffn, hidden, sd=1.0 / math.sqrt(hidden))
        w[p + "mlp.up_proj.weight"] = normal(ffn, hidden, sd=1.0 / math.sqrt(hidden))
        w[p + "mlp.down_proj.weight"] = normal(hidden, ffn, sd=1.0 / math.sqrt(ffn))
    # tied logits are products with the small embeddings: the final gain makes up for it
    w["model.norm.weight"] = gain(hidden, 2.0 / (embed_sd * math.sqrt(hidden)) if case["tied"] else 1.5)
    if not case["tied"]:
        w["lm_head.weight"] = normal(case["vocab"], hidden, sd=1.3 / math.sqrt(hidden))

    probe = rng.integers(3, case["vocab"], max(case["lengths"]))
    base = {k: v.clone() for k, v in w.items()}
    for layer in range(layers):  # earlier layers are settled when a later one is looked at
        p = f"model.layers.{layer}.self_attn."
        names = [p + "q_norm.weight", p + "k_norm.weight"] if case["type"] == "qwen3" else [
            n for n in w if n.startswith((p + "q_proj", p + "k_proj"))]

        def share(scale):
            for name in names:
                w[name] = base[name] * scale
            return reference.entropy_share(reference.forward(config, {k: v.numpy() for k, v in w.items()}, probe)["attn"][layer])

        scales = [0.6 + 0.1 * i for i in range(40)]
        best = min(scales, key=lambda s: abs(share(s) - ENTROPY))
        share(best)
    store = case.get("store")
    return {k: v.to(store) for k, v in w.items()} if store else w


def save(case, config, weights, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if case.get("legacy"):
        legacy = make_legacy_config(config, case["legacy"])
        (folder / "config.legacy.json").write_text(json.dumps(legacy, indent=1) + "\n")
    if case.get("generation"):
        (folder / "generation_config.json").write_text(json.dumps(case["generation"], indent=1) + "\n")
    n_shards = case.get("shards", 1)
    if n_shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(weights)  # by name, so that a layer's tensors are split over both files
    cut = math.ceil(len(names) / n_shards)
    index = {"metadata": {"total_size": sum(t.numel() * t.element_size() for t in weights.values())}, "weight_map": {}}
    for i in range(n_shards):
        file = f"model-{i + 1:05}-of-{n_shards:05}.safetensors"
        part = names[i * cut:(i + 1) * cut]
        save_file({n: weights[n] for n in part}, folder / file, metadata={"format": "pt"})
        index["weight_map"] |= {n: file for n in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def load(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    assert all(p.dtype == torch.float32 for p in model.parameters())
    return model


def capture(model, ids):
    """One forward with everything the taps of the Rust decoder can name, by hooks."""
    got, hooks = {"resid": {}, "k_pre": {}, "q_pre": {}}, []
    for i, block in enumerate(model.model.layers):
        hooks.append(block.register_forward_hook(
            lambda m, a, o, i=i: got["resid"].__setitem__(i, (o[0] if isinstance(o, tuple) else o)[0])))
        attention = block.self_attn
        for key, norm, proj in (("k_pre", "k_norm", "k_proj"), ("q_pre", "q_norm", "q_proj")):
            module = getattr(attention, norm, None) or getattr(attention, proj)
            hooks.append(module.register_forward_hook(lambda m, a, o, i=i, key=key: got[key].__setitem__(i, o)))
    with torch.no_grad():
        out = model(torch.tensor([ids]), use_cache=True, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    d, n = reference.head_dim(model.config.to_dict()), len(ids)
    heads = lambda x: x.reshape(1, n, -1, d).transpose(1, 2)
    cos, sin = model.model.rotary_emb(out.hidden_states[0], torch.arange(n)[None])
    apply_rope = sys.modules[type(model).__module__].apply_rotary_pos_emb
    layers = range(len(model.model.layers))
    rotated = [apply_rope(heads(got["q_pre"][i]), heads(got["k_pre"][i]), cos, sin) for i in layers]
    cache = out.past_key_values.layers
    assert all(torch.equal(rotated[i][1], cache[i].keys) for i in layers)
    return {
        "logits": out.logits[0], "embed": out.hidden_states[0][0], "resid": [got["resid"][i] for i in layers],
        "final_norm": out.hidden_states[-1][0], "attn": [a[0] for a in out.attentions],
        "k_pre": [heads(got["k_pre"][i])[0] for i in layers], "k": [cache[i].keys[0] for i in layers],
        "v": [cache[i].values[0] for i in layers], "q": [rotated[i][0][0] for i in layers],
    }


def greedy(model, ids):
    """Greedy tokens by full re-forward each step (no cache), margins, runners-up; end-of-sequence is ignored."""
    ids, tokens, margins, runners = list(ids), [], [], []
    for _ in range(N_GREEDY):
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
        top = torch.topk(logits, 2)
        tokens.append(int(top.indices[0]))
        runners.append(int(top.indices[1]))
        margins.append(float(top.values[0] - top.values[1]))
        ids.append(tokens[-1])
    return tokens, margins, runners


def cached_logits(model, ids, tokens):
    """The largest difference between cached and uncached logits along the greedy continuation."""
    worst, cache, feed, seen = 0.0, None, list(ids), list(ids)
    with torch.no_grad():
        for token in tokens:
            out = model(torch.tensor([feed]), past_key_values=cache, use_cache=True)
            full = model(torch.tensor([seen]), use_cache=False).logits[0, -1]
            worst = max(worst, float((out.logits[0, -1] - full).abs().max()))
            cache, feed = out.past_key_values, [token]
            seen.append(token)
    return worst


def digits(x):
    """Floats with 9 significant digits, enough to restore any f32."""
    if isinstance(x, (torch.Tensor, np.ndarray)):
        x = x.tolist()
    return [digits(v) for v in x] if isinstance(x, list) else float(f"{x:.9g}")


def far(a, b):
    return float(np.abs(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)).max())


def draw(model, case, rng, n):
    """Random ids whose greedy continuation has no near-tie, and that continuation."""
    while True:
        ids = [int(i) for i in rng.integers(3, case["vocab"], n)]
        continuation = greedy(model, ids)
        if min(continuation[1]) > MIN_MARGIN:
            return ids, continuation


def record(model, config, weights, ids, continuation):
    got, n = capture(model, ids), len(ids)
    exact = reference.forward(config, weights, ids)
    positions = list(range(max(0, n - 3), n))
    tokens, margins, runners = continuation
    noise = {
        "logits_f32_vs_f64": far(got["logits"], exact["logits"]),
        "resid_f32_vs_f64": max(far(a, b) for a, b in zip(got["resid"], exact["resid"])),
        "final_norm_f32_vs_f64": far(got["final_norm"], exact["final_norm"]),
        "keys_f32_vs_f64": max(far(a, b) for key in ("k", "k_pre", "v", "q") for a, b in zip(got[key], exact[key])),
        "attn_f32_vs_f64": max(far(a, b) for a, b in zip(got["attn"], exact["attn"])),
        "logits_cached_vs_full": cached_logits(model, ids, tokens),
    }
    assert noise["logits_f32_vs_f64"] < TOL["logits"] / 3 and noise["resid_f32_vs_f64"] < TOL["resid"] / 3, noise
    assert noise["final_norm_f32_vs_f64"] < TOL["resid"] / 2, noise
    assert noise["keys_f32_vs_f64"] < 2e-4 / 3 and noise["attn_f32_vs_f64"] < 5e-5 / 3, noise
    norm = lambda x: digits(float(torch.linalg.vector_norm(x.double())))
    golden = {
        "ids": list(ids), "n": n, "logits_positions": positions,
        "logits": [digits(got["logits"][p]) for p in positions],
        "argmax": [int(got["logits"][p].argmax()) for p in positions],
        "embed": {"l2": norm(got["embed"][-1]), "values": digits(got["embed"][-1])},
        "resid_post": [{"layer": i, "l2": norm(x[-1]), "values": digits(x[-1])} for i, x in enumerate(got["resid"])],
        "final_norm": {"l2": norm(got["final_norm"][-1]), "values": digits(got["final_norm"][-1])},
        "key_pre_rope_last": [digits(x[:, -1]) for x in got["k_pre"]],
        "key_post_rope_last": [digits(x[:, -1]) for x in got["k"]],
        "value_last": [digits(x[:, -1]) for x in got["v"]],
        "query_post_rope_last": [digits(x[:, -1]) for x in got["q"]],
        "attn_last_row": [digits(got["attn"][0][:, -1])],
        "entropy_share": [round(reference.entropy_share(a), 3) for a in exact["attn"]] if n > 8 else None,
        "greedy": tokens, "greedy_margin": [float(f"{m:.6g}") for m in margins], "greedy_runner_up": runners,
        "noise": {k: float(f"{v:.3g}") for k, v in noise.items()},
    }
    return golden, exact, positions


def mutant_distances(config, weights, ids, exact, positions):
    """In tolerances: the largest move of the recorded logits and residual entries."""
    out = {}
    for name, applies in reference.MUTANTS.items():
        if applies(config):
            wrong = reference.forward(config, weights, ids, name)
            out[name] = {
                "logits": far(wrong["logits"][positions], exact["logits"][positions]) / TOL["logits"],
                "resid": max(far(a[-1], b[-1]) for a, b in zip(wrong["resid"], exact["resid"])) / TOL["resid"],
            }
    return out


def make_case(name, case, out):
    rng = np.random.default_rng(case["seed"])
    config = make_config(case)
    stored = make_weights(case, config, rng)
    folder = out / name
    save(case, config, stored, folder)
    model = load(folder)
    weights = {k: v.float().numpy() for k, v in stored.items()}  # widening f16 and bf16 is exact
    for key, value in weights.items():
        loaded = model.get_parameter(key) if key != "lm_head.weight" else model.lm_head.weight
        assert np.array_equal(loaded.detach().numpy(), value), key
    if case.get("legacy"):
        check_legacy(folder, model, case)

    sequences, distances = [], {}
    for n in case["lengths"]:
        ids, continuation = draw(model, case, rng, n)
        golden, exact, positions = record(model, config, weights, ids, continuation)
        sequences.append(golden)
        for mutant, d in mutant_distances(config, weights, ids, exact, positions).items():
            distances.setdefault(mutant, []).append({"n": n} | {k: float(f"{v:.3g}") for k, v in d.items()})
    for mutant, rows in distances.items():
        best = {k: max(r[k] for r in rows) for k in TOL}
        assert best["resid"] >= MIN_FACTOR, (name, mutant, rows)
        assert best["logits"] >= MIN_FACTOR or mutant == "post_norm_tap", (name, mutant, rows)
    meta = {
        "model": name, "seed": case["seed"], "transformers": transformers.__version__, "torch": torch.__version__,
        "numpy": np.__version__, "attn_implementation": "eager", "threads": 1, "dtype": "float32",
        "stored_dtype": config["dtype"], "tolerances": {"logits": 3e-4, "resid": 2e-4, "resid_l2": 1e-4, "keys": 2e-4, "attn": 5e-5},
        "conventions": "resid_post[l] = residual stream after block l at the last position, before the final norm also for "
        "the last block; key_pre_rope is after q/k norm; keys, values, queries are [layer][head][D]; attn_last_row is "
        "[layer 0 only][query head][key]; greedy is 24 tokens, end-of-sequence is ignored; noise is over all positions of the sequence",
    }
    text = json.dumps({"meta": meta, "sequences": sequences}, separators=(",", ":"))
    (folder / "hf.json").write_text(text + "\n")
    margin = min(m for s in sequences for m in s["greedy_margin"])
    noise = max(s["noise"]["logits_f32_vs_f64"] for s in sequences)
    print(f"{name:20} entropy {sequences[-1]['entropy_share']} margin {margin:.4f} noise {noise:.1e}", flush=True)
    return distances


def check_legacy(folder, model, case):
    """Transformers reads the 4.x file as the same model."""
    legacy = AutoConfig.from_pretrained(folder / "config.legacy.json")
    now = model.config
    for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "rms_norm_eps", "tie_word_embeddings", "vocab_size"):
        assert getattr(legacy, key) == getattr(now, key), key
    assert reference.head_dim(legacy.to_dict()) == reference.head_dim(now.to_dict())
    assert {k: v for k, v in legacy.rope_parameters.items() if k != "type"} == now.rope_parameters, (legacy.rope_parameters, now.rope_parameters)


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning)
    only = sys.argv[2:]
    distances = {name: make_case(name, case, out) for name, case in CASES.items() if not only or name in only}
    if not only:
        note = "distance from the golden numbers in tolerances (3e-4 for logits, 2e-4 for residual entries), per sequence, computed in f64"
        rows = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in distances.items())
        (out / "mutants.json").write_text(f'{{\n "note": {json.dumps(note)},\n{rows}\n}}\n')


if __name__ == "__main__":
    main()
