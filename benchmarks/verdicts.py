"""How often is the verdict right? False alarms, power, agreement of seeds, and whether "at least" holds.

    python benchmarks/verdicts.py --data ../shared/data [--only nulls] [--keep verdicts.jsonl]

Built problems are the suite's families with seeds that chose nothing, and Gaussian subtypes.
A null is the same target with its new rows taken out. Every fit is CoLOR's default. What is said of it is what
`openset fit` says, "cannot tell" where a check of its gate fails. Natural nulls are the natural suite's, with
further draws and other groups of people. A run that was stopped continues from its file.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config

from gaussian_subtypes import draw, settings
from openset import CoLOR
from openset._utils.progress import progress_bar
from openset._version import __version__
from openset.bench.problems import build_problem
from openset.pipeline.explain import find_groups
from openset.pipeline.gate import run_gate
from openset.stats.bounded_shift import Counts
from openset.stats.metrics import auprc
from openset.stats.novelty import NoveltyTest

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "verdicts.md"
CODES = ("nothing", "stands_out", "probable", "found")
SEPARABLE = 0.9
NOVEL = {"digits": "9", "amazon-fdu-mtl": "toys_games", "clinc150": "auto_and_commute"}
"""The new class of real families, where a case names none."""
POWER = {
    "clinc150": (
        *("banking", "travel", "home", "work", "utility", "meta", "small_talk", "kitchen_and_dining"),
        *("credit_cards", "auto_and_commute"),
    ),
    "cifar100": ("man", "butterfly", "rocket", "streetcar", "crocodile", "baby"),
    "amazon-fdu-mtl": ("toys_games", "software"),
}
"""New classes in "power", two problems each: the families of the suite with 2000 rows a side or more."""
NULLS = {"digits": 20, "amazon-fdu-mtl": 4, "clinc150": 4}
SEEDS = {"gaussian": 14, "digits": 14, "clinc150": 2}
"""Thirty problems that are fitted with five seeds each."""


@dataclass(frozen=True)
class Case:
    """One fit: a problem, and the seed of the method."""

    part: str
    family: str
    share: float
    problem: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What was said of a case, and the truth."""

    case: Case
    truth: float
    code: str
    p_value: float
    low: float
    called: float
    ratio: float
    tolerated: float
    limit: str
    auprc: float | None
    failed: tuple[str, ...] = ()
    """The checks of the gate that failed."""


def cases(part: str, number: int) -> Iterator[Case]:
    """The cases of one part."""
    if part == "nulls":  # Gaussian subtypes whose known kinds shift up to 12 times, and real families
        for problem in range(number):
            yield Case(part, "gaussian", 0.0, 9000 + problem, 0)
        for family, many in NULLS.items():
            for problem in range(30, 30 + many):
                yield Case(part, family, 0.0, problem, 0)
    elif part == "natural":
        for family in ("nsl-kdd", "gas-sensors", "ifnb-cells", "wisdm-activity", "pbmc-chemistries"):
            for problem in range(10, 15 if family == "nsl-kdd" else 11):
                yield Case(part, family, 0.0, problem, 0)
        for problem in range(5):
            yield Case(part, "wisdm people", 0.0, problem, 0)
    elif part == "power":
        for problem in (42, 43):
            for family, novels in POWER.items():
                for novel in novels:
                    yield Case(part, f"{family}:{novel}", 0.05, problem, 0)
    elif part == "seeds":
        for seed in range(5):
            for family, many in SEEDS.items():
                for problem in range(many):
                    yield Case(part, family, (0.05, 0.1, 0.0, 0.2)[problem % 4], 9500 + problem, seed)


