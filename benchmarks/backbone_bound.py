"""Which bound of the multipliers should ``CoLOR(backbone=…)`` have? AUPRC and top-1 on images of digits.

    python benchmarks/backbone_bound.py [--bounds .05 .1 .2 .4 1] [--seeds 10 11 12 13 14 15] [--steps 300]

Nines are the new class, 10 % of the target, with background shift. A ResNet18 of width 4 learns
from scratch. Seeds 10 and up are for development: the default was chosen on them, and looked at on others.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from openset import CoLOR
from openset.bench.problems import build_problem
from openset.stats.metrics import auprc


def as_images(rows: np.ndarray) -> np.ndarray:
    """Digits as grey images with the three channels that a ResNet18 takes."""
    return np.repeat(rows.reshape(-1, 1, 8, 8), 3, axis=1).astype(np.float32)


def main() -> None:
    """Print a line for each bound: the mean over splits, and every split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bounds", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.4, 1.0])
    parser.add_argument("--sharpness", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12, 13, 14, 15])
    parser.add_argument("--steps", type=int, default=300)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for bound in given.bounds:
        found, top1, started = [], [], time.process_time()
        for seed in given.seeds:
            data = build_problem("digits", "shift", "9", seed, None, novel_fraction=0.1)
            images, target, test = map(as_images, (data.X, data.X_target, data.X_test))
            model = CoLOR(
                backbone="resnet18(width=4)",
                groups=[(bound, 0.0, given.sharpness)],
                max_steps=given.steps,
                evaluate_every=given.steps // 12,
                batch_size=64,
                random_state=seed,
            ).fit(images, data.y, target)
            is_new = data.y_test == data.novel_label
            found.append(auprc(is_new, model.novelty_score(test)))
            top1.append(float((model.predict_known(test) == data.y_test)[~is_new].mean()))
        spread = " ".join(f"{value:.2f}" for value in found)
        seconds = (time.process_time() - started) / len(found)
        means = f"AUPRC {np.mean(found):.3f} ({spread})   top-1 {np.mean(top1):.3f}"
        print(f"bound {bound:<5g} {means}   {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
