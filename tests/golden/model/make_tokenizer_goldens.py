#!/usr/bin/env python3
"""Two small tokenizer folders as Hugging Face repositories ship them, and what Transformers does with them.

    python make_tokenizer_goldens.py OUT

Writes OUT/tokenizers/llama3-r1/ (Llama-3 split, BOS by post-processor, R1-like chat template inside tokenizer_config.json),
OUT/tokenizers/qwen3/ (NFC, Qwen split, ChatML in chat_template.jinja) and OUT/tokenizers.json.
"""

import json
import shutil
import sys
from pathlib import Path

import jinja2
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

from corpus import corpus
from hard_texts import CHATML_TEXTS, R1_TEXTS, TEXTS

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3_SPLIT = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL
QWEN_SPLIT = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL

BOS, EOS = "<|begin_of_text|>", "<｜end▁of▁sentence｜>"

R1_TEMPLATE = (
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
    "{% set ns = namespace(system='', first=true) %}"
    "{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.first %}{% set ns.system = message['content'] %}"
    "{% set ns.first = false %}{%- else %}{% set ns.system = ns.system + '\n\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}"
    "{{ bos_token }}{{ ns.system }}"
    "{%- for message in messages %}"
    "{%- if message['role'] == 'user' %}{{ '<｜User｜>' + message['content'] }}{%- endif %}"
    "{%- if message['role'] == 'assistant' and message['content'] is not none %}"
    "{% set content = message['content'] %}"
    "{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{ '<｜Assistant｜>' + content + eos_token }}{%- endif %}"
    "{%- endfor -%}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\n' }}{% endif %}"
)

