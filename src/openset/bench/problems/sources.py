"""What a problem is, how it is made from rows or a split, and the registry of the sources that build problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from openset._utils.hashing import arrays_sha256
from openset._utils.params import check_choice, check_number
from openset._utils.text import did_you_mean

Setting = Literal["shift", "no-shift"]
SETTINGS: tuple[Setting, ...] = ("shift", "no-shift")
OPTIONS_OF_ALL = ("label_shift",)
"""The options that every dataset takes: those of :func:`build_problem`."""


@dataclass(frozen=True)
class BenchProblem:
    """One split: the rows that a method is fitted on, the test rows, and where they came from."""

    X: NDArray[Any]
    y: NDArray[Any]
    X_target: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    y_target: NDArray[Any]
    """The truth about the target rows; never passed to ``fit``."""
    novel_fraction: float
    novel_label: Any
    manifest_checksum: str
    """Equal if and only if two problems have the same rows in the same order, and the same vocabulary where it is
    the user's own."""
    stand_in_for: str = ""
    """The dataset of the paper that this one replaces; empty if it replaces none."""
    names: Mapping[str, Any] = field(default_factory=dict)
    """Embeddings of class names and of other names, as parameters of the methods that compare with names."""
    new_subtypes: int = 1
    """How many subtypes the new class has here."""
    own_vocabulary: tuple[str, ...] = ()
    """The names in the user's own file, if it was used."""

    def rows_for(self, takes: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Source, target and test rows for a method that takes a table, cells or names: of cells, a table has the
        mean."""
        rows = self.X, self.X_target, self.X_test
        if self.X.ndim != 3 or takes == "cells":
            return rows
        source, target, test = (part.mean(axis=1) for part in rows)
        return source, target, test


@dataclass(frozen=True)
class ProblemSource:
    """A named builder of problems.

    ``build(setting, novel, seed, data_dir, **options)`` returns a :class:`BenchProblem`. ``novel`` lists the new
    classes that are used if a spec lists none. ``files`` must exist in the data folder (``*`` matches any
    characters, and of ``"a or b"`` one must exist); if they do not, the source ``stand_in`` is used instead.
    """

    name: str
    build: Callable[..., BenchProblem]
    about: str
    novel: tuple[str, ...]
    files: tuple[str, ...] = ()
    passes_on: tuple[str, ...] = ()
    """The options that ``build`` takes as ``**options``; without them it may take any."""
    stand_in: str = ""
    shift_of: str = "subtypes"
    """What has other shares in target than in source."""
    is_natural: bool = False
    """Whether the target comes from elsewhere, so that all its rows may have moved."""
    preset: str = ""
    """The preset to use instead of that of the dataset it replaces."""
    caveat: str = ""
    """What a reader of its results must know: stands on every page that has them."""
    no_oracle: str = ""
    """Why its runs have no oracle; stands below its tables."""
    prepare: Callable[..., object] | None = None
    """``prepare(data_dir, show_progress, encoder=…, **options)`` does, once, the work that its problems share.
    ``encoder`` is passed where a spec has one."""
    solve: Callable[..., dict[str, float]] | None = None
    """``solve(method, problem, **options)`` returns the metrics of an exact solution; nothing is fitted."""
    is_user_data: bool = False
    """Whether the options name the user's own file. A sweep then builds a split of each new class first, so that
    a wrong option is reported once and not by every run."""

    def check_options(self, given: Iterable[str]) -> None:
        """Raise unless these are options of ``build``, with all that it needs: each of its runs would fail."""
        parameters = signature(self.build).parameters.values()
        needed = {p.name: p.default is p.empty for p in parameters if p.kind is p.KEYWORD_ONLY}
        needed |= dict.fromkeys((*self.passes_on, *OPTIONS_OF_ALL), False)
        names = set(given)
        takes_any = not self.passes_on and any(p.kind is p.VAR_KEYWORD for p in parameters)
        for name in () if takes_any else sorted(names - needed.keys()):
            raise ValueError(
                f"unknown option {name!r}: expected some of {', '.join(needed)}.{did_you_mean(name, needed)}"
            )
        for name in (name for name, is_needed in needed.items() if is_needed and name not in names):
            raise ValueError(f"options lack {name!r}.")

    def missing_files(self, data_dir: Path | None) -> list[str]:
        """Those of ``files`` that are not in the data folder."""
        return [name for name in self.files if data_dir is None or not _is_in(data_dir, name)]


def _is_in(data_dir: Path, names: str) -> bool:
    """Whether one of the files, as ``"a or b"``, is in the data folder."""
    return any(next(data_dir.glob(name), None) is not None for name in names.split(" or "))


_SOURCES: dict[str, ProblemSource] = {}


def _registered() -> dict[str, ProblemSource]:
    from openset.bench.problems import bundled, datasets, natural, own_table  # they import this module

    if not _SOURCES:
        sources = (*bundled.SOURCES, *datasets.SOURCES, *natural.SOURCES, own_table.SOURCE)
        _SOURCES.update({source.name: source for source in sources})
    return _SOURCES


def register_source(source: ProblemSource) -> ProblemSource:
    """Add a source of problems: specs can then use its name as their dataset."""
    if source.name in (sources := _registered()):
        raise ValueError(f"a problem source named {source.name!r} is registered already.")
    sources[source.name] = source
    return source


def problem_sources() -> tuple[ProblemSource, ...]:
    """All sources, in the order of registration."""
    return tuple(_registered().values())


def get_source(name: str) -> ProblemSource:
    """Return the source of that name."""
    check_choice("dataset", name, sources := _registered())
    return sources[name]


def has_source(name: str) -> bool:
    """Whether there is a source of that name."""
    return name in _registered()


def source_for(name: str, data_dir: Path | None) -> ProblemSource:
    """Return the source of that name, or its stand-in if the source's files are not in the data folder.

    >>> source_for("sun397", None).name, source_for("digits", None).name
    ('sun', 'digits')
    """
    source = get_source(name)
    return get_source(source.stand_in) if source.stand_in and source.missing_files(data_dir) else source


def build_problem(
    dataset: str,
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None = None,
    *,
    label_shift: float | None = None,
    **options: Any,
) -> BenchProblem:
    """Build one problem; ``label_shift`` changes the shares of its known classes in target too.

    >>> problem = build_problem("synthetic", "no-shift", "novel", 0, n_source=90, n_target=50, n_test=50)
    >>> problem.X.shape, problem.novel_fraction
    ((90, 200), 0.1)
    """
    check_choice("setting", setting, SETTINGS)
    problem = get_source(dataset).build(setting, novel, seed, data_dir, **options)
    if label_shift is not None:
        problem = with_label_shift(problem, label_shift, seed)
    if not problem.own_vocabulary:
        return problem
    names = np.array(problem.own_vocabulary)
    return replace(problem, manifest_checksum=arrays_sha256(np.array(problem.manifest_checksum), names))


def problem_from_split(rows: NDArray[Any], split: Any, *, stand_in_for: str = "") -> BenchProblem:
    """Make a problem from the features of all rows and a split of :mod:`openset.shift`.

    With it a dataset's source takes a few lines: read labels and features, build the split, return this.
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
    """Drop random novel or known rows of target and test, so that novel rows have the given share.

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

    return _with_rows(problem, kept(problem.y_target), kept(problem.y_test))


def with_label_shift(problem: BenchProblem, amount: float, seed: int) -> BenchProblem:
    """Drop a share ``amount`` of the target and test rows of half of the known classes, drawn by the seed.

    Novel rows are dropped too, so that their share stays. With an odd number of classes the smaller half is
    thinned.

    >>> problem = build_problem("synthetic", "shift", "novel", 0, n_source=300, n_target=400, n_test=100)
    >>> changed = with_label_shift(problem, 0.5, seed=0)
    >>> len(changed.X) == len(problem.X), len(changed.X_target) < 350, round(changed.novel_fraction, 2)
    (True, True, 0.1)
    """
    check_number("label_shift", amount, high=1, open_low=True, open_high=True)
    classes = np.unique(problem.y)
    if len(classes) < 2:
        raise ValueError(f"label_shift={amount} needs two known classes or more, and there is {len(classes)}.")
    random = np.random.default_rng([seed, 2])
    thin = random.permutation(classes)[: len(classes) // 2]

    def kept(labels: NDArray[Any]) -> NDArray[np.intp]:
        is_novel, is_thin = labels == problem.novel_label, np.isin(labels, thin)
        stay = ~is_novel & (~is_thin | (random.random(len(labels)) >= amount))
        share = is_novel.mean()
        wanted = round(stay.sum() * share / (1 - share))
        return np.sort(
            np.concatenate([np.flatnonzero(stay), random.permutation(np.flatnonzero(is_novel))[:wanted]])
        )

    return _with_rows(problem, kept(problem.y_target), kept(problem.y_test))


def _with_rows(problem: BenchProblem, target: NDArray[np.intp], test: NDArray[np.intp]) -> BenchProblem:
    """The problem with some of its target and test rows."""
    made = problem_of(
        problem.X,
        problem.y,
        problem.X_target[target],
        problem.y_target[target],
        problem.X_test[test],
        problem.y_test[test],
        problem.novel_label,
    )
    kept = {name: getattr(problem, name) for name in ("stand_in_for", "names", "new_subtypes", "own_vocabulary")}
    return replace(made, **kept)


def problem_of(
    X: NDArray[Any],
    y: NDArray[Any],
    X_target: NDArray[Any],
    y_target: NDArray[Any],
    X_test: NDArray[Any],
    y_test: NDArray[Any],
    novel_label: Any,
) -> BenchProblem:
    """Make a problem from rows and labels."""
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
    """Raise unless ``novel`` is the one new class of a source."""
    if novel != expected:
        raise ValueError(f"novel={novel!r} is not valid for {dataset!r}: its only new class is {expected!r}.")
