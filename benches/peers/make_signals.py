"""Files of signals and labels as `epikv trace`, `label` and `correlate` write them, of any size, made up from a seed.

    python benches/peers/make_signals.py FOLDER TOKENS LAYERS TRACES

Writes traces.parquet, label_traces.parquet, label_tokens.parquet and signals_hs.parquet (`hs_l2` alone), a trace at a time.
Labels come in runs of 16 tokens; signals are long-tailed steps of noise that important tokens raise in the lower half of the
layers and lower in the upper half.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_PROMPT = 64
GROUP_ROWS = 128 * 1024


def metadata(schema):
    made_by = {"id": "made-up", "config": {"n_layers": int(sys.argv[3])}}
    return {"epi.schema": json.dumps(schema), "epi.model": json.dumps(made_by)}


def writer(folder, name, version, fields, **options):
    schema = pa.schema(fields, metadata=metadata(f"{name}/{version}"))
    return pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="zstd", compression_level=3, **options)


def main():
    folder, n, n_layers, n_traces = Path(sys.argv[1]), *(int(float(a)) for a in sys.argv[2:5])
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    lengths = np.full(n_traces, n // n_traces)
    lengths[: n % n_traces] += 1
    names = [f"t{i:05}" for i in range(n_traces)]
    text, i32, flag = pa.string(), pa.int32(), pa.bool_()
    key = [("trace_id", text), ("pos", i32), ("token_id", i32)]
    columns = [f"hs_l2_l{layer:02}" for layer in range(n_layers)]
    signals = writer(
        folder, "signals_hs", "1.1", key + [(c, pa.float32()) for c in columns],
        use_dictionary=["trace_id"], column_encoding={c: "BYTE_STREAM_SPLIT" for c in columns},
    )  # fmt: skip
    labels = writer(
        folder, "label_tokens", "1.0",
        key + [("region", text), ("tested", flag), ("important", flag), ("n_cover", pa.int16()), ("n_flip", pa.int16())],
    )  # fmt: skip
    token_ids, held, rows = [], [], 0
    for name, length in zip(names, lengths):
        one = np.repeat(draw.random(length // 16 + 1) < 0.2, 16)[:length]
        tested = np.arange(length) >= N_PROMPT
        ids = draw.integers(0, 30_000, length, dtype=np.int32)
        token_ids.append(ids)
        shared = [pa.array([name] * length), pa.array(np.arange(length, dtype=np.int32)), pa.array(ids)]
        undefined = np.arange(length) == 0
        series = []
        for layer in range(n_layers):
            shift = np.float32(0.2 if layer < n_layers / 2 else -0.2) * one
            step = np.exp(draw.standard_normal(length, dtype=np.float32) * np.float32(0.5) + shift)
            series.append(pa.array(step, mask=undefined))
        cover = np.where(tested, 2, 0).astype(np.int16)
        labels.write_table(
            pa.table(
                shared
                + [pa.array(np.where(tested, "reason", "prompt")), pa.array(tested), pa.array(one, mask=~tested)]
                + [pa.array(cover), pa.array((cover * one).astype(np.int16))],
                schema=labels.schema,
            )
        )
        if held and rows + length > GROUP_ROWS:
            signals.write_table(pa.concat_tables(held), row_group_size=max(rows, GROUP_ROWS))
            held, rows = [], 0
        held.append(pa.table(shared + series, schema=signals.schema))
        rows += length
    signals.write_table(pa.concat_tables(held), row_group_size=max(rows, GROUP_ROWS))
    signals.close()
    labels.close()
    write_traces(folder, names, token_ids)


def write_traces(folder, names, token_ids):
    lengths = [len(ids) for ids in token_ids]
    n = len(names)
    fixed = {
        "dataset": "made", "problem": "", "boundary_kind": "think_end", "n_think_end": 1, "text": "", "verdict": "no_gold",
        "finish_reason": "eos", "sample": 0, "n_prompt": N_PROMPT, "reason_start": N_PROMPT, "n_answer": 0,
    }  # fmt: skip
    traces = {
        "trace_id": names, "problem_id": names,
        "n_reason": [length - N_PROMPT for length in lengths], "boundary": lengths,
    }  # fmt: skip
    columns = {name: pa.array(values, pa.string() if isinstance(values[0], str) else pa.int32()) for name, values in traces.items()}
    for name, value in fixed.items():
        columns[name] = pa.array([value] * n, pa.string() if isinstance(value, str) else pa.int32())
    columns["token_ids"] = pa.array(token_ids, pa.list_(pa.int32()))
    columns["seed"] = pa.array([0] * n, pa.int64())
    columns |= {name: pa.array([value] * n, pa.float32()) for name, value in [("temperature", 0.0), ("top_p", 1.0)]}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata("traces/1.0")), folder / "traces.parquet")

    own = {
        "trace_id": names, "dataset": ["made"] * n, "problem_id": names, "control_outcome": ["same"] * n,
        "boundary_kind": ["think_end"] * n, "control_text": [""] * n,
    }  # fmt: skip
    table = {name: pa.array(values) for name, values in own.items()}
    table["usable"] = pa.array([True] * n)
    for name in ["n_windows", "n_flipped", "n_undefined", "n_reason", "control_n_new"]:
        table[name] = pa.array([0] * n, pa.int32())
    pq.write_table(pa.table(table).replace_schema_metadata(metadata("label_traces/1.0")), folder / "label_traces.parquet")


main()
