"""What a fit on a sample loses: 10⁴, 10⁵ and 10⁶ rows a side of problems with a known truth.

    python benchmarks/sample_size.py [--out sample_size.jsonl] [--report]

A problem is drawn once with 1.1 million rows a side. A fit takes the first rows of source and of target; as rows
are independent, they are a sample. Every fit is judged on the same 100 000 target rows, which no fit has. Lines
are appended to ``--out``, and what is there is not computed again. ``--report`` writes the table of them to
docs/evidence/sample_size.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gaussian_subtypes import Setting, draw
from openset import CoLOR, make_background_shift
from openset.errors import FitWarning
from openset.stats.metrics import auprc

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "sample_size.md"
SIZES, HELD = (10_000, 100_000, 1_000_000), 100_000
FRACTIONS, DISTANCES = (0.001, 0.01, 0.05), (4.0, 6.0)
SEEDS = 2
FULL = (
    ("background shift", 0.01, 0.0),
    ("subtypes", 0.01, 6.0),
    ("subtypes", 0.05, 4.0),
    ("subtypes", 0.01, 4.0),
)
LARGE = FULL[:2]
"""Problems of fits with effort="full", and those of them with one on 10⁶ rows, which takes a quarter of an hour."""


@dataclass(frozen=True)
class Problem:
    """Rows to sample from, and target rows to judge on."""

    X: np.ndarray
    y: np.ndarray
    X_target: np.ndarray
    held: np.ndarray
    is_new: np.ndarray
    oracle: float | None


def make(kind: str, fraction: float, distance: float, seed: int) -> Problem:
    """Gaussian subtypes with a density ratio of 8, or the library's own background shift."""
    if kind == "subtypes":
        made = draw(Setting("sample size", seed, SIZES[-1] + HELD, 20, fraction, 8.0, distance))
        X, X_target = made.X.astype(np.float32), made.X_target.astype(np.float32)
        is_new, y, oracle = made.is_new, made.y, made.oracle_auprc
        return Problem(X, y, X_target[:-HELD], X_target[-HELD:], is_new[-HELD:], oracle)
    shift = make_background_shift(
        n_source=SIZES[-1], n_target=SIZES[-1], n_test=HELD, n_features=50, novel_fraction=fraction,
        random_state=seed,
    )  # fmt: skip
    X, X_target, held = (part.astype(np.float32) for part in (shift.X, shift.X_target, shift.X_test))
    return Problem(X, shift.y, X_target, held, shift.is_novel_test, None)


def wanted() -> Iterator[tuple[str, float, float, int, str, int]]:
    """Kind, fraction, distance, seed, effort and rows of every fit, the quick ones first."""
    kinds = [("subtypes", fraction, distance) for fraction in FRACTIONS for distance in DISTANCES]
    kinds += [("background shift", fraction, 0.0) for fraction in FRACTIONS[1:]]
    yield from ((*kind, seed, "fast", rows) for kind in kinds for seed in range(SEEDS) for rows in SIZES)
    yield from ((*kind, seed, "full", rows) for kind in FULL for seed in range(SEEDS) for rows in SIZES[:2])
    yield from ((*kind, 0, "full", SIZES[-1]) for kind in LARGE)


def fit(problem: Problem, rows: int, effort: str, seed: int) -> dict[str, float]:
    model = CoLOR(effort=effort, random_state=seed)
    started = time.process_time()
    model.fit(problem.X[:rows], problem.y[:rows], problem.X_target[:rows])
    took = time.process_time() - started
    drawn = int(model.n_steps_) * model.batch_size
    return {
        "auprc": auprc(problem.is_new, model.novelty_score(problem.held)),
        "low": model.novel_fraction_.low,
        "share": float(problem.is_new.mean()),
        "oracle": problem.oracle,
        "seconds": took,
        "drawn": drawn,
        "called": float((model.novelty_score(problem.held) > model.threshold_).mean()),
        "code": model.novelty_test_.code,
    }


def measure(out: Path) -> None:
    """Append a line for every fit that is not there yet."""
    lines = out.read_text().splitlines() if out.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    last, problem = None, None
    for *made, effort, rows in wanted():
        key = (*made, effort, rows)
        if key in done:
            continue
        if last != made:
            last, problem = made, make(*made)
        found = fit(problem, rows, effort, made[-1])
        with out.open("a") as file:
            file.write(json.dumps({"key": key, **found}) + "\n")
        print(key, found, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("sample_size.jsonl"))
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", FitWarning)
    measure(asked.out)
