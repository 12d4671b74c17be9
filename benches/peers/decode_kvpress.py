"""Kept sets and decode speed beside kvpress, in one invocation; prints one JSON object.

    python benches/peers/decode_kvpress.py DECODE_SPEED MODEL.gguf [--new 1024] [--budget 256] [--interval 64] [--rounds 3]

DECODE_SPEED is the example of that name of the crate `epikv-eviction`, built with the release profile. `DecodingPress` around
`KnormPress` and `KeyDiffPress` evicts to the budget after every so many decoded tokens and protects nothing; so do `k-norm` and
`key-diff` with `protect=nothing;trigger=every(N)`. Both decode greedily from the same 64 prompt tokens, in f32, on the same
weights and number of threads. Sets are compared on the same tokens: kvpress is fed those that our run chose.

Needs kvpress 0.5.5, transformers below 5.3, torch and gguf.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

import torch
from kvpress import DecodingPress, KeyDiffPress, KnormPress
from transformers import AutoModelForCausalLM, DynamicCache

PRESSES = {"k-norm": KnormPress, "key-diff": KeyDiffPress}
N_PROMPT = 64


def ours(args, policy, *more):
    policy = f"{policy};protect=nothing;trigger=every({args.interval})"
    command = [args.binary, args.model, "f32", policy, str(args.budget), str(args.new), "1", str(args.threads), *more]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def noting(press):
    """A press that notes which positions each layer and head holds."""

    class Noting(press):
        def compress(self, module, hidden_states, keys, values, attentions, kwargs):
            n = keys.shape[2]
            seen = self.held.setdefault(module.layer_idx, torch.arange(0).expand(keys.shape[1], 0))
            fresh = torch.arange(self.fed - (n - seen.shape[1]), self.fed).expand(keys.shape[1], -1)
            now = torch.cat([seen, fresh], dim=1)
            if self.compression_ratio:
                scores = self.score(module, hidden_states, keys, values, attentions, kwargs)
                kept = scores.topk(int(n * (1 - self.compression_ratio)), dim=-1).indices[0]
                ordered = scores[0].sort(dim=-1, descending=True).values
                self.cuts.append((ordered[:, kept.shape[1] - 1] - ordered[:, kept.shape[1]]).min().item())
                now = now.gather(1, kept)
            self.held[module.layer_idx] = now
            return super().compress(module, hidden_states, keys, values, attentions, kwargs)

    made = Noting()
    made.held, made.cuts, made.fed = {}, [], 0
    return made


def decode(model, press, args, tokens=None):
    """Greedy, or along given tokens; returns seconds of the steps after the first, and the tokens."""
    prompt = torch.tensor([[300 + i * i * 31 % 5000 for i in range(N_PROMPT)]])
    wrapped = DecodingPress(
        base_press=press, compression_interval=args.interval, target_size=args.budget, hidden_states_buffer_size=0
    )
    cache, chosen = DynamicCache(), []
    with torch.inference_mode(), wrapped(model):
        ids, position = prompt, torch.arange(N_PROMPT)[None]
        for step in range(args.new):
            press.fed = N_PROMPT + step
            out = model(input_ids=ids, past_key_values=cache, position_ids=position, logits_to_keep=1)
            chosen.append(int(out.logits[0, -1].argmax()))
            ids = torch.tensor([[tokens[step] if tokens else chosen[-1]]])
            position = torch.tensor([[N_PROMPT + step]])
            if step == 1:
                started = time.perf_counter()
    return time.perf_counter() - started, chosen


def agreement(model, name, args):
    own = ours(args, name, "kept")
    press = noting(PRESSES[name])
    _, chosen = decode(model, press, args, own["generated"])
    # What came after the last eviction is held by both and left out.
    sets = [head.tolist() for layer in sorted(press.held) for head in press.held[layer]]
    compressed = N_PROMPT + (len(own["generated"]) - 1) // args.interval * args.interval
    same, common, total = 0, 0, 0
    for mine, theirs in zip(own["held"], sets):
        mine = {pos for pos in mine if pos < compressed}
        theirs = set(theirs)
        same += mine == theirs
        common += len(mine & theirs)
        total += len(theirs)
    return {
        "same_sets": same,
        "of_sets": len(sets),
        "share_of_positions": common / total,
        "smallest_cut": min(press.cuts),
        "same_tokens": sum(a == b for a, b in zip(chosen, own["generated"])),
        "of_tokens": len(chosen),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--new", type=int, default=1024)
    parser.add_argument("--budget", type=int, default=256)
    parser.add_argument("--interval", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    folder, name = os.path.split(os.path.abspath(args.model))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    found = {"torch": torch.__version__}
    for name, press in PRESSES.items():
        # In turn, so that both see the same neighbours.
        rates = {"epikv": [], "kvpress": []}
        for _ in range(args.rounds):
            rates["epikv"].append(ours(args, name)["tokens_per_s"])
            rates["kvpress"].append((args.new - 2) / decode(model, press(), args)[0])
        medians = {who: statistics.median(all_) for who, all_ in rates.items()}
        found[name] = {
            "tokens_per_s": rates,
            "ratio": medians["epikv"] / medians["kvpress"],
            "agreement": agreement(model, name, args),
        }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
