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
from openset._version import __version__
from openset.methods._color_defaults import NARROW_GROUPS, WIDE_GROUPS
from openset.methods._presets import WIDE
from openset.stats.e_process import ERROR, LIMIT, References, Tally, log_evidence, weight
from openset.watch.fits import fit_model, reference_rows
from openset.watch.policy import KEPT_MODELS, WINDOW, model_is_due
from watch_weeks import GROWING, SIZES, STEP, WEEKS, Sequence, draw_sequence, draw_week, make_pool

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "watch.md"
NULLS = 300


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
    """All fits of a sequence that the cache lacks: the run's, each week alone, and one after each week.

    The weeks that decide come first, so that a run that is stopped early has them.
    """
    sequence = draw_sequence(make_pool(problem, number, data), SIZES[problem], number)
    batches = [sequence.target, *sequence.weeks]
    for week in (0, 5, 6, 4, 7, 8, 3, 2, 1):  # 0 is the run itself
        fit_alone(cache / f"{groups}-{problem}-{number}-alone-{week}.npz", sequence, batches[week], groups)
        yield
    for after in (0, 4, 5, 6, 7, 3, 2, 1):
        target = sequence.target if not after else np.concatenate(batches[1 : after + 1][-WINDOW:])
        watch_fit(cache / f"{groups}-{problem}-{number}-after-{after}.npz", sequence, target, after, groups)
        yield


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
    scores = {
        f"week{week}": model.novelty_score(sequence.weeks[week - 1]) for week in range(after + 1, WEEKS + 1)
    }
    save(
        name,
        thresholds=references.thresholds,
        n_reference=references.n_rows,
        threshold=model.threshold_,
        called=float((model.target_predictions().novelty_score > model.threshold_).mean()),
        limit=np.array(model.novelty_test_.limit),
        **scores,
    )


def noticed(stem: str, policy: str, ratio: float) -> tuple[int | None, float]:
    """The week in which a watch notices something (None if it never does), and its evidence in the last week.

    As in ``openset watch``: half of the error is for each week's own fit, half for series of fresh rows.
    """
    models = [0]  # those in use, by the week after which they were fitted; the newest is last
    series: list[tuple[int, int, list[Tally]]] = []
    first, best = None, -np.inf
    for week in range(1, WEEKS + 1):
        series.append((week, models[-1], []))
        for _, model, tallies in series:
            if model in models:
                found = np.load(f"{stem}-after-{model}.npz")
                references = References(tuple(found["thresholds"].tolist()), int(found["n_reference"]))
                scores = found[f"week{week}"]
                tallies.append(Tally(len(scores), references.count_above(scores), references.n_rows))
        value = log_evidence([(start, tallies) for start, _, tallies in series], ratio)
        if policy != "never":
            p_value = own_p_value(stem, week)
            if p_value is None:
                raise FileNotFoundError(f"{stem}-alone-{week}.npz")
            value = max(value, float(np.log(weight(week)) - np.log(p_value)))
        best = max(best, value + np.log(0.5))
        if first is None and best >= np.log(LIMIT):
            first = week
        current = np.load(f"{stem}-after-{models[-1]}.npz")
        scores = current[f"week{week}"]
        called = int((scores > current["threshold"]).sum())
        if week < WEEKS and model_is_due(
            policy, called, len(scores), float(current["called"]), week - models[-1]
        ):
            models = [*models, week][-KEPT_MODELS:]
    return first, float(np.exp(min(best, 700)))


def own_p_value(stem: str, week: int) -> float | None:
    """The p-value of a week's own fit, 1 where something limits it; None if it is not fitted yet."""
    path = Path(f"{stem}-alone-{week}.npz")
    if not path.exists():
        return None
    found = np.load(path)
    return 1.0 if str(found["limit"]) else float(found["p"])


def week_noticed(stem: str, policy: str, ratio: float) -> str:
    """The week in which a watch notices something, as the table shows it."""
    try:
        week, _ = noticed(stem, policy, ratio)
    except FileNotFoundError:
        return "not fitted"
    return "–" if week is None else f"week {week}"


