"""Problems on your own labelled table: its subtypes get other shares in target, and one of them is new."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.bench.problems.sources import BenchProblem, ProblemSource, Setting, problem_from_split


def _own_table(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    file: str,
    label: str,
    subtype: str | None = None,
    features: str | Sequence[str] | None = None,
    known: str | Sequence[str] | None = None,
    test_fraction: float = 0.2,
    novel_share: float = 0.5,
    novel_fraction: float | None = None,
    skip_bad: bool = False,
) -> BenchProblem:
    """Rows of any file that ``fit`` reads. Without a column of subtypes the classes themselves shift.

    ``novel`` is one value of that column; the other options are those of :func:`openset.shift.subtype_shift`.
    """
    from openset.shift import content_keys, subtype_shift

    for option, given in {"file": file, "label": label, "subtype": subtype or label}.items():
        _check_name(option, given)
    path = ((data_dir or Path()) / file).resolve()
    changed = path.stat().st_mtime_ns if path.exists() else 0
    X, classes, subtypes = _columns(
        path, changed, label, subtype or label, _names("features", features), skip_bad
    )
    split = subtype_shift(
        group=classes,
        subtype=subtypes,
        novel_subtypes=[novel],
        shift=setting == "shift",
        content=content_keys(X),
        random_state=seed,
        known=_names("known", known),
        test_fraction=test_fraction,
        novel_share=novel_share,
        novel_fraction=novel_fraction,
    )
    problem = problem_from_split(X, split)
    for part, labels in (("target", problem.y_target), ("test rows", problem.y_test)):
        n_novel = int((labels == problem.novel_label).sum())
        if not 0 < n_novel < len(labels):
            raise ValueError(
                f"seed {seed} leaves {n_novel} new and {len(labels) - n_novel} known rows in the {part}, which "
                "needs both: give more rows, or a larger test_fraction or novel_share."
            )
    return problem


def _names(option: str, given: Any) -> tuple[str, ...] | None:
    """The names of an option that takes one name or a list of them; None if it is not given."""
    if given is None:
        return None
    names = tuple(given) if isinstance(given, list | tuple) else (given,)
    for name in names:
        _check_name(option, name)
    return names


def _check_name(option: str, given: Any) -> None:
    if not isinstance(given, str):
        raise ValueError(f"{option}: {given!r} is not valid: expected a name in quotes.")


@functools.lru_cache(maxsize=1)
def _columns(
    path: Path, changed: int, label: str, subtype: str, features: tuple[str, ...] | None, skip_bad: bool
) -> tuple[NDArray[Any], NDArray[np.str_], NDArray[np.str_]]:
    """Features, classes and subtypes. All splits share them; a file ``changed`` since is read again."""
    from openset.data import read_table
    from openset.data.readers.open import open_source
    from openset.data.readers.tables import numeric_columns

    columns = features or tuple(numeric_columns(open_source(path), label, subtype))
    for name in {label, subtype} & set(columns):
        raise ValueError(f"features has {name!r}, the column of classes or subtypes: remove it.")
    records = read_table(path, label=label, features=columns, skip_bad=skip_bad)
    same = subtype == label
    kinds = records if same else read_table(path, label=subtype, features=columns[:1], skip_bad=skip_bad)
    assert records.X is not None and records.y is not None and kinds.y is not None
    _, rows, again = np.intersect1d(records.rows, kinds.rows, assume_unique=True, return_indices=True)
    classes = records.y[rows].astype(str)
    if "novel" in classes:
        raise ValueError(f"{label} has a class 'novel', the name of new rows: rename the class in {path.name}.")
    return records.X[rows], classes, kinds.y[again].astype(str)


SOURCE = ProblemSource(
    "table",
    _own_table,
    "your own labelled file: options name it and its columns",
    novel=(),
    shift_of="classes or subtypes",
    is_user_data=True,
)
