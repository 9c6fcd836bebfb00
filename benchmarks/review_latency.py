"""From a key press to the next row at 100 000 target rows, in a browser; and how long learning the ranking takes.

    python benchmarks/review_latency.py [--rows 100000] [--answers 60]

Beside the times: the same key press on a target of 1000 rows, measured in the same run, so that the ratio tells
what the rows cost, whatever the machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import openset
from openset._version import __version__
from openset.review.learn import gather_evidence, learn_ranking

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "review")]

from serving import Serving  # noqa: E402

from browser import Browser, find_chromium  # noqa: E402

OUT = ROOT / "docs" / "evidence" / "review_latency.md"
PRESS = """new Promise(done => {
  const before = document.body.dataset.moves, start = performance.now();
  new MutationObserver((_, watching) => {
    if (document.body.dataset.moves === before) return;
    watching.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
  }).observe(document.body, {attributes: true});
  dispatchEvent(new KeyboardEvent("keydown", {key: KEY}));
})"""


def write_run(folder: Path, n_rows: int, n_columns: int = 16) -> Path:
    """A run on a target of so many rows, one in twenty of them new."""
    random = np.random.default_rng(0)
    names = [f"x{i}" for i in range(n_columns)]
    source = pd.DataFrame(random.normal(size=(4000, n_columns)), columns=names)
    source["kind"] = random.choice(["a", "b", "c"], 4000)
    target = pd.DataFrame(random.normal(size=(n_rows, n_columns)), columns=names)
    target.loc[: n_rows // 20, "x0"] += 6
    source.to_parquet(folder / "source.parquet")
    target.to_parquet(folder / "target.parquet")
    result = openset.run(folder / "source.parquet", folder / "target.parquet", label="kind", method="mahalanobis")
    result.save(folder / "run")
    return folder / "run"


def press_keys(run: Path, answers: int) -> dict[str, list[float]]:
    """Milliseconds until the next row is painted, in each queue; every third key is n, the others k."""
    found: dict[str, list[float]] = {}
    with Serving(run) as serving, Browser(find_chromium()) as browser, browser.open(serving.url) as page:
        page.wait("document.body.dataset.shown !== undefined", 120)
        for queue, key in (("Estimate", "e"), ("Explore", "x")):
            page.run(PRESS.replace("KEY", repr(key)))
            found[queue] = [
                page.run(PRESS.replace("KEY", repr("n" if i % 3 == 0 else "k"))) for i in range(answers)
            ]
    return found


def learning_seconds(n_rows: int = 5000, n_columns: int = 384, answers: int = 200) -> tuple[float, float]:
    """Seconds to prepare the rows, once, and to learn the ranking."""
    random = np.random.default_rng(0)
    X, target = (random.normal(size=(n_rows, n_columns)).astype(np.float32) for _ in range(2))
    start = time.perf_counter()
    evidence = gather_evidence(X, target, target[:, 0].astype(float), 2.0)
    middle = time.perf_counter()
    learn_ranking(evidence, random.permutation(n_rows)[:answers], random.random(answers) < 0.4)
    return middle - start, time.perf_counter() - middle


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    lines = [
        "# How long a key press takes",
        "",
        f"Written by `python benchmarks/review_latency.py` with openset {__version__}, on two shared cores. From",
        "the key press to the next row painted in headless Chromium: saving, the live numbers, the next row",
        f"and two frames of the screen; {asked.answers} answers in each queue.",
        "",
        "| target rows | queue | median, ms | 95 %, ms | slowest, ms |",
        "|---:|---|---:|---:|---:|",
    ]
    medians = []
    for n_rows in (1000, asked.rows):
        with tempfile.TemporaryDirectory() as folder:
            for queue, times in press_keys(write_run(Path(folder), n_rows), asked.answers).items():
                medians.append(np.median(times))
                numbers = " | ".join(f"{np.quantile(times, q):.0f}" for q in (0.5, 0.95, 1))
                lines.append(f"| {n_rows} | {queue} | {numbers} |")
                print(lines[-1], flush=True)
    prepare, learn = learning_seconds()
    lines += [
        "",
        f"{asked.rows} rows take {medians[2] / medians[0]:.1f} (Estimate) and",
        f"{medians[3] / medians[1]:.1f} (Explore) times as long as 1000.",
        "",
        f"To learn the ranking from 200 answers at 5000 × 384 takes {learn:.2f} s, after {prepare:.1f} s once,",
        "when the review starts. It runs beside the answers, after every five.",
    ]
    print("\n".join(lines[-5:]))
    asked.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
