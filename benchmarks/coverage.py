"""Does the interval cover the novel fraction, and how often is a new class found where there is none?

The truth is known: every problem is a mixture of Gaussian subtypes with known shares. So the density ratio of
known rows, target over source, has an exact bound B, and the best score (the ratio of the true densities) tells
how separable the new class is. ``--estimator`` is a name of the registry, or ``stand-in`` for cross-fitted
scikit-learn classifiers of source against target. Nothing is tuned, and every number is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from openset import __version__
from openset._utils.progress import progress_bar
from openset.registry import get_method
from openset.stats.metrics import auprc
from openset.stats.neighbours import distance_score
from openset.stats.novelty import MAX_DENSITY_RATIO, novelty_verdict
from openset.stats.validation_scores import ValidationScores

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "coverage.md"
SEPARABLE = 0.98
CLASSES, SUBTYPES, SPREAD = 3, 3, 6.0
FOLDS = 5


@dataclass(frozen=True)
class Setting:
    """The parameters of one problem."""

    group: str
    seed: int
    rows: int
    features: int
    fraction: float
    ratio: float
    distance: float


@dataclass(frozen=True)
class Problem:
    """Source and target rows, and the truth that a method must not see."""

    X: np.ndarray
    y: np.ndarray
    X_target: np.ndarray
    density_ratio: float
    oracle_auprc: float


@dataclass(frozen=True)
class Outcome:
    """The estimates and the verdict on one problem, and the truth."""

    setting: Setting
    oracle_auprc: float
    density_ratio: float
    low: float
    value: float
    high: float
    high_identified: bool
    word: str


def settings(group: str, number: int, first: int) -> list[Setting]:
    """The problems of one group, one per seed."""
    made = []
    for seed in range(first, first + number):
        random = np.random.default_rng([seed, len(group)])
        rows, features = int(random.choice([500, 1000, 2000])), int(random.choice([10, 20, 50]))
        fraction, ratio = float(random.choice([0.02, 0.05, 0.1, 0.2, 0.3])), float(random.choice([1, 3, 8, 12]))
        distance = float(random.uniform(2, 8))
        if group == "no new class":
            fraction, ratio = 0.0, float(random.choice([4, 8, 12]))
        elif group in ("strong", "small"):
            rows, ratio, distance = 2000, 12.0, float(random.uniform(5.5, 9))
            fraction = {"strong": 0.1, "small": 0.05}[group]
        made.append(Setting(group, seed, rows, features, fraction, ratio, distance))
    return made


def draw(setting: Setting) -> Problem:
    """A problem whose known rows have a density ratio of at most ``setting.ratio``, and usually just that."""
    random = np.random.default_rng([setting.seed, len(setting.group), 1])

    def directions(*shape: int) -> np.ndarray:
        d = random.standard_normal((*shape, setting.features))
        return d / np.linalg.norm(d, axis=-1, keepdims=True)

    centres = (SPREAD * directions(CLASSES, 1) + SPREAD * directions(CLASSES, SUBTYPES)).reshape(
        -1, setting.features
    )
    novel = centres[random.integers(len(centres))] + setting.distance * directions()
    source_mix = 0.9 * random.dirichlet(np.ones(len(centres))) + 0.1 / len(centres)
    target_mix = random.dirichlet(np.full(len(centres), 0.5))
    largest = (target_mix / source_mix).max()
    keep = min(
        1.0, (setting.ratio - 1) / (largest - 1)
    )  # share of the target's own mix; the rest is the source's mix
    target_mix = keep * target_mix + (1 - keep) * source_mix

    def known(n: int, mix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        subtype = random.choice(len(mix), size=n, p=mix)
        return centres[subtype] + random.standard_normal((n, setting.features)), subtype // SUBTYPES

    def new(n: int) -> np.ndarray:
        return novel + random.standard_normal((n, setting.features))

    def ratio_of_densities(rows: np.ndarray) -> np.ndarray:
        distances = ((rows[:, None] - centres) ** 2).sum(axis=-1)
        return -0.5 * ((rows - novel) ** 2).sum(axis=-1) - logsumexp(
            -0.5 * distances + np.log(target_mix), axis=1
        )

    X, y = known(setting.rows, source_mix)
    n_new = random.binomial(setting.rows, setting.fraction)
    X_target = random.permutation(np.concatenate([known(setting.rows - n_new, target_mix)[0], new(n_new)]))
    fresh, fresh_new = known(4000, target_mix)[0], new(444)  # one in ten, whatever the fraction
    truth = np.repeat([False, True], [len(fresh), len(fresh_new)])
    best = auprc(truth, ratio_of_densities(np.concatenate([fresh, fresh_new])))
    return Problem(X, y, X_target, float((target_mix / source_mix).max()), float(best))


def stand_in_scores(X: np.ndarray, X_target: np.ndarray, seed: int) -> ValidationScores:
    """Three heads, cross-fitted: two of source against target (a network, a line), and the distance to source."""
    random = np.random.default_rng(seed)
    scale = X.std()
    folds = [random.permutation(len(part)) % FOLDS for part in (X, X_target)]
    source, target = [], []
    for k in range(FOLDS):
        train = [part[fold != k] / scale for part, fold in zip((X, X_target), folds, strict=True)]
        validation = [part[fold == k] / scale for part, fold in zip((X, X_target), folds, strict=True)]
        domain = np.repeat([0, 1], [len(part) for part in train])
        network = MLPClassifier((64,), max_iter=15, learning_rate_init=3e-3, batch_size=128, random_state=k)
        network.fit(np.concatenate(train), domain, sample_weight=np.where(domain == 0, 3.0, 0.3))
        line = LogisticRegression(C=0.1).fit(np.concatenate(train), domain)
        for part, into in zip(validation, (source, target), strict=True):
            log_odds = np.diff(network.predict_log_proba(part), axis=1)[:, 0]
            distance = distance_score(train[0], part)
            into.append(np.column_stack([log_odds, line.decision_function(part), distance]))
    return ValidationScores(tuple(source), tuple(target))


def run(setting: Setting, estimator: str) -> Outcome:
    """Draw a problem, fit, and return the outcome."""
    problem = draw(setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if estimator == "stand-in":
            found = novelty_verdict(stand_in_scores(problem.X, problem.X_target, setting.seed))
            fraction, test = found.fraction, found.test
        else:
            model = (
                get_method(estimator).make(random_state=setting.seed).fit(problem.X, problem.y, problem.X_target)
            )
            fraction, test = reported(model)
    return Outcome(
        setting,
        problem.oracle_auprc,
        problem.density_ratio,
        fraction.low,
        fraction.value,
        fraction.high,
        fraction.high_identified,
        test.word,
    )


def reported(model):
    """The novel fraction and the test that a fitted model reports, or those of its score of validation rows."""
    if hasattr(model, "novelty_test_"):
        return model.novel_fraction_, model.novelty_test_
    target = model.target_novelty_score_
    scores = ValidationScores.of_one_score(model.calibration_scores_, target[~np.isnan(target)])
    found = novelty_verdict(scores)
    return found.fraction, found.test


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """What was found, beside the requirements."""
    of = {name: [o for o in outcomes if o.setting.group == name] for name in GROUPS}
    some = [o for name in ("mixed", "strong", "small") for o in of[name]]
    separable = [o for o in some if o.oracle_auprc >= SEPARABLE]
    strong = [o for o in of["strong"] if o.oracle_auprc >= SEPARABLE]
    small = [o for o in of["small"] if o.oracle_auprc >= SEPARABLE]
    null = of["no new class"]
    covered = [o.low <= o.setting.fraction <= o.high for o in separable]
    identified = [o.low <= o.setting.fraction <= o.high for o in separable if o.high_identified]
    rows = [
        ("lower end valid", share([o.low <= o.setting.fraction for o in some]), "≥ 95 %", len(some)),
        ("interval covers, separable", share(covered), "≥ 90 %", len(separable)),
        ("… where the upper end is identified", share(identified), "", len(identified)),
        (
            "α = .10, n = 2000, separable: mean width",
            mean([o.high - o.low for o in strong]),
            "≤ .10",
            len(strong),
        ),
        ("… upper end identified", share([o.high_identified for o in strong]), "", len(strong)),
        ("… median lower end", median([o.low for o in strong]), "≥ .05", len(strong)),
        ("… mean error of the value", mean([abs(o.value - 0.1) for o in strong]), "", len(strong)),
        ("no new class: clear", share([o.word == "clear" for o in null]), "≤ 2 %", len(null)),
        ("no new class: likely or clear", share([o.word != "none found" for o in null]), "≤ 7 %", len(null)),
        (
            "α = .05, n = 2000, separable: found",
            share([o.word != "none found" for o in small]),
            "≥ 80 %",
            len(small),
        ),
        ("… clear", share([o.word == "clear" for o in small]), "", len(small)),
    ]
    lines = ["| | found | required | problems |", "|---|---|---|---|"]
    return lines + [f"| {name} | {found} | {required} | {number} |" for name, found, required, number in rows]


def share(flags: Sequence[bool]) -> str:
    return f"{100 * np.mean(flags):.1f} %" if len(flags) else "–"


def mean(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f}" if len(values) else "–"


def median(values: Sequence[float]) -> str:
    return f"{np.median(values):.3f}" if len(values) else "–"


def kept(path: Path) -> list[Outcome]:
    """The outcomes that an earlier run stored."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Outcome(**{**entry, "setting": Setting(**entry["setting"])}) for entry in map(json.loads, lines)]


