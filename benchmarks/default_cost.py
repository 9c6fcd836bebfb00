"""What CoLOR's default costs beside one fit by the paper's rule: `python benchmarks/default_cost.py`.

Both on the same rows (5000 + 5000 × 384 by default) and all cores, taking turns. At most 4 is asked.
"""

from __future__ import annotations

import argparse
import time
import warnings

from openset import CoLOR, make_background_shift
from openset.errors import FitWarning
from openset.shift.synthetic import BackgroundShift


def seconds(selection: str, data: BackgroundShift, seed: int) -> tuple[float, int]:
    """Seconds of one fit, and the steps it took."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        model = CoLOR(selection=selection, random_state=seed).fit(data.X, data.y, data.X_target)
    return time.perf_counter() - started, model.n_steps_


def main() -> None:
    """Print both and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    data = make_background_shift(
        n_source=given.rows, n_target=given.rows, n_test=10, n_features=given.features, random_state=0
    )
    CoLOR(selection="paper", max_steps=5).fit(data.X[:200], data.y[:200], data.X_target[:200])  # loads torch
    for repeat in range(given.repeats):
        paper, paper_steps = seconds("paper", data, repeat)
        default, default_steps = seconds("pooled", data, repeat)
        print(
            f"paper's rule {paper:6.1f} s ({paper_steps} steps)   "
            f"default {default:6.1f} s ({default_steps} steps)   ratio {default / paper:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
