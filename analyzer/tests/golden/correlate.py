"""Makes correlate.json: coefficients of made-up traces by NumPy, SciPy and pandas.

    python correlate.py > correlate.json

Smoothed series are two-pass over each window in f64, stored as f32 as the toolkit does, and held against pandas here.
"""

import json
import sys

import numpy
import pandas
import scipy
from scipy import stats

WINDOW, PROMPT, LENGTHS = 16, 12, [61, 75, 90, 58, 120, 83]
random = numpy.random.default_rng(20)


def trace(i, n):
    trend = 0.02 * i * numpy.arange(n)
    layers = [
        numpy.cumsum(random.normal(size=n)) * 0.3 + trend + i,
        random.integers(0, 9, size=n).astype(float) + i,  # ties within and across traces
    ]
    layers = [x.astype(numpy.float32) for x in layers]
    labels = [None] * PROMPT
    while len(labels) < n:
        hot = random.random() < 0.35 + 0.05 * i
        labels += [bool(hot)] * int(random.integers(4, 12))
    labels = labels[:n]
    labels[PROMPT + 3] = None
    if i == 3:
        labels = [None if x is None else True for x in labels]  # constant label: left out
    return layers, labels


def smooth(x, name):
    x = x.astype(float)
    if name == "raw":
        return x.astype(numpy.float32)
    if name == "ema":
        decay = max(0.0, 1 - 6.4 / WINDOW)
        out = pandas.Series(x).ewm(alpha=1 - decay, adjust=False).mean().to_numpy()
        return out.astype(numpy.float32)
    windows = [x[max(0, t - WINDOW + 1) : t + 1] for t in range(len(x))]
    rolling = pandas.Series(x).rolling(WINDOW, min_periods=1)
    mean = numpy.array([w.mean() for w in windows])
    assert numpy.allclose(mean, rolling.mean())
    if name == "mean":
        return mean.astype(numpy.float32)
    sd = numpy.array([w.std() for w in windows])
    assert numpy.allclose(sd, rolling.std(ddof=0), atol=1e-7)
    z = numpy.where(numpy.arange(len(x)) == 0, 0.0, (x - mean) / (sd + 1e-6))
    return z.astype(numpy.float32)


def auc(x, y):
    u = stats.mannwhitneyu(x[y].astype(float), x[~y].astype(float)).statistic
    return u / (y.sum() * (~y).sum())


def rho(x, y):
    return float(stats.spearmanr(x.astype(float), y.astype(float)).statistic)


def lag1(x):
    x = x.astype(float) - x.astype(float).mean()
    return float((x[:-1] * x[1:]).sum() / (x * x).sum())


def figures(series):
    usable = [(x, y) for x, y in series if 0 < y.sum() < len(y)]
    assert len(usable) == len(LENGTHS) - 1
    x, y = (numpy.concatenate(parts) for parts in zip(*usable))
    rhos = numpy.array([rho(a, b) for a, b in usable])
    z, n_eff = numpy.arctanh(rhos), len(usable)
    half = stats.t.ppf(0.975, n_eff - 1) * z.std(ddof=1) / numpy.sqrt(n_eff)
    pooled = rho(x, y)
    fisher = stats.norm.ppf(0.975) / numpy.sqrt(n_eff - 3)
    some_counts = [[2, 0, 1, 1, 1], [0, 0, 5, 0, 0], [1, 1, 1, 1, 1], [3, 1, 0, 0, 1]]

    def taken(counts):
        parts = [part for part, count in zip(usable, counts) for _ in range(count)]
        return rho(*(numpy.concatenate(p) for p in zip(*parts)))

    return {
        "n_tokens": len(y),
        "n_eff": n_eff,
        "base_rate": float(y.mean()),
        "pooled": {
            "rho": pooled,
            "auc": float(auc(x, y)),
            "ci": [float(numpy.tanh(numpy.arctanh(pooled) + s * fisher)) for s in (-1, 1)],
            "jackknife": [taken([int(i != left) for i in range(n_eff)]) for left in range(n_eff)],
        },
        "multiplicities": [[counts, taken(counts)] for counts in some_counts],
        "within": {
            "rho": float(numpy.tanh(z.mean())),
            "auc": float(numpy.mean([auc(a, b) for a, b in usable])),
            "ci": [float(numpy.tanh(z.mean() + s * half)) for s in (-1, 1)],
            "jackknife": [float(numpy.tanh(numpy.delete(z, left).mean())) for left in range(n_eff)],
        },
        "rho_median_trace": float(numpy.median(rhos)),
        "share_positive": float((rhos > 0).mean()),
        "rho_by_trace": [rho(a, b) if 0 < b.sum() < len(b) else None for a, b in series],
        "rho_pos": [rho(a, numpy.arange(len(a))) for a, _ in series],
        "lag1": [lag1(a) for a, _ in series],
    }


traces = [trace(i, n) for i, n in enumerate(LENGTHS)]
cases = []
for layer in (0, 1):
    for smoothing in ("raw", "mean", "ema", "z"):
        series = []
        for layers, labels in traces:
            decoded = smooth(layers[layer][PROMPT:], smoothing)
            labels = labels[PROMPT:]
            keep = numpy.array([label is not None for label in labels])
            series.append((decoded[keep], numpy.array([bool(label) for label in labels])[keep]))
        cases.append({"layer": layer, "smoothing": smoothing, **figures(series)})

versions = {m.__name__: m.__version__ for m in (numpy, scipy, pandas)}
json.dump(
    {
        "made_by": {"script": "correlate.py", "python": sys.version.split()[0], **versions},
        "window": WINDOW,
        "n_prompt": PROMPT,
        "traces": [{"layers": [x.tolist() for x in layers], "labels": labels} for layers, labels in traces],
        "cases": cases,
    },
    sys.stdout,
    indent=None,
    separators=(",", ":"),
)
print()