QWEN3_TEMPLATE = r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "# Tools\n\nSignatures in <tools></tools>:\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are a careful assistant.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(searching=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content.strip() + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or reasoning) %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\n<tool_response>\n' + content + '\n</tool_response><|im_end|>\n' }}
    {%- elif message.role != "system" %}
        {{- raise_exception('unexpected role: ' + message.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"""


def turn(role, content, **more):
    return {"role": role, "content": content} | more


PROBLEM = "Please reason step by step, and put your final answer within \\boxed{}.\nWhat is $2+2$?"
THOUGHT = "<think>\nTwo and two, so 4.\nWait, yes.\n</think>\n\nThe answer is \\boxed{4}."
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds <a> & 'b'; \"größer\" — 42", "parameters": {
    "type": "object", "properties": {"b": {"type": "number"}, "a": {"type": ["number", "null"], "default": 1.5}}, "required": ["b", "a"], "x": [True, None, []], "y": {}}}}]

CHATS = [
    {"name": "user", "messages": [turn("user", PROBLEM)], "add_generation_prompt": True},
    {"name": "user-no-prompt", "messages": [turn("user", PROBLEM)], "add_generation_prompt": False},
    {"name": "system", "messages": [turn("system", "Be brief."), turn("user", PROBLEM)], "add_generation_prompt": True},
    {"name": "thinking-on", "messages": [turn("user", PROBLEM)], "add_generation_prompt": True, "enable_thinking": True},
    {"name": "thinking-off", "messages": [turn("user", PROBLEM)], "add_generation_prompt": True, "enable_thinking": False},
    {"name": "turns", "messages": [turn("user", "2+2?"), turn("assistant", THOUGHT), turn("user", "And 3+3?")], "add_generation_prompt": True},
    {"name": "answered", "messages": [turn("user", "2+2?"), turn("assistant", THOUGHT)], "add_generation_prompt": False},
    {"name": "answered-plain", "messages": [turn("system", "S"), turn("user", "2+2?"), turn("assistant", "4"), turn("user", "3+3?"), turn("assistant", "6")], "add_generation_prompt": False},
    {"name": "two-closing-tags", "messages": [turn("user", "q"), turn("assistant", "a</think>b</think>\n\nc"), turn("user", "r")], "add_generation_prompt": True},
    {"name": "spaces", "messages": [turn("system", " s \n"), turn("user", "  \n padded\t \n"), turn("assistant", "\n\n x \n"), turn("user", "")], "add_generation_prompt": True},
    {"name": "unicode", "messages": [turn("user", "cafe\u0301 😀 首先 שלום \u200b½ <b>&amp;</b> 'q' \"r\"")], "add_generation_prompt": True},
    {"name": "markup-inside", "messages": [turn("user", "{{ 7 * 7 }} {% if x %} <|im_end|> <｜User｜> <think> </think> <|begin_of_text|> %}")], "add_generation_prompt": True},
    {"name": "two-systems", "messages": [turn("system", "One."), turn("system", "Two."), turn("user", "q")], "add_generation_prompt": True},
    {"name": "long", "messages": [turn("user" if i % 2 == 0 else "assistant", f"turn {i}: " + "so " * i) for i in range(9)], "add_generation_prompt": True},
]
QWEN_CHATS = [
    {"name": "reasoning-content", "messages": [turn("user", "q"), turn("assistant", "\n\nanswer", reasoning_content="\nbecause\n")], "add_generation_prompt": False},
    {"name": "tools", "messages": [turn("system", "Use tools."), turn("user", "1+2?"),
                                   turn("assistant", "", tool_calls=[{"type": "function", "function": {"name": "add", "arguments": {"b": 2, "a": 1.0, "note": "<é & 'x'>"}}}]),
                                   turn("tool", "3")], "tools": TOOLS, "add_generation_prompt": True},
    {"name": "content-list", "messages": [turn("user", [{"type": "text", "text": "hi"}])], "add_generation_prompt": True},
    {"name": "bad-role", "messages": [turn("user", "q"), turn("narrator", "meanwhile")], "add_generation_prompt": True},
]


def train(split, normalizer, extra_words):
    """Byte-level BPE of 2,000 entries; `extra_words` get an id but no merge leads to them."""
    tok = Tokenizer(models.BPE())
    if normalizer:
        tok.normalizer = normalizer
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(split), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False),
    ])
    tok.decoder = decoders.ByteLevel(add_prefix_space=True, trim_offsets=True, use_regex=True)
    trainer = trainers.BpeTrainer(vocab_size=2000 - len(extra_words), show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tok.train_from_iterator(corpus(5), trainer)
    state = json.loads(tok.to_str())
    for word in extra_words:
        assert word not in state["model"]["vocab"], word
        state["model"]["vocab"][word] = len(state["model"]["vocab"])
    state["model"]["ignore_merges"] = bool(extra_words)
    return state


def added(tok, contents, special):
    for content in contents:
        token = AddedToken(content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=special)
        (tok.add_special_tokens if special else tok.add_tokens)([token])


def token_dict(content):
    return {"__type": "AddedToken", "content": content, "lstrip": False, "normalized": True, "rstrip": False, "single_word": False}


def decoder_entries(tok):
    entries = json.loads(tok.to_str())["added_tokens"]
    return {str(e.pop("id")): e for e in entries}


def write(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def make_llama3_r1(folder):
    tok = Tokenizer.from_str(json.dumps(train(LLAMA3_SPLIT, None, ["Ġcounterfactual", "epiphany"])))
    added(tok, [BOS, EOS], True)
    added(tok, ["<｜User｜>", "<｜Assistant｜>"], False)
    added(tok, ["<｜fim▁hole｜>"], True)
    added(tok, ["<think>", "</think>"], False)
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{BOS} $A", pair=f"{BOS} $A {BOS}:1 $B:1", special_tokens=[(BOS, tok.token_to_id(BOS))]),
    ])
    state = json.loads(tok.to_str())
    state["model"]["merges"] = [" ".join(m) for m in state["model"]["merges"]]  # the form of files before tokenizers 0.20
    (folder / "tokenizer.json").write_text(json.dumps(state, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    write(folder / "tokenizer_config.json", {
        "add_bos_token": True, "add_eos_token": False, "bos_token": token_dict(BOS), "clean_up_tokenization_spaces": False,
        "eos_token": token_dict(EOS), "legacy": True, "model_max_length": 16384, "pad_token": token_dict(EOS),
        "sp_model_kwargs": {}, "unk_token": None, "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": R1_TEMPLATE,
    })
    write(folder / "special_tokens_map.json", {
        "bos_token": {k: v for k, v in token_dict(BOS).items() if k != "__type"}, "eos_token": EOS, "pad_token": EOS})
    write(folder / "generation_config.json", {
        "_from_model_config": True, "bos_token_id": tok.token_to_id(BOS), "eos_token_id": tok.token_to_id(EOS), "do_sample": True,
        "temperature": 0.6, "top_p": 0.95, "transformers_version": "4.39.3"})


def make_qwen3(folder):
    tok = Tokenizer.from_str(json.dumps(train(QWEN_SPLIT, normalizers.NFC(), [])))
    added(tok, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], True)
    added(tok, ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"], False)
    tok.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    state = json.loads(tok.to_str())
    (folder / "tokenizer.json").write_text(json.dumps(state, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    write(folder / "tokenizer_config.json", {
        "add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": decoder_entries(tok),
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "bos_token": None, "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 131072, "pad_token": "<|endoftext|>",
        "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None,
    })
    (folder / "chat_template.jinja").write_text(QWEN3_TEMPLATE, encoding="utf-8")
    write(folder / "special_tokens_map.json", {
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "eos_token": {"content": "<|im_end|>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False},
        "pad_token": "<|endoftext|>"})
    ids = {t: tok.token_to_id(t) for t in ("<|endoftext|>", "<|im_end|>")}
    write(folder / "generation_config.json", {
        "bos_token_id": ids["<|endoftext|>"], "do_sample": True, "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]],
        "pad_token_id": ids["<|endoftext|>"], "temperature": 0.6, "top_k": 20, "top_p": 0.95, "transformers_version": "4.51.0"})


def byte_offsets(text, offsets):
    at = [0]
    for char in text:
        at.append(at[-1] + len(char.encode("utf-8")))
    return [[at[a], at[b]] for a, b in offsets]


def text_golden(hf, raw, text):
    plain = hf(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = plain["input_ids"], [list(o) for o in plain["offset_mapping"]]
    with_special = hf(text, add_special_tokens=True)["input_ids"]
    for special, expected in ((False, ids), (True, with_special)):
        assert raw.encode(text, add_special_tokens=special).ids == expected, text  # tokenizer.json alone says the same
    assert [list(o) for o in raw.encode(text, add_special_tokens=False).offsets] == offsets, text
    decoded = hf.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return {"text": text, "ids": ids, "ids_special": with_special, "decoded": decoded, "offsets_byte": byte_offsets(text, offsets)}


def chat_golden(hf, chat):
    options = {k: chat[k] for k in ("add_generation_prompt", "enable_thinking", "tools") if k in chat}
    try:
        text = hf.apply_chat_template(chat["messages"], tokenize=False, **options)
    except jinja2.TemplateError as error:
        return chat | {"error": str(error)}
    ids = hf.apply_chat_template(chat["messages"], tokenize=True, return_dict=False, **options)
    assert ids == hf(text, add_special_tokens=False)["input_ids"]
    return chat | {"text": text, "ids": ids}


def main():
    out = Path(sys.argv[1])
    result = {"meta": {
        "transformers": transformers.__version__, "tokenizers": tokenizers.__version__, "jinja2": jinja2.__version__,
        "conventions": "ids: add_special_tokens=False; ids_special: True; decoded: of ids, skip_special_tokens=False and no clean-up; "
        "offsets_byte: of ids in the UTF-8 text (tokens that share a character all cover the whole of it); chats: apply_chat_template, "
        "ids of the rendered text without adding special tokens; error: the template raises"}, "tokenizers": {}}
    for name, make, texts, chats in (("llama3-r1", make_llama3_r1, R1_TEXTS, []), ("qwen3", make_qwen3, CHATML_TEXTS, QWEN_CHATS)):
        folder = out / "tokenizers" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        hf, raw = AutoTokenizer.from_pretrained(folder), Tokenizer.from_file(str(folder / "tokenizer.json"))
        assert hf.is_fast and hf.chat_template
        result["tokenizers"][name] = {
            "class": type(hf).__name__, "vocab_size": len(hf), "bos_token_id": hf.bos_token_id, "eos_token_id": hf.eos_token_id,
            "pad_token_id": hf.pad_token_id, "think": hf.convert_tokens_to_ids(["<think>", "</think>"]),
            "texts": [text_golden(hf, raw, t) for t in TEXTS + texts],
            "chats": [chat_golden(hf, c) for c in CHATS + chats],
        }
        print(name, type(hf).__name__, len(hf), folder.joinpath("tokenizer.json").stat().st_size)
    lines = json.dumps(result, ensure_ascii=True, separators=(",", ":"))
    (out / "tokenizers.json").write_text(lines.replace('{"text":', '\n{"text":').replace('{"name":"', '\n{"name":"') + "\n")


if __name__ == "__main__":
    main()
