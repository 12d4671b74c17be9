#!/usr/bin/env python3
"""Tiny GGUF files as llama.cpp's converter lays them out, and the weights and logits a reader must get from them.

    python make_gguf_goldens.py OUT

Reads OUT/<case> of make_hf_goldens.py and OUT/tokenizers of make_tokenizer_goldens.py. Writes OUT/gguf/*.gguf and OUT/gguf.json.
"""

import json
import math
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Q
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

import reference
from make_hf_goldens import digits, greedy, make_config

N_GREEDY_KEPT = 16

# file: (source case or own model, one type for every matrix)
FILES = {
    "llama-f32": ("llama-untied-gqa", Q.F32),
    "llama-q8_0": ("llama-untied-gqa", Q.Q8_0),
    "llama-q5_0-bare": ("llama-bf16", Q.Q5_0),  # no more metadata than llama.cpp asks for
    "llama-llama3-rope-f16": ("llama-llama3-rope", Q.F16),
    "llama-linear-rope-bf16": ("llama-linear-rope", Q.BF16),
    "qwen2-f16": ("qwen2-f16", Q.F16),
    "qwen2-q4_0": ("qwen2-f16", Q.Q4_0),
    "qwen2-q5_1": ("qwen2-f16", Q.Q5_1),
    "qwen3-bf16": ("qwen3", Q.BF16),
    "qwen3-q4_1": ("qwen3", Q.Q4_1),
    "llama-kquants": ("kquants", None),  # random blocks, another K-quant in each matrix
    "llama-r1-q8_0": ("r1", Q.Q8_0),  # complete: with tokenizer and chat template
}
# metadata only: the tokenizers of step 2 under the names that llama.cpp knows their splits by
TOKENIZER_FILES = {
    "tokenizer-llama-bpe": ("llama3-r1", "llama-bpe"),
    "tokenizer-qwen2": ("qwen3", "qwen2"),
    "tokenizer-smollm": ("qwen3", "smollm"),
}

OWN = {
    "kquants": dict(type="llama", hidden=256, ffn=256, layers=1, q=8, kv=2, d=32, vocab=97, tied=False, eps=1e-5,
                    rope={"rope_type": "default", "rope_theta": 10000.0}),
    "r1": dict(type="llama", hidden=32, ffn=64, layers=2, q=4, kv=2, d=8, vocab=2007, tied=True, eps=1e-5,
               rope={"rope_type": "default", "rope_theta": 500000.0}),
}
K_TYPES = {
    "token_embd": Q.Q4_K, "output": Q.Q6_K, "attn_q": Q.Q2_K, "attn_k": Q.Q5_K, "attn_v": Q.Q3_K, "attn_output": Q.Q6_K,
    "ffn_gate": Q.Q3_K, "ffn_up": Q.Q4_K, "ffn_down": Q.Q2_K,
}
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    plain = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    if name in plain:
        return plain[name]
    layer, rest = name.removeprefix("model.layers.").split(".", 1)
    stem, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{NAMES[stem]}.{kind}"


