"""Copies the numbers that eviction/src/parity_kvpress.rs needs out of the parity cases.

    python3 make_kvpress_runs.py PARITY_FOLDER/kvpress.json.gz > kvpress_runs.json

The cases hold numbers alone: prompts compressed by kvpress presses on the model of tests/golden/model/parity/llama, in f32 on
one thread, at the versions that `source` names. Floats carry nine significant digits.
"""

import gzip
import json
import sys

WANTED = ("knorm", "keydiff", "tova", "streaming_llm", "rerotate_knorm", "rerotate_streaming", "snapkv", "snapkv_w16_k7",
          "lagkv_default", "lagkv_lag32")

with gzip.open(sys.argv[1]) as file:
    cases = json.load(file)
meta, llama = cases["meta"], cases["models"]["llama"]
runs = []
for press in WANTED:
    for ratio, case in llama["presses"][press]["ratios"].items():
        decode = case["decode"]
        runs.append({
            "press": press,
            "ratio": ratio,
            "n_kept": case["n_kept"][0],
            "kept": case["kept"],
            "fed": decode["fed"],
            "margin": decode["margin"],
            "after_first": decode["after_first"]["first16"],
        })
source = f"kvpress {meta['kvpress']}, transformers {meta['transformers']}, torch {meta['torch']}"
head = json.dumps({"source": source, "prompt": llama["prompt_ids"]})[:-1]
# One run a line, so that a difference is readable.
print(head + ', "runs": [\n' + ",\n".join(json.dumps(r, separators=(",", ":")) for r in runs) + "\n]}")
