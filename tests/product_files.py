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


def write_large(folder):
    """A source and a target of several parts each, to fit on a sample of them: folders source and target.

    The source has a rare class of 12 rows; the target has 160 new rows.
    """
    random = np.random.default_rng(1)
    X, y = make_rows(random, {"cat": 1500, "dog": 1488})
    X, y = np.concatenate([X, X[:12] + np.array([0, -6, 0])]), np.concatenate([y, ["owl"] * 12])
    order = random.permutation(len(X))
    source = frame(X[order], kind=y[order], rid=[f"s{i}" for i in range(len(X))])
    X, y = make_rows(random, {"cat": 640, "dog": 1200, "new": 160})
    target = frame(X, rid=[f"t{i}" for i in range(len(X))], note=[f"note {i}" for i in range(len(X))])
    for name, whole in (("source", source), ("target", target)):
        (folder / name).mkdir(parents=True)
        for number, part in enumerate(np.array_split(np.arange(len(whole)), 4)):
            whole.iloc[part].to_parquet(folder / name / f"part-{number}.parquet")
    return y == "new"


SAMPLED = {
    "label": "kind", "id": "rid", "method": "mahalanobis", "fit_rows": 500, "fpr": 0.02,
    "parameters": {"validation_fraction": 0.4},
}  # fmt: skip
"""Settings of a run that is fitted on a sample of these rows."""


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