def permute(x, n_heads):
    """Half-split RoPE rows to interleaved ones, per head."""
    return x.reshape(n_heads, 2, x.shape[0] // n_heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def unpermute(x, n_heads):
    return x.reshape(n_heads, x.shape[0] // n_heads // 2, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def rope_heads(config, name):
    """Heads of a tensor whose rows are permuted in the file, else None."""
    if config["model_type"] != "llama":
        return None
    return {"q_proj": config["num_attention_heads"], "k_proj": reference.kv_heads(config)}.get(name.split(".")[-2])


def random_blocks(kind, rows, cols, sd, rng):
    """Rows of random K-quant blocks whose scales make weights of about zero mean and deviation sd."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (rows, cols // block, size), dtype=np.uint8)
    # byte offsets of d and dmin, deviation per unit of d, dmin / d that centres the values
    d_at, dmin_at, unit, ratio = {
        Q.Q2_K: (80, 82, 13.0, 1.5), Q.Q3_K: (108, None, 42.0, 0.0), Q.Q4_K: (0, 2, 270.0, 7.5), Q.Q5_K: (0, 2, 550.0, 15.5),
        Q.Q6_K: (208, None, 1370.0, 0.0),
    }[kind]
    d = (sd / unit * rng.uniform(0.5, 1.5, raw.shape[:2])).astype(np.float16)
    raw[..., d_at:d_at + 2] = d[..., None].view(np.uint8)
    if dmin_at is not None:
        dmin = (d.astype(np.float32) * ratio).astype(np.float16)
        raw[..., dmin_at:dmin_at + 2] = dmin[..., None].view(np.uint8)
    return raw.reshape(rows, -1)


def own_weights(case, rng):
    """Matrices of the models that exist only here, by name: [rows, cols] and deviation."""
    hidden, ffn, q, kv = case["hidden"], case["ffn"], case["q"] * case["d"], case["kv"] * case["d"]
    gain = lambda mean: (mean * np.exp(rng.normal(0, 0.3, hidden))).astype(np.float32)
    shapes = {"model.embed_tokens.weight": (case["vocab"], hidden, 0.05)}
    norms = {"model.norm.weight": gain(1.3 if not case["tied"] else 7.0)}
    if not case["tied"]:
        shapes["lm_head.weight"] = (case["vocab"], hidden, 1.3 / math.sqrt(hidden))
    for layer in range(case["layers"]):
        p = f"model.layers.{layer}."
        norms |= {p + "input_layernorm.weight": gain(1.0), p + "post_attention_layernorm.weight": gain(1.0)}
        for stem, rows, cols, sd in (("self_attn.q_proj", q, hidden, 1.5), ("self_attn.k_proj", kv, hidden, 1.5), ("self_attn.v_proj", kv, hidden, 1),
                                     ("self_attn.o_proj", hidden, q, 0.5), ("mlp.gate_proj", ffn, hidden, 1), ("mlp.up_proj", ffn, hidden, 1),
                                     ("mlp.down_proj", hidden, ffn, 1)):
            shapes[p + stem + ".weight"] = (rows, cols, sd / math.sqrt(cols))
    return shapes, norms


def source(out, case_name, rng):
    """Config and the tensors to be written: f32 arrays, or (type, raw blocks)."""
    if case_name not in OWN:
        config = json.loads((out / case_name / "config.json").read_text())
        tensors = {k: v.float().numpy() for k, v in load_file(out / case_name / "model.safetensors").items()}
        return config, tensors
    case = OWN[case_name]
    shapes, tensors = own_weights(case, rng)
    for name, (rows, cols, sd) in shapes.items():
        if case_name == "kquants":
            kind = K_TYPES[gguf_name(name).removesuffix(".weight").split(".")[-1]]
            tensors[name] = (kind, random_blocks(kind, rows, cols, sd, rng))
        else:
            tensors[name] = rng.normal(0, sd, (rows, cols)).astype(np.float32)
    return make_config(case), tensors


def write_metadata(writer, config, bare):
    d, heads = reference.head_dim(config), config["num_attention_heads"]
    rope = config["rope_parameters"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(reference.kv_heads(config))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    if bare:
        assert rope == {"rope_type": "default", "rope_theta": 10000.0} and d * heads == config["hidden_size"]
        return
    writer.add_name("tiny")
    writer.add_rope_freq_base(rope["rope_theta"])
    if config["model_type"] != "qwen2":
        writer.add_key_length(d)
        writer.add_value_length(d)
    if config["model_type"] == "llama":
        writer.add_rope_dimension_count(d)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])


def write_tokenizer(writer, folder, pre):
    state = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    tokens = {i: (t, gguf.TokenType.NORMAL) for t, i in state["model"]["vocab"].items()}
    for entry in state["added_tokens"]:
        tokens[entry["id"]] = (entry["content"], gguf.TokenType.CONTROL if entry["special"] else gguf.TokenType.USER_DEFINED)
    ids = {t: i for i, (t, _) in tokens.items()}
    content = lambda key: config[key]["content"] if isinstance(config[key], dict) else config[key]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([tokens[i][0] for i in range(len(tokens))])
    writer.add_token_types([tokens[i][1] for i in range(len(tokens))])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in state["model"]["merges"]])
    if content("bos_token"):
        writer.add_bos_token_id(ids[content("bos_token")])
    writer.add_eos_token_id(ids[content("eos_token")])
    writer.add_pad_token_id(ids[content("pad_token")])
    writer.add_add_bos_token(config["add_bos_token"])
    template = config.get("chat_template") or (folder / "chat_template.jinja").read_text(encoding="utf-8")
    writer.add_chat_template(template)


def close(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_file(path, out, config, tensors, kind):
    """The file, and for each tensor what it says after dequantisation, in the file's row order."""
    writer = gguf.GGUFWriter(path, config["model_type"])
    write_metadata(writer, config, bare=path.stem.endswith("-bare"))
    if path.stem.startswith("llama-r1"):
        write_tokenizer(writer, out / "tokenizers" / "llama3-r1", "llama-bpe")
    else:
        writer.add_tokenizer_model("none")
    read_back = {}
    for name, value in tensors.items():
        heads = rope_heads(config, name)
        if isinstance(value, tuple):  # raw blocks: random anyway, so the file's order is theirs
            this, data = value
        else:
            value = permute(value, heads) if heads else value
            this = kind if value.ndim == 2 else Q.F32
            data = gguf.quants.quantize(value, this)
        writer.add_tensor(gguf_name(name), data, raw_dtype=this)
        read_back[name] = (this, gguf.quants.dequantize(data, this).astype(np.float32))
    if config["rope_parameters"]["rope_type"] == "llama3":
        plain = dict(config, rope_parameters=dict(config["rope_parameters"], rope_type="default"))
        factors = reference.inverse_frequencies(plain) / reference.inverse_frequencies(config)
        writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))
    close(writer)
    return read_back


