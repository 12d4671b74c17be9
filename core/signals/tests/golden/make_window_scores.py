"""Copies the numbers that core/signals/src/parity.rs needs out of the parity cases.

    python3 make_window_scores.py PARITY_FOLDER > window_scores.json

The cases hold numbers alone: scores by an observation window, made by VaSE, R-KV and SnapKV (commits in `source`) from keys,
values and queries of one layer, in f32. Tensors are written as the hexadecimal bits of their f32; scores carry nine digits.
"""

import gzip
import json
import struct
import sys

folder = sys.argv[1]


def cases(name):
    with gzip.open(f"{folder}/{name}.json.gz") as file:
        return json.load(file)


def tensors(name):
    with open(f"{folder}/{name}.safetensors", "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    read = lambda at: data[8 + length + at[0]:8 + length + at[1]]
    return {key: (of["shape"], read(of["data_offsets"])) for key, of in header.items() if key != "__metadata__"}


def part(tensor, from_row=0):
    """A tensor `[heads, rows, D]` without its first rows."""
    (heads, rows, d), data = tensor
    row = 4 * d
    kept = b"".join(data[(h * rows + from_row) * row:(h + 1) * rows * row] for h in range(heads))
    bits = struct.unpack(f"<{len(kept) // 4}I", kept)
    return {"shape": [heads, rows - from_row, d], "bits": "".join(f"{b:08x}" for b in bits)}


vase, originals = cases("vase"), cases("originals")
inputs, llama = tensors("vase_inputs"), tensors("kvpress_llama")
by_name = {case["name"]: case["flushes"][0]["topk_inputs"][0]["scores"] for case in vase["cases"] if case["mode"] == "attn"}
rkv = [{
    "params": run["params"],
    "final_score": run["final_score"],
    "redundancy": run["redundancy_all_positions"],
    "attention": run["attention_term_pooled"],
    "kept": run["kept_sorted"],
} for run in vase["rkv_original"] if run["inputs"] == "flush1" and run["params"]["retain_direction"] == "last"]
snapkv = originals["policies"]["snapkv"]
meta = vase["meta"]
made = {
    "source": f"{meta['source']} {meta['source_commit']}, {meta['rkv_source']} {meta['rkv_commit']}, "
              f"{snapkv['source']} {snapkv['commit']}",
    "key": part(inputs["flush1.key"]),
    "value": part(inputs["flush1.value"]),
    "query": part(inputs["flush1.query"]),
    "vase": {"plain": by_name["attn"], "mean5": by_name["attn_smooth"]},
    "rkv": rkv,
    "snapkv_key": part(llama["layer1.key"]),
    "snapkv_query": part(llama["layer1.query"], 200 - 32),
    "snapkv": [{
        "params": run["params"],
        "pooled": run["pooled_scores"],
        "certain": run["certain"],
        "tied": run["tied"],
    } for run in snapkv["runs"] if run["layer"] == 1],
}
print("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in made.items()) + "\n}")
