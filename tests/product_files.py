"""Small source, target and labelled files with a new class that any method finds."""

from __future__ import annotations

import numpy as np
import pandas as pd

NAMES = ("width", "height", "weight")


def frame(X, **columns):
    return pd.DataFrame({**dict(zip(NAMES, np.asarray(X).T, strict=True)), **columns})


def make_rows(random, counts):
    """Rows of two known kinds, and of a new one far from both."""
    centres = {"cat": (0, 0, 0), "dog": (4, 0, 0), "new": (0, 9, 9)}
    kinds = np.repeat(list(counts), list(counts.values()))
    X = np.stack([random.normal(centres[kind], 0.5) for kind in kinds])
    order = random.permutation(len(kinds))
    return X[order], kinds[order]


def fit_problem(folder):
    """A quick run on source.parquet and target.parquet of a folder."""
    import openset

    return openset.run(
        folder / "source.parquet",
        folder / "target.parquet",
        label="kind",
        id="rid",
        method="mahalanobis",
        parameters={"validation_fraction": 0.4},
    )


def write_problem(folder):
    """source.parquet, target.parquet, target.csv, target.npz and labelled.csv."""
    random = np.random.default_rng(0)
    X, y = make_rows(random, {"cat": 300, "dog": 300})
    frame(X, kind=y, rid=[f"s{i}" for i in range(len(X))], town="Rome").to_parquet(folder / "source.parquet")
    X, _ = make_rows(random, {"cat": 120, "dog": 240, "new": 40})
    target = frame(X, rid=[f"t{i}" for i in range(len(X))])
    target.to_parquet(folder / "target.parquet")
    target.to_csv(folder / "target.csv", index=False)
    np.savez(folder / "target.npz", **{name: target[name].to_numpy() for name in NAMES},
             rid=target["rid"].to_numpy().astype(str))  # fmt: skip
    X, y = make_rows(random, {"cat": 50, "dog": 50, "new": 30})
    frame(X, kind=y, rid=[f"z{i}" for i in range(len(X))]).to_csv(folder / "labelled.csv", index=False)
