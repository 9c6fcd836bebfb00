"""``tune``: what could be found in this target? Each known class in turn is treated as the new one.

The paper chooses a grid of candidate recalls like this: a known class is removed from the source and mixed into
the target, where its rows are known to be "new". No label of the target is used.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from openset._utils.arrays import as_labels, as_rows
from openset._utils.params import check_choice, check_number, check_numbers
from openset._utils.progress import progress_bar
from openset._utils.typed import plain
from openset.errors import FitWarning, Parameter, ParameterError
from openset.methods._color_defaults import LOW_GRID
from openset.methods._presets import PAPER_GRID
from openset.pipeline.verdict import give_verdict
from openset.stats.folds import keep_one_of_each, spread_positions, window
from openset.stats.metrics import auprc
from openset.stats.thresholds import share_above

GRIDS: dict[str, Sequence[float]] = {"low": LOW_GRID, "paper": PAPER_GRID}
AS_IT_IS = "as it is"
FEWEST_ROWS = 4
"""Rows of the class that a simulated target must have: three to fit on and one to test on."""
CAVEAT = (
    "A whole known class is easier to find than most new ones, its rows come from the source unshifted, and rows "
    "of a real new class count as known: simulations choose too large candidate recalls and promise too much. "
    "What is not found here will hardly be found in a real target; what is found here may still be missed."
)

Candidates = Mapping[str, Sequence[float] | Mapping[str, Any]] | Sequence[Sequence[float] | Mapping[str, Any]]


@dataclass(frozen=True)
class Simulation:
    """One fit: a class treated as new, at a share of the target."""

    candidate: str
    novel_class: Any
    novel_fraction: float
    """The share that was asked for; 0 in a control, where no row of the class was added."""
    true_fraction: float
    """That share in whole rows."""
    auprc: float
    """Of its test rows against test rows of the target: under the shift, with real new rows counted as known."""
    auprc_source: float
    """The same against test rows of the other source classes: without the shift, and without new rows."""
    recall: float
    """Share of its test rows that are called novel."""
    verdict: str
    """The words of the verdict."""
    noticed: bool
    """Whether a new class was found or probable or, by a method without a test, whether a group stands out."""
    low: float
    seconds: float


@dataclass(frozen=True)
class TuneResult:
    """The result of simulations: a table by candidate, class and share, and what follows from it."""

    table: tuple[Simulation, ...]
    controls: tuple[Simulation, ...]
    """The best candidate once more for every class, with its rows removed from the target and none added."""
    candidates: Mapping[str, Mapping[str, Any]]
    best: str
    """The candidate with the highest mean AUPRC."""
    skipped: tuple[Any, ...]
    """Classes with too few rows to be treated as new."""
    caveat: str = CAVEAT

    @property
    def best_parameters(self) -> dict[str, Any]:
        """The best candidate's parameters, for ``set_params``."""
        return dict(self.candidates[self.best])

    @property
    def mean_auprc(self) -> dict[str, float]:
        """By candidate, over classes and shares."""
        return {
            name: float(np.mean([row.auprc for row in self.table if row.candidate == name]))
            for name in self.candidates
        }

    @property
    def alarmed(self) -> tuple[Any, ...]:
        """Classes whose control noticed a new class, though no row of the class was added."""
        return tuple(row.novel_class for row in self.controls if row.noticed)

    @property
    def detectable(self) -> dict[Any, float | None]:
        """By class the smallest share at which the best candidate noticed it.

        None where it never did, and for ``alarmed`` classes, where verdicts say nothing.
        """
        found: dict[Any, float | None] = {row.novel_class: None for row in self.table}
        for row in sorted(self.table, key=lambda row: -row.novel_fraction):
            if row.candidate == self.best and row.noticed and row.novel_class not in self.alarmed:
                found[row.novel_class] = row.novel_fraction
        return found

    @property
    def notes(self) -> list[str]:
        """What to know before acting on this, the caveat first."""
        notes = [self.caveat]
        if self.alarmed:
            notes.append(
                f"A new class is noticed without any added row where {_listed(self.alarmed)} is "
                "removed: the target seems to hold a new class of its own, or known rows that shifted too far. "
                "There, verdicts say nothing about the added rows; look at AUPRC and recall."
            )
        if self.skipped:
            notes.append(f"Not simulated, because they have too few rows: {_listed(self.skipped)}.")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        content: dict[str, Any] = plain(
            {
                "best": self.best,
                "best_parameters": self.best_parameters,
                "mean_auprc": self.mean_auprc,
                "detectable": [
                    {"novel_class": label, "novel_fraction": share} for label, share in self.detectable.items()
                ],
                "table": [asdict(row) for row in self.table],
                "controls": [asdict(row) for row in self.controls],
                "notes": self.notes,
            }
        )
        return content

    def to_frame(self, backend: str = "pandas") -> Any:
        """The table and the controls as a data frame of pandas, polars or pyarrow."""
        import narwhals as nw

        check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
        rows = (*self.table, *self.controls)
        columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(Simulation)}
        return nw.from_dict(columns, backend=cast("Any", backend)).to_native()


