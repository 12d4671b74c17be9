"""Copies the numbers that eviction/src/parity.rs needs out of the parity cases.

    python3 make_epikv_runs.py PARITY_FOLDER/epikv.json.gz > epikv_runs.json

The cases hold numbers alone: decode loops of the EpiKV authors' policy classes on the model of
tests/golden/model/parity/llama, run with transformers 5.24.0 and torch 2.15.0 in f32 on one thread, at the commit that
`source` names. Floats carry nine significant digits.
"""

import gzip
import json
import sys

WANTED = ("none", "hs_variance", "hs_variance_b3", "hs_variance_detrend", "hs_variance_detrend_b3",
          "hs_variance_detrend_w16", "kv_key", "h2o_default", "h2o_recent_quarter", "h2o_recent8_nosink", "raas",
          "lag_kv_default", "lag_kv_c32", "lag_kv_key_c32")


def step(step):
    kept = ("token", "margin", "dropped", "score", "resid_step_l2", "key_var")
    return {name: step[name] for name in kept if step.get(name) not in (None, [])}


def run(run):
    kept = ("policy", "position_mode", "K", "params", "last_logits", "last_logits_l2")
    made = {name: run[name] for name in kept if run.get(name) is not None}
    made["recent"] = run.get("config", {}).get("keep_recent_k")
    made["steps"] = [step(s) for s in run["steps"]]
    sums = [c for c in run["checkpoints"] if c.get("kind") == "cumulative_attention_after_step"]
    made["sums"] = [{name: c[name] for name in ("step", "positions", "values")} for c in sums]
    if run["policy"] == "raas":
        # The time stamps of the decode tokens before each eviction.
        calls = {c["step"]: c["topk_calls"][0]["scores"] for c in run["checkpoints"]}
        made["stamps"] = [[int(score) for score in calls.get(t, [])] for t in range(len(run["steps"]))]
    return made


with gzip.open(sys.argv[1]) as file:
    cases = json.load(file)
meta = cases["meta"]
made = {
    "source": f"{meta['source']} {meta['source_commit']} {meta['source_file']}, "
              f"transformers {meta['transformers']}, torch {meta['torch']}",
    "prompt": meta["prompt"],
    "runs": [run(r) for r in cases["runs"] if r["policy"] in WANTED],
}
# One run a line, so that a difference is readable.
runs = made.pop("runs")
head = json.dumps(made)[:-1]
print(head + ', "runs": [\n' + ",\n".join(json.dumps(r, separators=(",", ":")) for r in runs) + "\n]}")