GROUPS = ("mixed", "no new class", "strong", "small")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--estimator", default="color")
    parser.add_argument("--problems", type=int, default=300, help="mixed problems, α from .02 to .3")
    parser.add_argument("--null", type=int, default=200, help="shifted problems without a new class")
    parser.add_argument(
        "--strong", type=int, default=60, help="problems of n = 2000 at α = .10, and as many at .05"
    )
    parser.add_argument("--first", type=int, default=5000, help="seed of every group's first problem")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument(
        "--keep", type=Path, help="file for the outcomes, as JSON lines; an interrupted run continues from it"
    )
    asked = parser.parse_args()
    numbers = dict(zip(GROUPS, (asked.problems, asked.null, asked.strong, asked.strong), strict=True))
    todo = [setting for group in GROUPS for setting in settings(group, numbers[group], asked.first)]
    outcomes = [] if asked.keep is None else kept(asked.keep)
    done = {outcome.setting for outcome in outcomes}
    todo = [setting for setting in todo if setting not in done]
    with progress_bar("coverage") as update, parallel_config(backend="loky", inner_max_num_threads=1):
        update(0, len(todo), "")
        runs = Parallel(n_jobs=asked.jobs, return_as="generator")(delayed(run)(s, asked.estimator) for s in todo)
        for outcome in runs:
            outcomes.append(outcome)
            if asked.keep is not None:
                with asked.keep.open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
            update(len(outcomes) - len(done), len(todo), outcome.setting.group)
    lines = [
        "# Coverage of the novel fraction, false alarms and power",
        "",
        f"Written by `python benchmarks/coverage.py --estimator {asked.estimator} --problems {asked.problems} "
        f"--null {asked.null} --strong {asked.strong} --first {asked.first}` with openset {__version__}.",
        f"At most 2000 rows a side, 10 to 50 features; known rows shift by at most {MAX_DENSITY_RATIO:g} times.",
        f"Separable: the true densities' AUPRC is at least {SEPARABLE:g}. No upper end counts as 1.",
        "",
        *table(outcomes),
    ]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