def rows_of(case: Case, data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Source rows and labels, target rows, and which of them are new."""
    if case.family == "gaussian":
        setting = settings("strong" if case.share else "no new class", 1, case.problem)[0]
        problem = draw(replace(setting, fraction=case.share))
        return problem.X, problem.y, problem.X_target, problem.is_new
    if case.family == "wisdm people":
        return people(case.problem, data)
    natural = case.part == "natural"
    family, _, domain = case.family.partition(":")
    novel = NATURAL[family] if natural else domain or NOVEL[family]
    share = 0.0 if natural else case.share or 0.05
    built = build_problem(family, "shift", novel, case.problem, data, novel_fraction=share)
    is_new = built.y_target == built.novel_label
    kept = np.ones(len(is_new), bool) if case.share else ~is_new
    return built.X, built.y, built.X_target[kept], is_new[kept]


NATURAL = {
    "nsl-kdd": "r2l+u2r",
    "gas-sensors": "Toluene",
    "ifnb-cells": "NK",
    "wisdm-activity": "Sitting",
    "pbmc-chemistries": "DC",
}


def people(seed: int, data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Half of the people of WISDM against the other half, with every activity known."""
    import pyarrow.parquet as pq

    columns = pq.read_table(data / "wisdm_activity/windows.parquet")
    table = {name: columns[name].to_numpy() for name in columns.column_names}
    users = np.unique(table["user"])
    is_source = np.isin(table["user"], np.random.default_rng(seed).permutation(users)[: len(users) // 2])
    X = np.column_stack([table[name] for name in table if name not in ("user", "activity")]).astype(np.float32)
    X = np.where(np.isnan(X), np.nanmedian(X[is_source], axis=0), X)
    X = (X - X[is_source].mean(axis=0)) / np.maximum(X[is_source].std(axis=0), 1e-9)
    y = table["activity"].astype(str)
    return X[is_source], y[is_source], X[~is_source], np.zeros((~is_source).sum(), bool)


def run(case: Case, data: Path) -> Outcome:
    """Fit, and return what is said."""
    X, y, target, is_new = rows_of(case, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CoLOR(random_state=case.seed).fit(X, y, target)
    test, scores = model.novelty_test_, model.novelty_score(target)
    called = scores > model.threshold_
    nearest = model.predict_known(target)
    checks = run_gate(
        model, X, y, target, columns=None, nearest_known=nearest, called=called,
        groups=find_groups(model, X, target, scores, called).labels,
    )  # fmt: skip
    failed = tuple(check.name for check in checks if check.state == "failed")
    return Outcome(
        case,
        float(is_new.mean()),
        "cannot_tell" if failed else test.code,
        test.p_value,
        model.novel_fraction_.low,
        float(called.mean()),
        test.max_density_ratio,
        test.tolerated_ratio,
        test.limit,
        float(auprc(is_new, scores)) if is_new.any() else None,
        failed,
    )


def strong(outcomes: list[Outcome], least: str) -> str:
    """The share of verdicts as strong as this or stronger; "cannot tell" is none."""
    return share([o.code in CODES and CODES.index(o.code) >= CODES.index(least) for o in outcomes])


def share(flags: list[bool]) -> str:
    return f"{100 * np.mean(flags):.1f} %" if flags else "–"


def table(outcomes: list[Outcome]) -> list[str]:
    """What was found, beside what is required."""
    of = defaultdict(list)
    for outcome in outcomes:
        of[outcome.case.part].append(outcome)
    built, natural = of["nulls"], of["natural"]
    small = [o for o in of["power"] if (o.auprc or 0) >= SEPARABLE]
    valid = [o for o in outcomes if o.case.part != "natural"]
    by_problem = defaultdict(list)
    for outcome in of["seeds"]:
        by_problem[outcome.case.family, outcome.case.problem].append(outcome.code)
    ranks = [[CODES.index(c) if c in CODES else -1 for c in codes] for codes in by_problem.values()]
    rows = [
        ("built nulls: *found*", strong(built, "found"), "≤ 1 %", len(built)),
        ("… *probably* or stronger", strong(built, "probable"), "≤ 5 %", len(built)),
        ("… *a group stands out* or stronger", strong(built, "stands_out"), "", len(built)),
        ("natural nulls: *found*", strong(natural, "found"), "≤ 1 %", len(natural)),
        ("… *probably* or stronger", strong(natural, "probable"), "≤ 5 %", len(natural)),
        ("5 % new, AUPRC ≥ .9: *probably* or stronger", strong(small, "probable"), "≥ 80 %", len(small)),
        ("… *a group stands out* or stronger", strong(small, "stands_out"), "≥ 95 %", len(small)),
        ("five seeds: all verdicts equal", share([len(set(r)) == 1 for r in ranks]), "≥ 80 %", len(ranks)),
        ("… at most one step apart", share([max(r) - min(r) <= 1 for r in ranks]), "100 %", len(ranks)),
        ("“at least” holds", share([o.low <= o.truth for o in valid]), "≥ 95 %", len(valid)),
    ]
    lines = ["| | measured | required | fits |", "|---|---:|---:|---:|"]
    return lines + [f"| {name} | {found} | {required} | {number} |" for name, found, required, number in rows]


def by_family(outcomes: list[Outcome]) -> list[str]:
    """Codes by part, family and share."""
    groups = defaultdict(list)
    for o in outcomes:
        groups[o.case.part, o.case.family, o.case.share].append(o)
    lines = ["| part | problem | new | AUPRC | nothing | stands out | probably | found | cannot tell |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for (part, family, new), found in sorted(groups.items()):
        counts = [sum(o.code == code for o in found) for code in (*CODES, "cannot_tell")]
        scores = [o.auprc for o in found if o.auprc is not None]
        mean = f"{np.mean(scores):.2f}" if scores else "–"
        lines.append(f"| {part} | {family} | {new:g} | {mean} | {' | '.join(map(str, counts))} |")
    return lines


def kept(path: Path | None) -> list[Outcome]:
    """The outcomes that an earlier run stored, in the words of today."""
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    outcomes = [
        Outcome(**{**entry, "case": Case(**entry["case"]), "failed": tuple(entry.get("failed", ()))})
        for entry in map(json.loads, lines)
    ]
    return [replace(outcome, code=word_now(outcome)) for outcome in outcomes]


def word_now(outcome: Outcome) -> str:
    """The code of a stored outcome by the limits of today, which may not be those of its day."""
    if outcome.failed:
        return "cannot_tell"
    counts = Counts(0, 0, 0, 0)  # words do not depend on them
    return NoveltyTest(outcome.p_value, outcome.ratio, counts, outcome.tolerated, outcome.limit).code


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the stand-ins, see docs/data.md")
    parser.add_argument("--only", nargs="+", default=["natural", "power", "nulls", "seeds"])
    parser.add_argument("--gaussian", type=int, default=172, help="Gaussian nulls beside those of real families")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=Path, help="file for the outcomes, as JSON lines")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    outcomes = kept(asked.keep)
    done = {outcome.case for outcome in outcomes}
    todo = [case for part in asked.only for case in cases(part, asked.gaussian) if case not in done]
    one: Callable[[Case], Outcome] = delayed(run)
    with progress_bar("verdicts") as update, parallel_config(backend="loky", inner_max_num_threads=1):
        update(0, len(todo), "")
        for outcome in Parallel(n_jobs=asked.jobs, return_as="generator_unordered")(
            one(c, asked.data) for c in todo
        ):
            outcomes.append(outcome)
            if asked.keep is not None:
                with asked.keep.open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
            update(len(outcomes) - len(done), len(todo), outcome.case.family)
    lines = [
        "# Verdicts: false alarms, power, and agreement of seeds",
        "",
        f"Written by `python benchmarks/verdicts.py --data ../shared/data` with openset {__version__}.",
        "All fits are CoLOR's default. Problems of the suite's families have seeds that chose nothing;",
        "their new rows are taken out for nulls. Known kinds of Gaussian nulls became up to 12 times as",
        "common.",
        "",
        *table(outcomes),
        "",
        *by_family(outcomes),
    ]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
