"""A run with eight weekly batches: three without a new class, then one that grows; the eighth moved."""

from __future__ import annotations

import numpy as np

from product_files import fit_problem, frame, make_rows

NEW = (0, 0, 0, 6, 12, 24, 40)


def write_weeks(folder):
    """source.parquet, target.parquet, run and week-1.parquet to week-8.parquet in a folder."""
    random = np.random.default_rng(1)
    X, y = make_rows(random, {"cat": 600, "dog": 600})
    frame(X, kind=y, rid=[f"s{i}" for i in range(len(X))]).to_parquet(folder / "source.parquet")
    X, _ = make_rows(random, {"cat": 120, "dog": 240, "new": 5})
    frame(X, rid=[f"t{i}" for i in range(len(X))]).to_parquet(folder / "target.parquet")
    for week, new in enumerate(NEW, 1):
        X, _ = make_rows(random, {"cat": 120 + 30 * (week % 3), "dog": 280 - 30 * (week % 3), "new": new})
        frame(X, rid=[f"w{week}-{i}" for i in range(len(X))]).to_parquet(folder / f"week-{week}.parquet")
    X, _ = make_rows(random, {"cat": 200, "dog": 200})
    frame(X + 20, rid=[f"m{i}" for i in range(len(X))]).to_parquet(folder / "week-8.parquet")
    fit_problem(folder).save(folder / "run")
