"""In which week is a growing class noticed, and how often is there a false alarm in eight weeks without one?

    python benchmarks/watch.py --data ../shared/data --cache FOLDER [--sequences 3] [--only fits|tables]

Eight weekly batches of reviews and of traffic: nothing new for three weeks while the mix of known kinds changes,
then a class of 1, 2, 4, 8 and 12 %. ``openset watch`` with each way to refit, beside fitting each week alone:
CoLOR's default on all source rows, noticed at p ≤ .05/8. False alarms are counted on many sequences without a new
class, all scored by one fit. Fits are stored in the cache; a run that was stopped continues.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset import CoLOR
from openset._utils.files import write_atomically
from openset.methods._presets import NARROW_GROUPS, WIDE, WIDE_GROUPS
from openset.stats.e_process import ERROR, LIMIT, References, Tally, log_evidence
from openset.watch.fits import fit_model, reference_rows
from openset.watch.policy import KEPT_MODELS, WINDOW, model_is_due
from watch_weeks import SIZES, STEP, WEEKS, Sequence, draw_sequence, draw_week, make_pool

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "watch.md"
NULLS = 1000
POLICIES = ("never", "auto", "each")


def main() -> None:
    """Fit what is missing in the cache, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sequences", type=int, default=2)
    parser.add_argument("--groups", choices=("all", "one"), default="all", help="one: a third of the networks")
    parser.add_argument("--only", choices=("fits", "tables"))
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    if given.only != "tables":
        for number in range(given.sequences):
            steps = [fit_sequence(problem, number, given.data, given.cache, given.groups) for problem in SIZES]
            for _ in zip_longest(*steps):  # both problems go on together
                pass
    if given.only != "fits":
        write_page(given.data, given.cache, given.sequences, given.groups)


def make_model(groups: str, n_features: int) -> CoLOR:
    """CoLOR's default, or with one of its three groups of networks."""
    if groups == "all":
        return CoLOR(random_state=0)
    return CoLOR(random_state=0, groups=[(WIDE_GROUPS if n_features >= WIDE else NARROW_GROUPS)[0]])


def fit_sequence(problem: str, number: int, data: Path, cache: Path, groups: str) -> Iterator[None]:
    """All fits of a sequence that the cache lacks: the run's, one after each week, and each week alone.

    The weeks that decide come first, so that a run that is stopped early has them.
    """
    sequence = draw_sequence(make_pool(problem, number, data), SIZES[problem], number)
    batches = [sequence.target, *sequence.weeks]
    for after in (0, 4, 5, 3, 6, 7, 2, 1):
        target = sequence.target if not after else np.concatenate(batches[1 : after + 1][-WINDOW:])
        watch_fit(cache / f"{groups}-{problem}-{number}-after-{after}.npz", sequence, target, after, groups)
        yield
        week = after + 1 if after else 0  # 0 is the run itself
        fit_alone(cache / f"{groups}-{problem}-{number}-alone-{week}.npz", sequence, batches[week], groups)
        yield
    fit_alone(cache / f"{groups}-{problem}-{number}-alone-1.npz", sequence, batches[1], groups)


def fit_alone(name: Path, sequence: Sequence, target: NDArray[Any], groups: str) -> None:
    """A fit on the whole source and one batch."""
    if not name.exists():
        test = make_model(groups, sequence.X.shape[1]).fit(sequence.X, sequence.y, target).novelty_test_
        save(name, p=test.p_value, ratio=test.max_density_ratio, limit=np.array(test.limit))


def watch_fit(name: Path, sequence: Sequence, target: NDArray[Any], after: int, groups: str) -> None:
    """A fit after some weeks: scores of the reference rows, and of the weeks that follow."""
    if name.exists():
        return
    model = make_model(groups, sequence.X.shape[1])
    references = fit_model(model, sequence.X, sequence.y, target)
    scores = {f"week{week}": model.novelty_score(sequence.weeks[week - 1]) for week in range(after + 1, WEEKS + 1)}
    save(
        name,
        thresholds=references.thresholds,
        n_reference=references.n_rows,
        threshold=model.threshold_,
        called=float((model.target_predictions().novelty_score > model.threshold_).mean()),
        limit=np.array(model.novelty_test_.limit),
        **scores,
    )


