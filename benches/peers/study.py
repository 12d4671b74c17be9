"""Many columns of signals against labels, pooled and within traces, from Parquet to coefficients: `epikv correlate` beside
the obvious polars and pandas scripts, on the same files.

    python benches/peers/study.py EPIKV FOLDER [RUNS] [PEER,..]

FOLDER is one that `make_signals.py` wrote (the goals are about `make_signals.py FOLDER 1e6 128 100`). Each contestant is a
process of its own and is run RUNS times, one after another; medians of its seconds from start to end are printed, and the
most memory that it ever held. Ours is run with `--rho-only`, which is what the peers compute, and with all of its figures;
both write their files and draw. Peers: polars, lazy (polars that scans lazily, a column at a time), pandas. Coefficients
must agree.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

KEY = ["trace_id", "pos"]


def in_polars(folder):
    import polars as pl

    labels = pl.read_parquet(folder / "label_tokens.parquet", columns=[*KEY, "tested", "important"])
    tokens = pl.read_parquet(folder / "signals_hs.parquet").join(labels, on=KEY)
    tokens = tokens.filter(pl.col("tested") & pl.col("important").is_not_null()).with_columns(pl.col("important").cast(pl.Float64))
    columns = [name for name in tokens.columns if name.startswith("hs_l2_")]
    rho = [pl.corr(pl.col(name).cast(pl.Float64), "important", method="spearman").alias(name) for name in columns]
    pooled = tokens.select(rho)
    within = tokens.group_by("trace_id").agg(rho).select(pl.col(columns).arctanh().mean().tanh())
    return columns, pooled.row(0), within.row(0)


def in_polars_lazily(folder):
    import polars as pl

    signals, labels = (pl.scan_parquet(folder / f"{name}.parquet") for name in ["signals_hs", "label_tokens"])
    columns = [name for name in signals.collect_schema().names() if name.startswith("hs_l2_")]
    usable = labels.filter(pl.col("tested") & pl.col("important").is_not_null())
    usable = usable.select(*KEY, pl.col("important").cast(pl.Float64))
    pooled, within = [], []
    for name in columns:
        tokens = signals.select(*KEY, pl.col(name).cast(pl.Float64)).join(usable, on=KEY).collect(engine="streaming")
        rho = pl.corr(name, "important", method="spearman")
        pooled.append(tokens.select(rho).item())
        within.append(tokens.group_by("trace_id").agg(rho).select(pl.col(name).arctanh().mean().tanh()).item())
    return columns, pooled, within


def in_pandas(folder):
    import pandas as pd

    labels = pd.read_parquet(folder / "label_tokens.parquet", columns=[*KEY, "tested", "important"])
    tokens = pd.read_parquet(folder / "signals_hs.parquet").merge(labels, on=KEY)
    tokens = tokens[tokens["tested"] & tokens["important"].notna()]
    label = tokens["important"].astype(float)
    columns = [name for name in tokens.columns if name.startswith("hs_l2_")]
    pooled = tokens[columns].rank().corrwith(label.rank())
    by_trace = tokens.groupby("trace_id")
    within = by_trace[columns].rank().groupby(tokens["trace_id"]).corrwith(by_trace["important"].rank())
    return columns, list(pooled), list(np.tanh(np.arctanh(within[columns]).mean()))


PEERS = {"polars": in_polars, "lazy": in_polars_lazily, "pandas": in_pandas}


def ours(epikv, folder, out):
    paths = ["--recorded", folder, "--traces", folder / "traces.parquet", "--labels", folder, "--out", out]
    return [epikv, "correlate", *paths, "--smooth", "raw", "--bootstrap", "0", "--surrogates", "0", "--fresh", "--quiet"]


def coefficients(out):
    import pyarrow.parquet as pq

    rows = pq.read_table(out / "correlations.parquet").to_pylist()
    rows = [row for row in rows if row["signal"] == "hs_l2"]
    of = {scope: {row["layer"]: row["rho"] for row in rows if row["scope"] == scope} for scope in ["pooled", "within"]}
    return [[of[scope][layer] for layer in sorted(of[scope])] for scope in ["pooled", "within"]]


def timed(command):
    """Seconds and the most memory in GiB of a process of its own."""
    started = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, errors.decode()
    return time.perf_counter() - started, usage.ru_maxrss / 2**20


def main():
    epikv, folder, runs = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3
    peers = sys.argv[4].split(",") if len(sys.argv) > 4 else list(PEERS)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        own = ours(epikv, folder, scratch / "out")
        commands = {"rho only": [*own, "--rho-only"], "all figures": own}
        commands |= {name: [sys.executable, "-W", "ignore", __file__, "--one", name, folder, scratch / name] for name in peers}
        measured = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                measured[name].append(timed(command))
        want = coefficients(scratch / "out")
        for name in peers:
            got = json.loads((scratch / name).read_text())
            worst = np.abs(np.array(got) - np.array(want)).max()
            assert worst < 1e-9, (name, worst)
    print(f"{len(want[0])} columns, median of {runs} runs in seconds (least to most), most memory")
    own = statistics.median(seconds for seconds, _ in measured["rho only"])
    for name, found in measured.items():
        seconds = sorted(seconds for seconds, _ in found)
        median = statistics.median(seconds)
        spread = f"({seconds[0]:.2f} to {seconds[-1]:.2f})"
        print(f"{name:16} {median:8.2f} {spread:20} {max(gib for _, gib in found):6.2f} GiB  {median / own:5.1f} x ours")


if sys.argv[1] == "--one":
    _, pooled, within = PEERS[sys.argv[2]](Path(sys.argv[3]))
    Path(sys.argv[4]).write_text(json.dumps([list(pooled), list(within)]))
else:
    main()
