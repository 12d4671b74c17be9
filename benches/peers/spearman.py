"""One column of f32 against binary labels: our rank sum beside scipy, pandas, polars and packed numpy, on the same numbers.

    python benches/peers/spearman.py [TOKENS] [RUNS]

Peers that are not installed are left out. Times are the least of RUNS, and the median; the file lies in memory for all.
`packed` is the strongest array way there is: key and label in one u64, sorted in place, closed form.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 3


def packed(signal, label):
    bits = (signal + np.float32(0)).view(np.uint32)
    key = np.where(bits >> 31 == 1, ~bits, bits | np.uint32(1 << 31))
    both = (key.astype(np.uint64) << 1) | label
    both.sort()
    values, ones = both >> 1, (both & 1).astype(np.int64)
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    sizes = np.diff(np.append(starts, len(both))).astype(np.int64)
    ones_of = np.add.reduceat(ones, starts)
    n, m = len(both), int(ones.sum())
    twice_rank_sum = int((ones_of * (2 * starts + sizes + 1)).sum())
    ties = sum(int(t) ** 3 - int(t) for t in sizes[sizes > 1])
    return (twice_rank_sum / 2 - m * (n + 1) / 2) / ((n**3 - n - ties) / 12 * m * (n - m) / n) ** 0.5


def peers(signal, label):
    yield "numpy, packed u64", lambda: packed(signal, label)
    try:
        from scipy.stats import spearmanr

        yield "scipy spearmanr", lambda: spearmanr(signal, label).statistic
    except ImportError:
        pass
    try:
        import pandas as pd

        x, y = pd.Series(signal), pd.Series(label)
        yield "pandas rank + corr", lambda: x.rank().corr(y.rank())
    except ImportError:
        pass
    try:
        import polars as pl

        frame = pl.DataFrame({"x": signal, "y": label})
        ranks = [pl.col(c).rank("average").cast(pl.Float64) for c in "xy"]
        yield "polars rank + corr", lambda: frame.select(pl.corr(*ranks)).item()
    except ImportError:
        pass


def main():
    draw = np.random.default_rng(0)
    label = (draw.random(N) < 0.2).astype(np.uint8)
    signal = (draw.lognormal(size=N) + 0.2 * label).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        signal.tofile(Path(folder) / "signal.f32")
        label.tofile(Path(folder) / "label.u8")
        command = ["cargo", "run", "--release", "--offline", "--quiet", "-p", "epikv-stats", "--example", "time_column", "--"]
        if len(sys.argv) > 3:
            command = [sys.argv[3]]  # a binary that is built already
        ours = json.loads(subprocess.run([*command, folder, str(RUNS)], check=True, capture_output=True).stdout)
    print(f"{N} tokens, least of {RUNS} (median), seconds")
    print(f"{'ours, one thread':20} {ours['min_s']:8.3f} ({ours['median_s']:.3f})  rho {ours['rho']:.12f}")
    for name, run in peers(signal, label):
        seconds = []
        for _ in range(RUNS):
            started = time.perf_counter()
            rho = run()
            seconds.append(time.perf_counter() - started)
        assert abs(rho - ours["rho"]) < 1e-9, (name, rho, ours["rho"])
        best = min(seconds)
        print(f"{name:20} {best:8.3f} ({statistics.median(seconds):.3f})  {best / ours['min_s']:.1f} x ours")


main()