def tune(
    X: Any,
    y: Any,
    X_target: Any,
    *,
    estimator: Any = None,
    grids: Candidates | None = None,
    novel_fractions: Sequence[float] = (0.05, 0.1),
    test_fraction: float = 0.25,
    random_state: int = 0,
    progress: bool = False,
) -> TuneResult:
    """Choose a grid, or any parameters, by treating each known class as new, and say what can be found.

    For every class: its rows are removed from the source; target rows that a classifier of the source takes for
    it are removed from the target; and some of its source rows are added to the target, at every share in
    ``novel_fractions``. Each candidate is fitted on that and measured on test rows. No target label is used.

    Read the result with care. A whole known class is easier to find than most new ones, its rows come from the
    source unshifted, and rows of a real new class count as known. In our experiments such simulations picked too
    large candidate recalls and did worse than CoLOR's own choice among heads (0018 in docs/decisions). Use them
    to see what could not be found.

    Parameters
    ----------
    X, y, X_target : as for ``fit``
    estimator : any method of openset; None for :class:`~openset.CoLOR` with its defaults
    grids : the candidates by name, or a list of them: grids of candidate recalls or dicts of parameters. None for
        ``GRIDS``; for an estimator without a grid, itself as it is
    novel_fractions : shares of the simulated target that the class makes up
    test_fraction : share of the rows kept for testing, of source, target and the class
    random_state : seed of the draws, and of an estimator that has none
    progress : show a progress bar

    There is a fit for each candidate, class and share, one for each class as a control, and one of source alone.

    >>> from openset import Mahalanobis, make_background_shift
    >>> data = make_background_shift(n_source=600, n_target=400, n_features=8, novel_fraction=0, random_state=0)
    >>> found = tune(data.X, data.y, data.X_target, estimator=Mahalanobis(fpr=0.05), novel_fractions=(0.1,))
    >>> found.best, len(found.table), found.table[0].novel_fraction
    ('as it is', 3, 0.1)
    """
    check_numbers("novel_fractions", novel_fractions, "shares such as (0.05, 0.1)", high=1)
    check_number("test_fraction", test_fraction, high=0.5, open_low=True)
    model = _seeded(estimator, random_state)
    candidates = _named(grids, model)
    labels = as_labels(y)
    rows, target = np.asarray(as_rows(X, "X")), np.asarray(as_rows(X_target, "X_target"))
    classes = np.unique(labels).tolist()
    if len(classes) < 2:
        raise ValueError("y has one class only: without it the source would have no known class.")
    shares = sorted({float(share) for share in novel_fractions})
    taken_for = _fit(clone(model), rows, labels, None).predict(target)
    stages = [
        _set_stage(rows, labels, target[taken_for != label], label, test_fraction, random_state)
        for label in classes
    ]
    usable = [stage for stage in stages if _sizes(stage, shares[0])[0] >= FEWEST_ROWS]
    if not usable:
        raise ParameterError(
            f"no class can be treated as new: it takes {FEWEST_ROWS} rows of it in source, and a target of which "
            f"{shares[0]:g} is as many ({len(target)} rows here). Use larger ",
            Parameter("novel_fractions"),
            ".",
        )
    plan = [(name, stage, share) for stage in usable for share in shares for name in candidates]
    table: list[Simulation] = []
    with progress_bar("simulating", enabled=progress) as update:

        def simulate(name: str, stage: _Stage, share: float, done: int) -> Simulation:
            update(done, len(plan) + len(usable), f"{stage.novel_class} at {share:g}")
            return _simulate(clone(model).set_params(**candidates[name]), name, stage, share, test_fraction)

        for name, stage, share in plan:
            table.append(simulate(name, stage, share, len(table)))
        best = max(candidates, key=lambda name: np.mean([row.auprc for row in table if row.candidate == name]))
        controls = tuple(simulate(best, stage, 0.0, len(plan) + done) for done, stage in enumerate(usable))
    skipped = tuple(stage.novel_class for stage in stages if stage not in usable)
    return TuneResult(tuple(table), controls, candidates, best, skipped)


@dataclass(frozen=True, eq=False)
class _Stage:
    """Rows to simulate one class as new, in random order, so that smaller shares are parts of larger ones."""

    novel_class: Any
    X: NDArray[Any]
    y: NDArray[Any]
    test: NDArray[Any]
    """Source rows of the other classes to test on."""
    target: NDArray[Any]
    novel: NDArray[Any]


