"""CoLOR and simple methods on synthetic data and digits: ``make evidence`` writes docs/evidence/foundation.md.

It takes longer than a test should. Methods run with their defaults, nothing is tuned, all numbers are reported.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed, parallel_config
from sklearn.neural_network import MLPClassifier

from openset import __version__, evaluate, make_background_shift
from openset._utils.progress import progress_bar
from openset.errors import FitWarning
from openset.registry import get_method
from openset.shift.digits import digits_problem
from openset.stats.metrics import auprc, auroc

OUT = Path(__file__).parents[1] / "docs" / "evidence"
SEEDS = range(5)
METHODS = ("source_only", "dd", "conop", "color")
COLUMNS = ("AUROC", "AUPRC", "OSCR", "top-1")


def mlp_discriminator(X, X_target, X_test):
    """A discriminator made with scikit-learn alone, for comparison."""
    domain = np.repeat([0, 1], [len(X), len(X_target)])
    model = MLPClassifier((128,), early_stopping=True, random_state=0).fit(np.concatenate([X, X_target]), domain)
    return model.predict_proba(X_test)[:, 1]


def synthetic(seed: int, shift: bool):
    """Rows of make_background_shift, labels, and the labels of the test rows."""
    data = make_background_shift(shift=shift, random_state=seed)
    return data.X, data.y, data.X_target, data.X_test, data.y_test, -1


def digits(seed: int):
    """The demo's problem."""
    p = digits_problem(seed)
    return p.X, p.y, p.X_target, p.X_test, p.y_test, "novel"


PROBLEMS = {
    "make_background_shift, with shift": lambda seed: synthetic(seed, True),
    "make_background_shift, without shift": lambda seed: synthetic(seed, False),
    "digits (the demo)": digits,
}


def one_split(title: str, seed: int) -> dict[str, tuple[float, ...]]:
    """The figures of every method on one split of one problem."""
    X, y, X_target, X_test, y_test, novel = PROBLEMS[title](seed)
    results: dict[str, tuple[float, ...]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        for method in map(get_method, METHODS):
            m = evaluate(method.make(random_state=0).fit(X, y, X_target), X_test, y_test)
            results[method.name] = (m.auroc, m.auprc, m.oscr, m.top1)
    score = mlp_discriminator(X, X_target, X_test)
    results["MLPClassifier"] = (auroc(y_test == novel, score), auprc(y_test == novel, score))
    return results


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    lines = [
        "# CoLOR and simple methods, with their defaults, on synthetic and real background shift",
        "",
        f"Written by `make evidence` with openset {__version__}, torch {torch.__version__}. Mean ± sd over "
        f"{len(SEEDS)} seeds, on test rows.",
        "`MLPClassifier` is a discriminator made with scikit-learn alone.",
    ]
    jobs = [(title, seed) for title in PROBLEMS for seed in SEEDS]
    splits: dict[tuple[str, int], dict[str, tuple[float, ...]]] = {}
    with progress_bar("evidence") as update, parallel_config(backend="loky", inner_max_num_threads=1):
        update(0, len(jobs), "")
        runs = Parallel(n_jobs=os.cpu_count(), return_as="generator")(delayed(one_split)(*job) for job in jobs)
        for job, result in zip(jobs, runs, strict=True):
            splits[job] = result
            update(len(splits), len(jobs), job[0])
    for title in PROBLEMS:
        lines += ["", f"## {title}", "", f"| method | {' | '.join(COLUMNS)} |", "|---" * 5 + "|"]
        for name in splits[title, SEEDS[0]]:
            values = np.array([splits[title, seed][name] for seed in SEEDS])
            cells = [f"{v.mean():.3f} ± {v.std():.3f}" for v in values.T]
            lines.append(f"| {name} | {' | '.join(cells + ['–'] * (4 - len(cells)))} |")
    (OUT / "foundation.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
