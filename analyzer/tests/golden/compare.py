"""Makes compare.json: two signals against the same labels, by NumPy and SciPy.

    python compare.py > compare.json

Coefficients and Wilcoxon's test are SciPy's. The three tests for dependent correlations are written out from the papers:
Williams' t as in Steiger 1980 (Psychological Bulletin 87:245), equation 7; Meng, Rosenthal & Rubin 1992 (Psychological
Bulletin 111:172), equations 1-3; Steiger 1980, equation 14 with averaged r. The sign-flip test counts all sign patterns.
"""

import itertools
import json
import sys

import numpy
import scipy
from scipy import stats

random = numpy.random.default_rng(6)
LENGTHS = [40, 55, 61, 38, 90, 47, 72, 50, 66]


def trace(i, n):
    labels = numpy.repeat(random.random(n // 5 + 1) < 0.4, 5)[:n]
    shared = random.normal(size=n)
    a = shared + random.normal(size=n) + 0.9 * labels
    b = numpy.round(shared + random.normal(size=n) + 0.4 * labels, 1)  # ties
    a[2] = b[3] = numpy.nan  # left out of both
    if i == 4:
        labels[:] = True  # constant label: left out
    return a.astype(numpy.float32), b.astype(numpy.float32), labels


def williams(a, b, ab, n):
    det = 1 - a**2 - b**2 - ab**2 + 2 * a * b * ab
    mean = (a + b) / 2
    t = (a - b) * numpy.sqrt((n - 1) * (1 + ab) / (2 * (n - 1) / (n - 3) * det + mean**2 * (1 - ab) ** 3))
    return t, 2 * stats.t.sf(abs(t), n - 3)


def meng(a, b, ab, n):
    q = (a**2 + b**2) / 2
    f = min(1, (1 - ab) / (2 * (1 - q)))
    z = (numpy.arctanh(a) - numpy.arctanh(b)) * numpy.sqrt((n - 3) / (2 * (1 - ab) * (1 - f * q) / (1 - q)))
    return z, 2 * stats.norm.sf(abs(z))


def steiger(a, b, ab, n):
    r2 = ((a + b) / 2) ** 2
    psi = ab * (1 - 2 * r2) - r2 * (1 - 2 * r2 - ab**2) / 2
    z = (numpy.arctanh(a) - numpy.arctanh(b)) * numpy.sqrt((n - 3) / (2 - 2 * psi / (1 - r2) ** 2))
    return z, 2 * stats.norm.sf(abs(z))


def main():
    traces = [trace(i, n) for i, n in enumerate(LENGTHS)]
    z, tokens = [], 0
    for a, b, y in traces:
        ok = ~(numpy.isnan(a) | numpy.isnan(b))
        if y[ok].all():
            continue
        rho = lambda p, q: stats.spearmanr(p[ok].astype(float), q[ok].astype(float)).statistic
        z.append([numpy.arctanh(r) for r in (rho(a, y), rho(b, y), rho(a, b))])
        tokens += int(ok.sum())
    z = numpy.array(z)
    d = z[:, 0] - z[:, 1]
    flips = [abs(numpy.dot(s, d)) >= abs(d.sum()) - 1e-12 for s in itertools.product([-1, 1], repeat=len(d))]
    a, b, ab = numpy.tanh(z.mean(0))
    tests = {name: of(a, b, ab, len(d)) for name, of in [("williams", williams), ("meng", meng), ("steiger", steiger)]}
    values = lambda x: [None if numpy.isnan(v) else float(v) for v in x]
    golden = {
        "meta": {"numpy": numpy.__version__, "scipy": scipy.__version__},
        "traces": [{"a": values(a), "b": values(b), "labels": [bool(v) for v in y]} for a, b, y in traces],
        "n_traces": len(d),
        "n_tokens": tokens,
        "rho": [a, b, ab],
        "difference": d.mean(),
        "n_larger": int((d > 0).sum()),
        "p_signed_rank": stats.wilcoxon(d, method="exact").pvalue,
        "p_sign_flip": float(numpy.mean(flips)),
        "tests": {name: [float(t), float(p)] for name, (t, p) in tests.items()},
    }
    json.dump(golden, sys.stdout)
    print()


main()
