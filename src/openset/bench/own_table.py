"""Your own labelled table as a dataset: some of its subtypes become rare or frequent, one is taken for new."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.bench.problems import BenchProblem, ProblemSource, Setting, problem_from_split, register_source


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
) -> BenchProblem:
    """Rows of any file that ``fit`` reads. Without a column of subtypes the classes themselves shift.

    ``novel`` is one value of that column; the rest is :func:`openset.shift.subtype_shift`'s.
    """
    from openset.shift import content_keys, subtype_shift

    for option, given in {"file": file, "label": label, "subtype": subtype or label}.items():
        _check_name(option, given)
    path = (data_dir or Path()) / file
    X, classes, subtypes = _columns(path, label, subtype or label, _names("features", features))
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
    return problem_from_split(X, split)


def _names(option: str, given: Any) -> tuple[str, ...] | None:
    """One name or several of a spec, None where it has none."""
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
    path: Path, label: str, subtype: str, features: tuple[str, ...] | None
) -> tuple[NDArray[Any], NDArray[np.str_], NDArray[np.str_]]:
    """Features, classes and subtypes; all splits share what was read."""
    from openset.data import read_table

    records = read_table(path, label=label, features=features)
    assert records.X is not None and records.y is not None
    X, subtypes = records.X, records.y
    if subtype != label:
        again = read_table(path, label=subtype, features=records.feature_names[:1])
        assert again.y is not None
        subtypes = again.y
    if subtype in records.feature_names:  # numbers of subtypes would tell the new class by themselves
        X = np.delete(X, records.feature_names.index(subtype), axis=1)
    return X, records.y.astype(str), subtypes.astype(str)


register_source(
    ProblemSource(
        "table", _own_table, "your own labelled file: options name it and its columns", novel=(), of_the_user=True
    )
)