def forward_golden(config, weights, rng, scratch):
    """Logits and greedy tokens of the dequantised model in Transformers, f32."""
    (scratch / "config.json").write_text(json.dumps(config))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(scratch), attn_implementation="eager").float().eval()
    missing, unexpected = model.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    while True:
        ids = [int(i) for i in rng.integers(3, config["vocab_size"], 150 if "rope-f" in scratch.name else 40)]
        tokens, margins, _ = greedy(model, ids)
        if min(margins[:N_GREEDY_KEPT]) > 2e-3:
            break
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, -1]
    noise = np.abs(logits.numpy() - reference.forward(config, weights, ids)["logits"][-1]).max()
    assert noise < 1e-4, noise
    return {"ids": ids, "logits_last": digits(logits[:128]), "logits_l2": digits(float(torch.linalg.vector_norm(logits.double()))),
            "argmax": int(logits.argmax()), "greedy": tokens[:N_GREEDY_KEPT], "greedy_margin_min": digits(min(margins[:N_GREEDY_KEPT]))}


def tensor_golden(name, kind, stored, loaded):
    golden = {"gguf": gguf_name(name), "hf": name, "type": kind.name, "shape": list(loaded.shape), "first16": digits(loaded.flatten()[:16]),
              "last8": digits(loaded.flatten()[-8:]), "l2": digits(float(np.linalg.norm(loaded.astype(np.float64))))}
    if loaded.ndim == 2:
        golden["row1"] = digits(loaded[1, :8])
        if not np.array_equal(stored, loaded):
            golden["row1_in_file"] = digits(stored[1, :8])
    return golden


def check_with_reader(path, read_back):
    reader = gguf.GGUFReader(path)
    for tensor in reader.tensors:
        if tensor.name != "rope_freqs.weight":
            name = next(n for n in read_back if gguf_name(n) == tensor.name)
            value = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(read_back[name][1].shape)
            assert np.array_equal(value, read_back[name][1]), tensor.name


def rebuild(out, i, stem, folder):
    """File `i` of FILES again, in another folder: config, tensors as stored and as a decoder needs them."""
    case, kind = FILES[stem]
    rng = np.random.default_rng(100 + i)
    config, tensors = source(out, case, rng)
    stored = write_file(folder / f"{stem}.gguf", out, config, tensors, kind)
    loaded = {n: unpermute(v, rope_heads(config, n)) if rope_heads(config, n) else v for n, (_, v) in stored.items()}
    return config, stored, loaded, rng


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    shutil.rmtree(out / "gguf", ignore_errors=True)
    (out / "gguf").mkdir()
    files = {}
    for i, (stem, (case, _)) in enumerate(FILES.items()):
        path = out / "gguf" / f"{stem}.gguf"
        config, stored, loaded, rng = rebuild(out, i, stem, path.parent)
        check_with_reader(path, stored)
        scratch = out / "gguf" / f"scratch-{stem}"
        scratch.mkdir()
        forward = forward_golden(config, loaded, rng, scratch)
        shutil.rmtree(scratch)
        keep = ("model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                "vocab_size", "rms_norm_eps", "rope_parameters", "tie_word_embeddings", "max_position_embeddings")
        files[path.name] = {
            "source": case, "config": {k: config[k] for k in keep} | {"head_dim": reference.head_dim(config)},
            "tensors": [tensor_golden(n, k, v, loaded[n]) for n, (k, v) in stored.items()], "forward": forward}
        print(f"{path.name:32} {path.stat().st_size:7} margin {forward['greedy_margin_min']:.4f}", flush=True)
    for stem, (tokenizer, pre) in TOKENIZER_FILES.items():
        writer = gguf.GGUFWriter(out / "gguf" / f"{stem}.gguf", "llama" if pre != "qwen2" else "qwen2")
        write_metadata(writer, make_config(OWN["r1"]), bare=False)
        write_tokenizer(writer, out / "tokenizers" / tokenizer, pre)
        close(writer)
    meta = {"gguf": version("gguf"), "transformers": transformers.__version__, "torch": torch.__version__, "numpy": np.__version__,
            "conventions": "tensor values are those after dequantisation by gguf.quants to f32 and, for q/k of arch llama, after the rows "
            "are put back in half-split order (row1_in_file: row 1 before that); shape is [rows, cols], the reverse of the file's; forward: "
            "Transformers in f32 eager with these weights, logits_last holds at most 128 entries, logits_l2 all of them"}
    text = json.dumps({"meta": meta, "files": files}, separators=(",", ":")).replace('{"gguf":"', '\n{"gguf":"')
    (out / "gguf.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
