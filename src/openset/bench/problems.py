"""Where the runs' data comes from: a registry of sources, each building one problem from a few plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from openset._utils.hashing import arrays_sha256
from openset._utils.params import check_choice, check_number

Setting = Literal["shift", "no-shift"]
SETTINGS: tuple[Setting, ...] = ("shift", "no-shift")


@dataclass(frozen=True)
class BenchProblem:
    """One split: what a method is fitted on, the rows that judge it, and where the rows came from."""

    X: NDArray[Any]
    y: NDArray[Any]
    X_target: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    y_target: NDArray[Any]
    """The truth about the target rows, for reports; never given to ``fit``."""
    novel_fraction: float
    novel_label: Any
    manifest_checksum: str
    """Equal exactly where two problems hold the same rows in the same order."""
    stand_in_for: str = ""
    """The dataset of the paper that this one stands in for; empty where it is the paper's own or no one's."""


@dataclass(frozen=True)
class ProblemSource:
    """A named builder of problems.

    ``build(setting, novel, seed, data_dir, **options)`` returns a :class:`BenchProblem`; ``novel`` lists the new
    classes to run through where a spec names none, ``files`` what must lie below the data folder (``*`` stands
    for any characters). Where they do not, the source named by ``stand_in`` takes its place.
    """

    name: str
    build: Callable[..., BenchProblem]
    about: str
    novel: tuple[str, ...]
    files: tuple[str, ...] = ()
    stand_in: str = ""
    shift_of: str = "subtypes"
    """What becomes more or less frequent between source and target."""
    preset: str = ""
    """The preset that replaces the one of the data it stands in for."""
    prepare: Callable[[Path | None, str | None, bool], object] | None = None
    """``prepare(data_dir, encoder, show_progress)`` does once what all its problems need, such as encoding."""
    solve: Callable[..., dict[str, float]] | None = None
    """``solve(method, problem, **options)`` gives the metrics of a method's exact solution; nothing is fitted."""
    of_the_user: bool = False
    """Its rows are the user's own, named by options: a sweep first builds a split of each new class, so
    that a wrong word is told once and not by every run."""

    def missing_files(self, data_dir: Path | None) -> list[str]:
        """Those of ``files`` that the data folder does not hold."""
        return [name for name in self.files if data_dir is None or next(data_dir.glob(name), None) is None]


_SOURCES: dict[str, ProblemSource] = {}


def _registered() -> dict[str, ProblemSource]:
    from openset.bench import datasets, exact, own_table  # noqa: F401  (they register their problems)

    return _SOURCES


def register_source(source: ProblemSource) -> ProblemSource:
    """Add a source of problems, one's own too: specs can then name it as their dataset."""
    if source.name in _SOURCES:
        raise ValueError(f"a problem source named {source.name!r} is registered already.")
    _SOURCES[source.name] = source
    return source


def problem_sources() -> tuple[ProblemSource, ...]:
    """All sources, in the order in which they were registered."""
    return tuple(_registered().values())


def get_source(name: str) -> ProblemSource:
    """The source of that name."""
    check_choice("dataset", name, sources := _registered())
    return sources[name]


def has_source(name: str) -> bool:
    """Whether a dataset of that name can be built here."""
    return name in _registered()


def source_for(name: str, data_dir: Path | None) -> ProblemSource:
    """The source of that name, or its stand-in where the data folder does not hold the source's own files.

    >>> source_for("sun397", None).name, source_for("digits", None).name
    ('sun', 'digits')
    """
    source = get_source(name)
    return get_source(source.stand_in) if source.stand_in and source.missing_files(data_dir) else source


def build_problem(
    dataset: str, setting: Setting, novel: str, seed: int, data_dir: Path | None = None, **options: Any
) -> BenchProblem:
    """Build one problem.

    >>> problem = build_problem("synthetic", "no-shift", "novel", 0, n_source=90, n_target=50, n_test=50)
    >>> problem.X.shape, problem.novel_fraction
    ((90, 200), 0.1)
    """
    check_choice("setting", setting, SETTINGS)
    return get_source(dataset).build(setting, novel, seed, data_dir, **options)


def problem_from_split(rows: NDArray[Any], split: Any, *, stand_in_for: str = "") -> BenchProblem:
    """The problem of a shift builder's split (row numbers with labels) and the features of all rows.

    With this a dataset's source takes a few lines: read labels and features, build the split, return this.
    """
    X, X_target, X_test = (rows[part] for part in (split.source, split.target, split.test_target))
    return BenchProblem(
        X=X,
        y=split.label[split.source],
        X_target=X_target,
        X_test=X_test,
        y_test=split.label[split.test_target],
        y_target=split.label[split.target],
        novel_fraction=split.novel_fraction,
        novel_label=split.novel_label,
        manifest_checksum=arrays_sha256(np.array(split.manifest.checksum), X, X_target, X_test),
        stand_in_for=stand_in_for,
    )


