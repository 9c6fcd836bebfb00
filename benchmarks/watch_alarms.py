"""How often does a whole watch, with fits of its own, notice a new class where there is none?

    python benchmarks/watch_alarms.py --data ../shared/data --out alarms.jsonl [--sequences 40] [--report]

Sequences of eight weeks of traffic without a new class, through ``openset.Watch`` as a user has it: a run on the
week before, then each week's own fit and the series. The mix of known kinds changes every week as in
``benchmarks/watch.py``; B is the largest ratio of any kind in any week, the least for which the promise holds.
Fits are small, so that there can be many: ``effort="fast"``, few steps. Each sequence is a line of ``--out``, and
what is there is not computed again. ``--report`` writes the page.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from textwrap import fill

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import openset
from openset._version import __version__
from openset.stats.e_process import weight
from openset.stats.shares import binomial_interval
from watch_weeks import WEEKS, Pool, draw_sequence, make_pool

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "watch_alarms.md"
ROWS = (1500, 300)
"""Source rows, and rows of a week."""
STEPS = 300
LEVELS = (0.1, 0.05, 0.01, 0.025 * weight(1))


def frame(X: NDArray[np.float32]) -> pd.DataFrame:
    return pd.DataFrame(X).add_prefix("x")


def watch_sequence(pool: Pool, number: int) -> dict[str, object]:
    """One sequence: the evidence after each week, the p-values of own fits, and what they assumed."""
    weeks = draw_sequence(pool, ROWS, 1000 + number, (0.0,) * WEEKS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame(weeks.X).assign(kind=weeks.y).to_parquet(folder / "known.parquet")
        frame(weeks.target).to_parquet(folder / "before.parquet")
        settings = {"label": "kind", "parameters": {"effort": "fast", "max_steps": STEPS}}
        openset.run(folder / "known.parquet", folder / "before.parquet", **settings).save(folder / "run")
        watch = openset.Watch(folder / "run", max_density_ratio=weeks.largest_ratio)
        for week in weeks.weeks:
            watch.add(frame(week))
        answer = watch.answer()
    records = [batch.record for batch in answer.batches]
    return {
        "number": number,
        "noticed_at": answer.noticed_at,
        "evidence": [batch.evidence for batch in answer.batches],
        "p": [record.own_fit.p_value for record in records if record.own_fit and not record.own_fit.limit],
        "largest_ratio": weeks.largest_ratio,
        "not_counted": sum(bool(record.cannot_tell) for record in records),
        "models": len(answer.models),
    }


def report(out: Path) -> None:
    found = [json.loads(line) for line in out.read_text().splitlines()]
    noticed = sum(line["noticed_at"] is not None for line in found)
    p = np.array([value for line in found for value in line["p"]])
    high = binomial_interval(noticed, len(found), 0.9)[1]
    rows = [
        f"| p ≤ {level:.2g} | {int((p <= level).sum())} of {len(p)} | {100 * (p <= level).mean():.1f} % |"
        for level in LEVELS
    ]
    shifts = np.array([line["largest_ratio"] for line in found])
    highest = max(max(line["evidence"]) for line in found)
    text = f"""# False alarms of a whole watch

{len(found)} sequences of eight weeks of traffic (nsl-kdd) without a new class, through `openset.Watch` with
`--refit auto`: {ROWS[0]} source rows, {ROWS[1]} a week. The weight of each known kind is multiplied every week by
a random number between 1/3 and 3. B, which is given, is how many times as common the kind that became most common
is in the week where it is: the least for which the promise holds, {shifts.min():.1f} to {shifts.max():.1f}, in
the median {np.median(shifts):.1f}. Fits are CoLOR with `effort="fast"` and {STEPS} steps, so that there can be
many; full fits have other p-values.

A new class was noticed in {noticed} of {len(found)} sequences, where at most 5 % are promised. With so many
sequences, that says with a confidence of 95 % that fewer than {100 * high:.0f} % of such sequences alarm. The
highest evidence of any week was {highest:.2g}; 20 is the limit. {sum(line["not_counted"] for line in found)} of
{WEEKS * len(found)} batches did not count; {sum(line["models"] for line in found)} models were fitted for series.

The p-values of own fits, which should be at or below a level no more often than the level says:

| | own fits | share |
|---|---:|---:|
{chr(10).join(rows)}

The last level is what the first week of a watch requires; later weeks require a smaller p-value. The tests are
far from their level here: this says that they do not alarm, and nothing of what they would find.

Written by `python benchmarks/watch_alarms.py --report` with openset {__version__}.
"""
    parts = (
        part if part[0] in "#|" else fill(part.replace("\n", " "), 100) for part in text.strip().split("\n\n")
    )
    OUT.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("alarms.jsonl"))
    parser.add_argument("--sequences", type=int, default=40)
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    if asked.report:
        report(asked.out)
    else:
        warnings.simplefilter("ignore")
        done = len(asked.out.read_text().splitlines()) if asked.out.exists() else 0
        traffic = make_pool("traffic", 0, asked.data)
        for number in range(done, asked.sequences):
            with asked.out.open("a") as file:
                file.write(json.dumps(watch_sequence(traffic, number)) + "\n")
