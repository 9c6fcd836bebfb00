"""CoLOR(effort="fast") on the suite: mean AUPRC of every cell, to hold against docs/results/suite.md.

    python benchmarks/effort.py --data ../shared/data [--seeds 0 8 103 573 1057] [--group .1 .2 1]

``--group`` tries another group (bound, dropout, sharpness) than the default; on development seeds (10 and up)
that is how the default's was chosen.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from openset import CoLOR
from openset.bench.problems import build_problem
from openset.bench.spec import load_spec
from openset.errors import FitWarning
from openset.shift import PAPER_SEEDS
from openset.stats.metrics import auprc


def main() -> None:
    """Print a line for each cell, and the mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the stand-ins, see docs/data.md")
    parser.add_argument("--seeds", type=int, nargs="+", default=PAPER_SEEDS)
    parser.add_argument("--group", type=float, nargs=3, metavar=("BOUND", "DROPOUT", "SHARPNESS"))
    given = parser.parse_args()
    groups = "auto" if given.group is None else [tuple(given.group)]
    warnings.simplefilter("ignore", FitWarning)
    means = []
    for cell in load_spec("suite").problems:
        found, seconds = [], 0.0
        for seed in given.seeds:
            data = build_problem(
                cell.dataset, cell.settings[0], cell.novel[0], seed, given.data, **dict(cell.options)
            )
            started = time.process_time()
            model = CoLOR(effort="fast", groups=groups, random_state=seed).fit(data.X, data.y, data.X_target)
            seconds += time.process_time() - started
            found.append(auprc(data.y_test == data.novel_label, model.novelty_score(data.X_test)))
        means.append(np.mean(found))
        title = cell.title + (", no shift" if cell.settings[0] == "no-shift" else "")
        print(f"{title:44} {means[-1]:.3f}   {seconds / len(found):5.1f} s", flush=True)
    print(f"{'mean':44} {np.mean(means):.3f}")


if __name__ == "__main__":
    main()