def false_alarms(problem: str, data: Path, cache: Path, groups: str) -> tuple[dict[float, int], float]:
    """Of many sequences without a new class: how many raise an alarm, by the ratio B; and the largest true ratio.

    One fit. Every sequence draws its own reference rows and weeks from the rows that were not fitted on.
    """
    counted = cache / f"{groups}-{problem}-{NULLS}-nulls.npz"
    if counted.exists():
        stored = np.load(counted)
        return dict(zip(stored["ratios"].tolist(), stored["alarms"].tolist(), strict=True)), float(
            stored["largest"]
        )
    pool = make_pool(problem, 0, data)
    n_source, n_week = SIZES[problem]
    random = np.random.default_rng(30)
    order = random.permutation(len(pool.y))
    source = order[:n_source]
    trained = source[~reference_rows(pool.y[source])]
    kinds, counts = np.unique(pool.kind[trained], return_counts=True)
    own = dict(zip(kinds.tolist(), (counts / counts.sum()).tolist(), strict=True))
    target, _, _ = draw_week(pool.kind, order[n_source:], own, n_week, random)
    name = cache / f"{groups}-{problem}-nulls.npz"
    if not name.exists():
        model = make_model(groups, pool.X.shape[1]).fit(pool.X[trained], pool.y[trained], pool.X[target])
        save(name, scores=model.novelty_score(pool.X))
    scores = np.load(name)["scores"]
    free = np.setdiff1d(np.arange(len(pool.y)), np.concatenate([trained, target]))
    free = free[np.isin(pool.kind[free], kinds)]
    codes = np.searchsorted(kinds, pool.kind)  # numbers are compared faster than words
    mix = dict(enumerate(own.values()))
    n_counted = round(0.95 * n_week)  # of as many rows, so that few different counts are looked at
    alarms, largest = dict.fromkeys((1.0, STEP, 2 * STEP), 0), 0.0
    for number in range(NULLS):
        random = np.random.default_rng([number, 25])
        drawn = random.permutation(free)
        references, left = References.of(scores[drawn[: n_source // 2]]), drawn[n_source // 2 :]
        tallies = []
        for _ in range(WEEKS):
            rows, _, seen = draw_week(codes, left, mix, n_week, random)
            rows = random.permutation(rows)[:n_counted]
            tallies.append(Tally(len(rows), references.count_above(scores[rows]), references.n_rows))
            largest = max(largest, seen)
        series = [(first + 1, tallies[first:]) for first in range(WEEKS)]
        for ratio in alarms:
            alarms[ratio] += log_evidence(series, ratio) >= np.log(LIMIT)
    save(counted, ratios=list(alarms), alarms=list(alarms.values()), largest=largest)
    return alarms, largest


def write_page(data: Path, cache: Path, sequences: int, groups: str) -> None:
    """Write docs/evidence/watch.md from the cache; what is not fitted yet is said."""
    by_week = [
        row("sequence", *(f"week {week}" for week in range(1, WEEKS + 1))),
        "|---|" + "---:|" * WEEKS,
        row("share of new rows", *(f"{share:.0%}" for share in GROWING)),
    ]
    first_week = [row("sequence", "B", "each week alone", "watch, auto", "each", "never"), "|---|" + "---:|" * 5]
    for number in range(sequences):
        for problem in SIZES:
            stem = str(cache / f"{groups}-{problem}-{number}")
            if not Path(f"{stem}-alone-0.npz").exists():
                continue
            ratio = float(np.load(f"{stem}-alone-0.npz")["ratio"])
            p_values = [own_p_value(stem, week) for week in range(1, WEEKS + 1)]
            shown = ["not fitted" if p is None else f"{p:.2g}" for p in p_values]
            by_week.append(row(f"{problem} {number}, p of its own fit", *shown))
            alone = next((w for w, p in enumerate(p_values, 1) if p is not None and p <= ERROR / WEEKS), None)
            watched = [week_noticed(stem, policy, ratio) for policy in ("auto", "each", "never")]
            first_week.append(
                row(f"{problem} {number}", f"{ratio:g}", "–" if alone is None else f"week {alone}", *watched)
            )
    nulls = [row("rows", "sequences", "B = 1", "B = 3", "B = 6"), "|---|" + "---:|" * 4]
    for problem in SIZES:
        alarms, largest = false_alarms(problem, data, cache, groups)
        shares = [f"{count / NULLS:.1%}" for count in alarms.values()]
        nulls.append(row(f"{problem}, a kind up to {largest:.1f} times as common", str(NULLS), *shares))
    parts = [
        INTRODUCTION,
        "\n".join(by_week),
        "Noticed first:",
        "\n".join(first_week),
        ABOUT_NULLS,
        "\n".join(nulls),
        f"Written by `python benchmarks/watch.py --data ../shared/data --cache FOLDER --sequences {sequences} "
        f"--groups {groups}` with openset {__version__}. {GROUPS_USED[groups]}",
    ]
    write_atomically(OUT, ("\n\n".join(parts) + "\n").encode())


def row(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


INTRODUCTION = f"""# When a growing class is noticed

Eight weekly batches of real rows. The mix of known kinds changes every week: the weight of each kind is
multiplied by a random number between 1/{STEP:g} and {STEP:g}. For three weeks nothing is new, then a class grows.

- *traffic*: connections of nsl-kdd, 6000 of source and 1000 a week. Kinds are attacks by service; r2l and u2r are
  new.
- *reviews*: MiniLM features of amazon-fdu-mtl, 5000 of source and 800 a week. Kinds are eight categories by
  sentiment; another category is new.

*Each week alone* is a fit on the whole source and that week, noticed at p ≤ .05/8: it must know that there are
eight weeks. *Watch* has no such horizon. Its `--refit` is auto, each or never; B is what the run's own fit
read.

Sequence 0 is no fresh test: own fits were added to the watch after its first fits showed that models from before
the class do not rank it, and the p-value of traffic's week 5 was seen by then. Weights and limit were set before,
the halves of the error with the own fits; neither was changed later. Sequences from 1 on chose nothing."""
ABOUT_NULLS = """## False alarms

Sequences of eight weeks without a new class, each with its own reference rows and weeks, scored by one fit: how
often the series of fresh rows reach an evidence of 20 in any week. In a watch with own fits they must reach 40.
The promise is at most 5 % where no kind is more than B times as common. B = 1 is broken by the shift in the rows.

The p-values of own fits are those of `openset fit`; how often these are wrong is in [verdicts](verdicts.md)."""
GROUPS_USED = {
    "all": "Fits are CoLOR's default.",
    "one": "Fits are CoLOR with one of its three groups of networks, a third of the work.",
}


def save(path: Path, **arrays: Any) -> None:
    """Write arrays, whole or not at all."""
    import io

    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomically(path, buffer.getvalue())


if __name__ == "__main__":
    main()
