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
"""Problems fitted with effort="full", and those of them once on 10⁶ rows, which takes a quarter of an hour."""


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


def report(out: Path) -> None:
    """Write the table of all problems, and the mean change from one size to the next."""
    found = {tuple(line["key"]): line for line in map(json.loads, out.read_text().splitlines())}
    lines = ["| problem | new | seed | effort | " + " | ".join(f"{rows} rows" for rows in SIZES) + " |"]
    lines.append("|---|---:|---:|---|" + "---:|" * len(SIZES))
    changes: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for key in sorted({key[:5] for key in found}, key=lambda key: (key[4], key)):
        kind, fraction, distance, seed, effort = key
        line = [found.get((*key, rows)) for rows in SIZES]
        title = kind if kind != "subtypes" else f"subtypes, distance {distance:g}"
        cells = [f"{one['auprc']:.3f}, {100 * one['low']:.2f} %" if one else "—" for one in line]
        lines.append(f"| {title} | {100 * fraction:g} % | {seed} | {effort} | {' | '.join(cells)} |")
        for rows, one, two in zip(SIZES[1:], line, line[1:], strict=False):
            if one and two:
                change = (two["auprc"] - one["auprc"], two["low"] - one["low"])
                changes.setdefault((effort, rows), []).append(change)
    lines += [
        "",
        "| effort | to rows | problems | mean change of AUPRC | better, worse by .01 | of the least share |",
    ]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for (effort, rows), both in sorted(changes.items()):
        of_auprc, of_low = np.array(both).T
        counts = f"{(of_auprc > 0.01).sum()}, {(of_auprc < -0.01).sum()}"
        means = f"{of_auprc.mean():+.3f} | {counts} | {100 * of_low.mean():+.2f} %"
        lines.append(f"| {effort} | {rows} | {len(both)} | {means} |")
    seconds = {
        (effort, rows): np.mean([line["seconds"] for key, line in found.items() if key[4:] == (effort, rows)])
        for effort in ("fast", "full") for rows in SIZES if any(key[4:] == (effort, rows) for key in found)
    }  # fmt: skip
    took = ", ".join(f"{effort} on {rows}: {mean:.0f} s" for (effort, rows), mean in seconds.items())
    intro = f"""# What a fit on a sample loses

Written by `python benchmarks/sample_size.py --report`. Each problem has a million source rows and as many
target rows, with a known truth: Gaussian subtypes whose known kinds are up to 8 times as common in target
(20 features; the best possible AUPRC is above .98 in all), or `make_background_shift` (50 features). A fit
takes the first 10⁴, 10⁵ or 10⁶ rows of each side. Every cell has the AUPRC on 100 000 target rows that no
fit had, and the "at least" of the verdict. A network draws 300 000 rows of each side in its 1500 steps
(200 a step), so of 10⁶ rows it sees a third; of 10⁵ it sees every training row about four times.
Processor seconds of a fit, on average: {took}.

"""
    OUT.write_text(intro + "\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("sample_size.jsonl"))
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", FitWarning)
    if asked.report:
        report(asked.out)
    else:
        measure(asked.out)
