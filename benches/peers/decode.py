"""Decode speed under eviction, side by side in one invocation; prints one JSON object with figures and ratios.

    python benches/peers/decode.py DECODE_SPEED MODEL.gguf [--transformers] [--new 1024] [--part NAME ..]

DECODE_SPEED is the example of that name of the crate `epikv-eviction`, built with the release profile. Parts: `batch1`,
`batch8`, `q8`, `flat`, `each`, `taps`, `memory`; all by default. `--transformers` adds its `generate` with a DynamicCache on
the same weights in f32 and the same number of threads; it needs torch, transformers and gguf. `--llama-cpp` adds llama.cpp on
the file requantised to Q8_0; it needs llama-cpp-python. NVIDIA's kvpress is compared by `decode_kvpress.py`, since it needs an
older Transformers.
"""

import argparse
import json
import subprocess
import time


def ours(args, weights, policy, budget, new, batch, *more):
    command = [args.binary, args.model, weights, policy, str(budget), str(new), str(batch), str(args.threads), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def transformers_rate(args):
    """Tokens a second of `generate`, greedy, from a prompt of 64 tokens: the time of all new tokens less that of one."""
    import os

    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(args.threads)
    folder, name = os.path.split(os.path.abspath(args.model))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    prompt = torch.tensor([[300 + i * i * 31 % 5000 for i in range(64)]])

    def run(new):
        started = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                min_new_tokens=new,
                max_new_tokens=new,
                do_sample=False,
                pad_token_id=0,
            )
        return time.perf_counter() - started, out[0, 64:80].tolist()

    run(8)
    one, _ = run(1)
    whole, first = run(args.new)
    return {"tokens_per_s": (args.new - 1) / (whole - one), "first_tokens": first, "torch": torch.__version__}


def interleaved(args, one, other, rounds=4):
    """Two policies in turn, so that both see the same neighbours: their lowest median step, and what each spent on evicting."""
    runs = {one: [], other: []}
    for _ in range(rounds):
        for policy in runs:
            runs[policy].append(ours(args, "f32", policy, 256, args.new, 1))
    best = {policy: min(all_, key=lambda run: run["median_ms"]) for policy, all_ in runs.items()}
    spent = {
        policy: (run["score_s"] + run["select_s"] + run["move_s"]) / run["decode_s"] for policy, run in best.items()
    }
    ratio = best[one]["median_ms"] / best[other]["median_ms"] - 1
    return {"over": ratio, "median_ms": {p: r["median_ms"] for p, r in best.items()}, "share_of_evicting": spent}


def llama_cpp_rate(args):
    """Tokens a second of llama.cpp on the same file requantised to Q8_0, greedy, without a stop."""
    import os
    import tempfile

    import llama_cpp

    path = os.path.join(tempfile.mkdtemp(), "q8_0.gguf")
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize = llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0, True
    if llama_cpp.llama_model_quantize(args.model.encode(), path.encode(), params):
        raise SystemExit("llama.cpp could not requantise the file")
    model = llama_cpp.Llama(path, n_ctx=64 + args.new + 8, n_threads=args.threads, verbose=False)
    model.eval([300 + i * i * 31 % 5000 for i in range(64)])
    token, started = model.sample(temp=0.0), None
    for step in range(args.new):
        if step == 8:
            started = time.perf_counter()
        model.eval([token])
        token = model.sample(temp=0.0)
    return {"tokens_per_s": (args.new - 8) / (time.perf_counter() - started), "llama_cpp": llama_cpp.__version__}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--new", type=int, default=1024)
    parser.add_argument("--long", type=int, default=4096)
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--llama-cpp", action="store_true")
    parser.add_argument("--part", nargs="*", default=["batch1", "batch8", "q8", "flat", "each", "taps", "memory"])
    args = parser.parse_args()
    found, new = {}, args.new
    if "batch1" in args.part:
        own = ours(args, "f32", "epikv", 256, new, 1)
        found["epikv_f32_k256"] = own
        found["share_of_bandwidth"] = own["tokens_per_s"] * own["weight_bytes_a_token"] / own["read_bytes_per_s"]
        if args.transformers:
            found["transformers"] = peer = transformers_rate(args)
            found["ratio_to_transformers"] = own["tokens_per_s"] / peer["tokens_per_s"]
    if "batch8" in args.part:
        eight = ours(args, "f32", "epikv", 256, new // 4, 8)
        one = ours(args, "f32", "epikv", 256, new // 4, 1)
        found["batch8"] = eight
        found["ratio_batch8_to_1"] = eight["tokens_per_s"] / one["tokens_per_s"]
    if "q8" in args.part:
        found["epikv_q8_k256"] = own = ours(args, "q8_0", "epikv", 256, new, 1)
        if args.llama_cpp:
            found["llama_cpp"] = peer = llama_cpp_rate(args)
            found["ratio_to_llama_cpp"] = own["tokens_per_s"] / peer["tokens_per_s"]
    if "flat" in args.part:
        capped = ours(args, "f32", "epikv", 512, args.long, 1)
        full = ours(args, "f32", "full", 0, args.long, 1)
        late = capped["ms_a_step"][1:]
        found["flat"] = {
            "capped_ms": capped["ms_a_step"],
            "full_ms": full["ms_a_step"],
            "spread": max(late) / min(late) - 1,
        }
    if "each" in args.part:
        found["each_over_every64"] = interleaved(args, "epikv", "epikv;trigger=every(64)")
    if "taps" in args.part:
        # The same cache size, with and without what the score reads.
        found["taps_over_window"] = interleaved(args, "epikv", "window")
    if "memory" in args.part:
        capped = ours(args, "f32", "epikv", 256, new, 1)
        full = ours(args, "f32", "full", 0, new, 1)
        found["memory"] = {
            name: {key: one[key] for key in ("peak_kv_bytes", "max_held", "peak_process_bytes")}
            for name, one in (("capped", capped), ("full", full))
        }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