def thinned(problem: BenchProblem, novel_fraction: float, seed: int) -> BenchProblem:
    """The problem with novel or known rows of target and test left out at random, for that share of novel ones.

    >>> problem = build_problem("synthetic", "shift", "novel", 0, n_source=90, n_target=50, n_test=50)
    >>> half = thinned(problem, 0.5, seed=0)
    >>> half.novel_fraction, len(half.X_target), len(half.X)
    (0.5, 10, 90)
    """
    check_number("novel_fraction", novel_fraction, high=1, open_low=True, open_high=True)
    random = np.random.default_rng([seed, 1])

    def kept(labels: NDArray[Any]) -> NDArray[np.intp]:
        is_novel = labels == problem.novel_label
        novel, known = (random.permutation(np.flatnonzero(rows)) for rows in (is_novel, ~is_novel))
        odds = novel_fraction / (1 - novel_fraction)
        n_novel = min(len(novel), round(len(known) * odds))
        return np.sort(np.concatenate([novel[:n_novel], known[: round(n_novel / odds)]]))

    target, test = kept(problem.y_target), kept(problem.y_test)
    made = problem_of(
        problem.X,
        problem.y,
        problem.X_target[target],
        problem.y_target[target],
        problem.X_test[test],
        problem.y_test[test],
        problem.novel_label,
    )
    return replace(made, stand_in_for=problem.stand_in_for)


def problem_of(
    X: NDArray[Any],
    y: NDArray[Any],
    X_target: NDArray[Any],
    y_target: NDArray[Any],
    X_test: NDArray[Any],
    y_test: NDArray[Any],
    novel_label: Any,
) -> BenchProblem:
    """A problem of given rows, with their checksum."""
    return BenchProblem(
        X=X,
        y=y,
        X_target=X_target,
        X_test=X_test,
        y_test=y_test,
        y_target=y_target,
        novel_fraction=float((y_target == novel_label).mean()),
        novel_label=novel_label,
        manifest_checksum=arrays_sha256(X, y, X_target, y_target, X_test, y_test),
    )


def check_novel(dataset: str, novel: str, expected: str) -> None:
    """Raise where a source with one new class is asked for another."""
    if novel != expected:
        raise ValueError(f"novel={novel!r} is not valid for {dataset!r}: its new class is {expected!r}.")


def _digits(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float | None = None
) -> BenchProblem:
    """The demo's digits."""
    from openset.shift.digits import NOVEL_DIGIT, digits_problem

    check_novel("digits", novel, str(NOVEL_DIGIT))
    data = digits_problem(seed, shift=setting == "shift")
    problem = problem_of(data.X, data.y, data.X_target, data.y_target, data.X_test, data.y_test, "novel")
    return problem if novel_fraction is None else thinned(problem, novel_fraction, seed)


def _synthetic(setting: Setting, novel: str, seed: int, data_dir: Path | None, **options: Any) -> BenchProblem:
    """Gaussian classes made of subtypes (:func:`openset.make_background_shift`)."""
    from openset.shift.synthetic import make_background_shift

    check_novel("synthetic", novel, "novel")
    data = make_background_shift(shift=setting == "shift", random_state=seed, **options)
    return problem_of(data.X, data.y, data.X_target, data.y_target, data.X_test, data.y_test, -1)


def _subtypes(setting: Setting, novel: str, seed: int, data_dir: Path | None, **options: Any) -> BenchProblem:
    """One known class of two subtypes; the test rows are the target of a second draw."""
    from openset.shift.synthetic import make_subtype_shift

    check_novel("synthetic-subtypes", novel, "novel")
    streams = np.random.SeedSequence(seed).spawn(2)
    data, test = (
        make_subtype_shift(shift=setting == "shift", random_state=stream, **options) for stream in streams
    )
    y = np.full(len(data.X), "known")
    y_target, y_test = (np.where(part.is_novel_target, "novel", "known") for part in (data, test))
    return problem_of(data.X, y, data.X_target, y_target, test.X_target, y_test, "novel")


register_source(ProblemSource("digits", _digits, "scikit-learn's digits in three groups; 9 is new", novel=("9",)))
register_source(
    ProblemSource("synthetic", _synthetic, "Gaussian classes of subtypes", novel=("novel",)),
)
register_source(
    ProblemSource("synthetic-subtypes", _subtypes, "one Gaussian class of two subtypes (PU)", novel=("novel",))
)
