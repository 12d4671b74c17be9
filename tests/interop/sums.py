"""Do pandas, Polars, DuckDB, pyarrow and Hugging Face `datasets` read the same numbers from our files?

    python tests/interop/sums.py FOLDER..

Every Parquet file below the folders is opened by each of them. For each column each says how many values are not null and
what they sum to: numbers and flags as they are, texts by their bytes, lists by their items. Sums must agree within 1e-6 of
the sum of absolute values. Prints a line a file and exits with 1 where something differs.
"""

import math
import os
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TOLERANCE = 1e-6


def in_pyarrow(path):
    def total(column):
        if pa.types.is_string(column.type):
            column = pc.binary_length(column)
        elif pa.types.is_list(column.type):
            column = pc.list_flatten(column)
        return pc.sum(column.cast(pa.float64())).as_py() or 0.0

    table = pq.read_table(path)
    return {name: (len(table) - table[name].null_count, total(table[name])) for name in table.column_names}


def in_pandas(path):
    def total(column):
        values = column.dropna()
        if values.empty:
            return 0.0
        if isinstance(values.iloc[0], str):
            values = values.map(lambda text: len(text.encode()))
        elif isinstance(values.iloc[0], np.ndarray):
            values = values.map(np.sum)
        return float(values.astype("float64").sum())

    frame = pd.read_parquet(path)
    return {name: (int(frame[name].count()), total(frame[name])) for name in frame.columns}


def in_polars(path):
    frame = pl.read_parquet(path)

    def total(name, kind):
        column = pl.col(name)
        if kind == pl.String:
            column = column.str.len_bytes()
        elif isinstance(kind, pl.List):
            column = column.list.sum()
        return frame.select(column.cast(pl.Float64).sum()).item()

    return {name: (frame[name].count(), total(name, kind)) for name, kind in frame.schema.items()}


def in_duckdb(path):
    source = f"read_parquet('{path}')"
    found = {}
    for name, kind, *_ in duckdb.sql(f"describe select * from {source}").fetchall():
        value = {"VARCHAR": f'strlen("{name}")', "INTEGER[]": f'list_sum("{name}")', "BOOLEAN": f'"{name}"::int'}.get(kind, f'"{name}"')
        n, total = duckdb.sql(f'select count("{name}"), sum(({value})::double) from {source}').fetchall()[0]
        found[name] = (n, total or 0.0)
    return found


def in_datasets(path):
    def number(value):
        if isinstance(value, str):
            return len(value.encode())
        return math.fsum(value) if isinstance(value, list) else value

    with tempfile.TemporaryDirectory() as cache:
        columns = datasets.Dataset.from_parquet(str(path), cache_dir=cache)[:]
    values = {name: [value for value in column if value is not None] for name, column in columns.items()}
    return {name: (len(own), math.fsum(map(number, own))) for name, own in values.items()}


READERS = {"pyarrow": in_pyarrow, "pandas": in_pandas, "polars": in_polars, "duckdb": in_duckdb, "datasets": in_datasets}


def size(path):
    """The sum of absolute values of each column: what a difference of sums is held against."""
    table = pq.read_table(path)
    numbers = {name: table[name] for name in table.column_names if pa.types.is_floating(table[name].type)}
    return {name: pc.sum(pc.abs(column.cast(pa.float64()))).as_py() or 0.0 for name, column in numbers.items()}


def compare(path):
    found = {name: read(path) for name, read in READERS.items()}
    want, sizes = found["pyarrow"], size(path)
    wrong = []
    for reader, columns in found.items():
        if list(columns) != list(want):
            wrong.append(f"{reader}: columns {list(columns)}, expected {list(want)}")
            continue
        for name, (n, total) in columns.items():
            most = TOLERANCE * max(sizes.get(name, abs(want[name][1])), 1e-300)
            if n != want[name][0] or not abs(total - want[name][1]) <= most:
                wrong.append(f"{reader}: {name}: {n} values, sum {total!r}, expected {want[name]}")
    return len(want), wrong


def main():
    paths = sorted(path for folder in sys.argv[1:] for path in Path(folder).rglob("*.parquet"))
    datasets.disable_progress_bars()
    all_wrong = 0
    for path in paths:
        n, wrong = compare(path)
        all_wrong += len(wrong)
        print(f"{path.name}: {n} columns, {'the same in all' if not wrong else 'DIFFERENT'}", *wrong, sep="\n  ")
    print(f"{len(paths)} files, {len(READERS)} readers, {all_wrong} differences")
    sys.exit(1 if all_wrong or not paths else 0)


main()
