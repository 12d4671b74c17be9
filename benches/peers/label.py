"""Seconds a window: `epikv label` against loops that label with Transformers.

    python benches/peers/label.py --epikv target/release/epikv --model MODEL.gguf --out FOLDER

Workload: SmolLM2-135M in f32, traces of at least 300 reasoning tokens and answers of 64 tokens, windows of 32 at stride 16,
filler eos, answers compared as text. Prompts and seeds are below. Loops:

  fresh    as the authors do: one `generate` over the whole context for each window
  cached   the trace's cache cropped before the first window of a batch of 8, the rest of the context and 64 tokens for the
           whole batch
  naive    `epikv label --protocol naive`
  fast     `epikv label`

All run on the same windows of the same traces, one after another, `--repeat` times; medians are printed, and how many of
the texts of `fresh` are those of `epikv label`, letter by letter. Needs torch, transformers, gguf and pyarrow.
"""

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

PROMPTS = [
    "Tell a long story about a lighthouse keeper and his three cats.",
    "Explain step by step how bread is baked, from the field to the table.",
    "Describe a journey by train through the mountains in great detail.",
    "List the planets of the solar system and say much about each.",
]
N_NEW = 420
ANSWER = 64
WINDOW, STRIDE, BATCH = 32, 16, 8


def run(*command):
    started = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    return time.perf_counter() - started


def make_traces(args, out):
    problems = out / "problems.jsonl"
    problems.write_text(
        "".join(json.dumps({"id": f"p{i}", "problem": p, "answer": "0"}) + "\n" for i, p in enumerate(PROMPTS))
    )
    traces = out / "traces.parquet"
    if not traces.exists():
        run(args.epikv, "trace", "--model", args.model, "--problems", problems, "--out", traces, "--max-new", N_NEW,
            "--instruction", "", "--quiet")  # fmt: skip
    return traces


def label(args, out, traces, protocol, limit):
    folder = out / protocol
    seconds = run(args.epikv, "label", "--model", args.model, "--traces", traces, "--out", folder, "--protocol", protocol,
                  "--answer", "text", "--max-new", ANSWER, "--limit", limit, "--batch", BATCH, "--noise-floor", 0,
                  "--fresh", "--quiet")  # fmt: skip
    return seconds, pq.read_table(folder / "label_windows.parquet").to_pylist()


def occluded(row, window, eos):
    ids = list(row["token_ids"][: row["boundary"]])
    ids[window["start"] : window["end"]] = [eos] * (window["end"] - window["start"])
    return ids


@torch.no_grad()
def fresh(model, tokenizer, row, windows):
    texts = []
    for window in windows:
        ids = torch.tensor([occluded(row, window, tokenizer.eos_token_id)])
        new = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=ANSWER, do_sample=False,
                             pad_token_id=tokenizer.eos_token_id)  # fmt: skip
        texts.append(new[0, ids.shape[1] :].tolist())
    return texts


@torch.no_grad()
def cached(model, tokenizer, row, windows):
    whole = model(torch.tensor([row["token_ids"][: row["boundary"]]]), use_cache=True).past_key_values
    legacy = [(layer.keys, layer.values) for layer in whole.layers]
    texts = []
    for at in range(0, len(windows), BATCH):
        batch = windows[at : at + BATCH]
        first = min(window["start"] for window in batch)
        cache = DynamicCache()
        for layer, (k, v) in enumerate(legacy):
            cache.update(k[:, :, :first].repeat(len(batch), 1, 1, 1), v[:, :, :first].repeat(len(batch), 1, 1, 1), layer)
        ids = torch.tensor([occluded(row, window, tokenizer.eos_token_id)[first:] for window in batch])
        new = []
        for _ in range(ANSWER):
            ids = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1].argmax(-1, keepdim=True)
            new.append(ids)
        texts.extend(torch.cat(new, 1).tolist())
    return texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epikv", required=True)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--traces", default=1, type=int)
    parser.add_argument("--fresh-windows", default=4, type=int, help="windows a trace of the slowest loop")
    parser.add_argument("--repeat", default=3, type=int)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    traces = make_traces(args, args.out)
    rows = pq.read_table(traces).to_pylist()
    rows = rows[: args.traces]
    assert all(row["boundary"] - row["reason_start"] >= 300 for row in rows), "traces are too short"
    tokenizer = AutoTokenizer.from_pretrained(args.model.parent, gguf_file=args.model.name)
    model = AutoModelForCausalLM.from_pretrained(args.model.parent, gguf_file=args.model.name, dtype=torch.float32).eval()
    seconds = {name: [] for name in ("fresh", "cached", "naive", "fast")}
    same = compared = 0
    for _ in range(args.repeat):
        labelled = {}
        for protocol in ("fast", "naive"):
            elapsed, labelled[protocol] = label(args, args.out, traces, protocol, args.traces)
            seconds[protocol].append(elapsed / len(labelled[protocol]))
        assert labelled["fast"] == labelled["naive"], "the protocols differ"
        for row in rows:
            windows = [w for w in labelled["fast"] if w["trace_id"] == row["trace_id"]]
            started = time.perf_counter()
            cached(model, tokenizer, row, windows)
            seconds["cached"].append((time.perf_counter() - started) / len(windows))
            some = windows[:: max(1, len(windows) // args.fresh_windows)][: args.fresh_windows]
            started = time.perf_counter()
            texts = fresh(model, tokenizer, row, some)
            seconds["fresh"].append((time.perf_counter() - started) / len(some))
            for window, ids in zip(some, texts):
                ids = ids[: ids.index(tokenizer.eos_token_id)] if tokenizer.eos_token_id in ids else ids
                compared += 1
                same += tokenizer.decode(ids) == window["answer_text"]
    median = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in median.items():
        spread = f"{min(seconds[name]):.3f} to {max(seconds[name]):.3f}"
        print(f"{name:7} {value:.3f} s a window ({spread}), {value / median['fast']:.1f} times fast")
    print(f"texts of fresh that are those of epikv: {same} of {compared}")


if __name__ == "__main__":
    main()
