"""The time of CoLOR over that of PaperCoLOR (at most 4), and that of ``effort="fast"`` over CoLOR's.

    python benchmarks/default_cost.py [--rows 5000] [--features 384] [--repeats 2]

All are fitted in turn on the same rows (as many source as target rows), on all cores.
"""

from __future__ import annotations

import argparse
import time
import warnings

from openset import CoLOR, PaperCoLOR, make_background_shift
from openset.errors import FitWarning
from openset.shift.synthetic import BackgroundShift


def seconds(model: CoLOR | PaperCoLOR, data: BackgroundShift) -> tuple[float, int]:
    """Seconds of one fit, and its training steps."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        model.fit(data.X, data.y, data.X_target)
    return time.perf_counter() - started, model.n_steps_


def main() -> None:
    """Print the seconds and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    data = make_background_shift(
        n_source=given.rows, n_target=given.rows, n_test=10, n_features=given.features, random_state=0
    )
    PaperCoLOR(max_steps=5).fit(data.X[:200], data.y[:200], data.X_target[:200])  # loads torch
    for repeat in range(given.repeats):
        paper, paper_steps = seconds(PaperCoLOR(random_state=repeat), data)
        default, default_steps = seconds(CoLOR(random_state=repeat), data)
        fast, fast_steps = seconds(CoLOR(effort="fast", random_state=repeat), data)
        print(
            f"PaperCoLOR {paper:.1f} s ({paper_steps} steps)   CoLOR {default:.1f} s ({default_steps} steps), "
            f"{default / paper:.2f} ×   fast {fast:.1f} s ({fast_steps} steps), {fast / default:.3f} of CoLOR",
            flush=True,
        )


if __name__ == "__main__":
    main()
