"""Copies the numbers that eviction/src/parity_vase.rs needs out of the parity cases.

    python3 make_vase_choices.py PARITY_FOLDER > vase_choices.json

The cases hold numbers alone: what VaSE (commit in `source`) keeps of 240 tokens besides the last 16, by scores, value ranges and
exponential numbers that are stored. Its first four tokens are sinks. Floats carry nine digits.
"""

import gzip
import json
import struct
import sys

folder = sys.argv[1]
with gzip.open(f"{folder}/vase.json.gz") as file:
    vase = json.load(file)
with open(f"{folder}/vase_inputs.safetensors", "rb") as file:
    data = file.read()
(length,) = struct.unpack("<Q", data[:8])
of = json.loads(data[8:8 + length])["exp1"]
start, end = (8 + length + at for at in of["data_offsets"])
numbers = [float(f"{x:.9g}") for x in struct.unpack(f"<{(end - start) // 4}f", data[start:end])]
width = of["shape"][1]
cases = {case["name"]: case["flushes"][0] for case in vase["cases"]}
made = {
    "source": f"{vase['meta']['source']} {vase['meta']['source_commit']}",
    "exponential": [numbers[at:at + width] for at in range(0, len(numbers), width)],
    # Not a number in JSON where the source has infinity: the sinks.
    "ranges": [[None if x == "inf" else x for x in head] for head in cases["vase_attnv_hard"]["topk_inputs"][0]["scores"]],
    "runs": [{
        "draw": draw == "exp",
        "scores": cases["attn" + smooth]["topk_inputs"][0]["scores"],
        "kept": cases[f"vase_attnv_{draw}{smooth}"]["kept_sorted"],
    } for draw in ("hard", "exp") for smooth in ("", "_smooth")],
}
print("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in made.items()) + "\n}")
