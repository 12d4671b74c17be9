"""Seconds a window: `epikv label` against loops that label with Transformers.

    python benches/peers/label.py --epikv target/release/epikv --model MODEL.gguf --out FOLDER

Workload: SmolLM2-135M in f32, traces of at least 300 reasoning tokens and answers of 64 tokens, windows of 32 at stride 16,
filler eos, answers compared as text. Prompts and seeds are below. Loops:

  fresh    as the authors do: one `generate` over the whole context for each window
  cached   the trace's cache cropped before the first window of a batch of 8, the rest of the context and 64 tokens for the
           whole batch
  llama    llama.cpp, with `--llama-cpp`: the trace read once, each window's sequence takes over the cells before its own start
           and reads the rest of its context, eight sequences decode 64 tokens together; the file requantised to f32
  naive    `epikv label --protocol naive`
  fast     `epikv label`

All run on the same windows of the same traces, one after another, `--repeat` times; medians are printed, and how many of
the texts of `fresh` are those of `epikv label`, letter by letter. Needs torch, transformers, gguf and pyarrow, and
llama-cpp-python for llama.cpp.
"""

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
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


class LlamaCpp:
    """llama.cpp on the f32 weights, with room for a trace and a batch of windows."""

    def __init__(self, model, out, n_ctx):
        import llama_cpp

        self.api = llama_cpp
        path = str(out / "f32.gguf")
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize = llama_cpp.LLAMA_FTYPE_ALL_F32, True
        if llama_cpp.llama_model_quantize(str(model).encode(), path.encode(), params):
            raise SystemExit("llama.cpp could not requantise the file")
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = n_ctx * (BATCH + 1), 4096, 512
        params.n_seq_max, params.kv_unified = BATCH + 1, True
        params.n_threads = params.n_threads_batch = torch.get_num_threads()
        params.type_k = params.type_v = llama_cpp.GGML_TYPE_F32
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(4096, 0, 1)

    def feed(self, rows):
        """Reads (sequence, first position, tokens) and returns the arg-max after the last token of each."""
        n, last = 0, []
        for sequence, first, tokens in rows:
            for i, token in enumerate(tokens):
                self.batch.token[n], self.batch.pos[n], self.batch.n_seq_id[n] = token, first + i, 1
                self.batch.seq_id[n][0], self.batch.logits[n] = sequence, i + 1 == len(tokens)
                n += 1
            last.append(n - 1)
        self.batch.n_tokens = n
        if self.api.llama_decode(self.context, self.batch):
            raise SystemExit("llama.cpp could not decode")
        logits = (self.api.llama_get_logits_ith(self.context, i) for i in last)
        return [int(np.ctypeslib.as_array(row, (self.vocab,)).argmax()) for row in logits]

    def label(self, row, windows, eos):
        self.api.llama_memory_clear(self.memory, True)
        self.feed([(0, 0, list(row["token_ids"][: row["boundary"]]))])
        texts = []
        for at in range(0, len(windows), BATCH):
            batch = windows[at : at + BATCH]
            rows = []
            for s, window in enumerate(batch, 1):
                self.api.llama_memory_seq_cp(self.memory, 0, s, 0, window["start"])
                rows.append((s, window["start"], occluded(row, window, eos)[window["start"] :]))
            new = [self.feed(rows)]
            for i in range(ANSWER - 1):
                new.append(self.feed([(s, row["boundary"] + i, [id]) for s, id in enumerate(new[-1], 1)]))
            texts.extend(list(ids) for ids in zip(*new))
            for s in range(1, len(batch) + 1):
                self.api.llama_memory_seq_rm(self.memory, s, -1, -1)
        return texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epikv", required=True)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--traces", default=1, type=int)
    parser.add_argument("--fresh-windows", default=4, type=int, help="windows a trace of the slowest loop")
    parser.add_argument("--repeat", default=3, type=int)
    parser.add_argument("--llama-cpp", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    traces = make_traces(args, args.out)
    rows = pq.read_table(traces).to_pylist()
    rows = rows[: args.traces]
    assert all(row["boundary"] - row["reason_start"] >= 300 for row in rows), "traces are too short"
    tokenizer = AutoTokenizer.from_pretrained(args.model.parent, gguf_file=args.model.name)
    model = AutoModelForCausalLM.from_pretrained(args.model.parent, gguf_file=args.model.name, dtype=torch.float32).eval()
    seconds = {name: [] for name in ("fresh", "cached", "llama", "naive", "fast")}
    same = compared = agreed = n_llama = 0
    llama = LlamaCpp(args.model, args.out, max(row["boundary"] for row in rows) + ANSWER) if args.llama_cpp else None

    def text_of(ids):
        return tokenizer.decode(ids[: ids.index(tokenizer.eos_token_id)] if tokenizer.eos_token_id in ids else ids)

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
            if llama:
                started = time.perf_counter()
                texts = llama.label(row, windows, tokenizer.eos_token_id)
                seconds["llama"].append((time.perf_counter() - started) / len(windows))
                n_llama += len(texts)
                agreed += sum(text_of(ids) == w["answer_text"] for w, ids in zip(windows, texts))
            some = windows[:: max(1, len(windows) // args.fresh_windows)][: args.fresh_windows]
            started = time.perf_counter()
            texts = fresh(model, tokenizer, row, some)
            seconds["fresh"].append((time.perf_counter() - started) / len(some))
            for window, ids in zip(some, texts):
                compared += 1
                same += text_of(ids) == window["answer_text"]
    median = {name: statistics.median(values) for name, values in seconds.items() if values}
    for name, value in median.items():
        spread = f"{min(seconds[name]):.3f} to {max(seconds[name]):.3f}"
        print(f"{name:7} {value:.3f} s a window ({spread}), {value / median['fast']:.1f} times fast")
    if llama:
        print(f"texts of llama.cpp that are those of epikv: {agreed} of {n_llama}")
    print(f"texts of fresh that are those of epikv: {same} of {compared}")


if __name__ == "__main__":
    main()