def _set_stage(
    X: NDArray[Any], y: NDArray[Any], target: NDArray[Any], label: Any, test_fraction: float, seed: int
) -> _Stage:
    random = np.random.default_rng(seed)
    others, is_novel = np.flatnonzero(y != label), y == label
    codes = np.unique(y[others], return_inverse=True)[1]
    is_test = keep_one_of_each(window(spread_positions(codes, random), 0.0, test_fraction), codes)
    return _Stage(
        label,
        X[others[~is_test]],
        y[others[~is_test]],
        X[others[is_test]],
        target[random.permutation(len(target))],
        X[is_novel][random.permutation(int(is_novel.sum()))],
    )


def _sizes(stage: _Stage, share: float) -> tuple[int, int]:
    """Rows of the class and other rows of a simulated target; where the class has few, both are fewer."""
    odds = share / (1 - share)
    n_novel = min(round(odds * len(stage.target)), len(stage.novel))
    return n_novel, min(round(n_novel / odds), len(stage.target)) if odds else len(stage.target)


def _simulate(model: Any, name: str, stage: _Stage, share: float, test_fraction: float) -> Simulation:
    start = time.perf_counter()
    n_novel, n_rest = _sizes(stage, share)
    novel_test, novel_fit = _split(stage.novel[:n_novel], test_fraction)
    rest_test, rest_fit = _split(stage.target[:n_rest], test_fraction)
    _fit(model, stage.X, stage.y, np.concatenate([rest_fit, novel_fit]))
    novel, rest, source = (
        model.novelty_score(rows) if len(rows) else np.empty(0) for rows in (novel_test, rest_test, stage.test)
    )
    test = getattr(model, "novelty_test_", None)
    verdict = give_verdict(model.novel_fraction_, test, n_called=_n_called(model))
    return Simulation(
        candidate=name,
        novel_class=stage.novel_class,
        novel_fraction=share,
        true_fraction=len(novel_fit) / (len(novel_fit) + len(rest_fit)),
        auprc=_auprc(novel, rest),
        auprc_source=_auprc(novel, source),
        recall=share_above(novel, model.threshold_) if len(novel) else np.nan,
        verdict=verdict.word,
        noticed=verdict.code in ("found", "probable") or (test is None and verdict.code == "stands_out"),
        low=model.novel_fraction_.low,
        seconds=time.perf_counter() - start,
    )


def _n_called(model: Any) -> int:
    """How many rows of the fitted target are called novel."""
    return int((model.target_predictions().novelty_score > model.threshold_).sum())


def _split(rows: NDArray[Any], fraction: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows to test on, one at least, and rows to fit on."""
    n_test = min(max(round(fraction * len(rows)), 1), len(rows))
    return rows[:n_test], rows[n_test:]


def _auprc(novel: NDArray[np.floating], known: NDArray[np.floating]) -> float:
    if not len(novel):
        return np.nan  # a control
    return auprc(np.repeat([True, False], [len(novel), len(known)]), np.concatenate([novel, known]))


def _fit(model: Any, X: NDArray[Any], y: NDArray[Any], X_target: NDArray[Any] | None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # of a simulation, many times over
        return model.fit(X, y, X_target)


def _seeded(estimator: Any, seed: int) -> Any:
    if estimator is None:
        from openset.methods.color import CoLOR

        return CoLOR(random_state=seed)
    unseeded = estimator.get_params().get("random_state", seed) is None
    return clone(estimator).set_params(random_state=seed) if unseeded else estimator


def _named(grids: Candidates | None, model: Any) -> dict[str, dict[str, Any]]:
    """Candidates as parameters by name, checked against the estimator."""
    known = model.get_params()
    if grids is None:
        grids = GRIDS if "grid" in known else {AS_IT_IS: {}}
    if not isinstance(grids, Mapping):
        grids = {_name(entry): entry for entry in grids}
    if not grids:
        raise ValueError("grids is empty: give at least one grid of candidate recalls or dict of parameters.")
    candidates: dict[str, dict[str, Any]] = {}
    for name, entry in grids.items():
        candidates[name] = dict(entry) if isinstance(entry, Mapping) else {"grid": entry}
        for parameter in candidates[name].keys() - known.keys():
            raise ValueError(f"{type(model).__name__} has no parameter {parameter!r}, which {name!r} sets.")
    return candidates


def _listed(labels: Sequence[Any]) -> str:
    return ", ".join(map(str, labels))


def _name(entry: Sequence[float] | Mapping[str, Any]) -> str:
    if not isinstance(entry, Mapping):
        return "grid " + " ".join(f"{recall:g}" for recall in entry)
    return ", ".join(f"{key}={value}" for key, value in entry.items()) or AS_IT_IS