def noticed(problem: str, number: int, cache: Path, policy: str, ratio: float) -> int | None:
    """The week in which a watch notices something; None if it never does."""
    fits = [dict(np.load(cache / f"{problem}-{number}-after-{after}.npz")) for after in range(WEEKS)]
    models = [0]  # those in use, by the week after which they were fitted; the newest is last
    series: list[tuple[int, int, list[Tally]]] = []
    for week in range(1, WEEKS + 1):
        series.append((week, models[-1], []))
        for _, model, tallies in series:
            if model in models:
                found = fits[model]
                references = References(tuple(found["thresholds"].tolist()), int(found["n_reference"]))
                scores = found[f"week{week}"]
                tallies.append(Tally(len(scores), references.count_above(scores), references.n_rows))
        if log_evidence([(first, tallies) for first, _, tallies in series], ratio) >= np.log(LIMIT):
            return week
        current = fits[models[-1]]
        called = int((current[f"week{week}"] > current["threshold"]).sum())
        rows = len(current[f"week{week}"])
        if model_is_due(policy, called, rows, float(current["called"]), week - models[-1]):
            models = [*models, week][-KEPT_MODELS:]
    return None


def noticed_alone(problem: str, number: int, cache: Path) -> int | None:
    """The first week whose own fit has p ≤ .05/8."""
    for week in range(1, WEEKS + 1):
        found = np.load(cache / f"{problem}-{number}-alone-{week}.npz")
        if not str(found["limit"]) and float(found["p"]) <= ERROR / WEEKS:
            return week
    return None


def false_alarms(problem: str, data: Path, cache: Path, sequences: int = NULLS) -> Iterator[tuple[float, int]]:
    """Of many sequences without a new class: how many raise an alarm, for some ratios B.

    One fit, with rows that are then left out. Every sequence draws its own reference rows and weeks from the
    others.
    """
    name = cache / f"{problem}-nulls.npz"
    pool = make_pool(problem, 0, data)
    n_source, n_week = SIZES[problem]
    sequence = draw_sequence(pool, SIZES[problem], 0)
    trained = ~reference_rows(sequence.y)
    if not name.exists():
        model = CoLOR(random_state=0).fit(sequence.X[trained], sequence.y[trained], sequence.target)
        save(name, scores=model.novelty_score(pool.X))
    scores = np.load(name)["scores"]
    used = np.random.default_rng([0, 24]).permutation(len(pool.y))[:n_source]  # the source of draw_sequence
    free = np.setdiff1d(np.arange(len(pool.y)), used[trained])
    n_reference = int((~trained).sum())
    ratios = (1.0, STEP, 6.0)
    alarms = dict.fromkeys(ratios, 0)
    for number in range(sequences):
        random = np.random.default_rng([number, 25])
        order = random.permutation(free)
        references, left = References.of(scores[order[:n_reference]]), order[n_reference:]
        kinds, counts = np.unique(pool.kind[used[trained]], return_counts=True)
        own = dict(zip(kinds.tolist(), (counts / counts.sum()).tolist(), strict=True))
        tallies = []
        for _ in range(WEEKS):
            rows, _, _ = draw_week(pool.kind, left, own, n_week, random)
            tallies.append(Tally(len(rows), references.count_above(scores[rows]), references.n_rows))
        series = [(first + 1, tallies[first:]) for first in range(WEEKS)]
        for ratio in ratios:
            alarms[ratio] += log_evidence(series, ratio) >= np.log(LIMIT)
    yield from alarms.items()


def write_page(data: Path, cache: Path, sequences: int) -> None:
    """Write docs/evidence/watch.md from the cache."""
    raise NotImplementedError


def save(path: Path, **arrays: Any) -> None:
    """Write arrays, whole or not at all."""
    import io

    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomically(path, buffer.getvalue())


if __name__ == "__main__":
    main()
