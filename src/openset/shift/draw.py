"""Draw a split: pools of rows by class and subtype, source, target and test rows drawn from them, the manifest.

All builders of splits share this. Of rows with equal content only the first can be drawn, with training rows
before test rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_integer, check_list, check_number
from openset.shift.columns import Columns, matches, open_set_labels, require
from openset.shift.content import first_of_each
from openset.shift.manifest import PARTS, Manifest, Rows, column_checksum, encode_rows
from openset.shift.split import ShiftSplit, split_from

Divide = Callable[[Rows, float, np.random.Generator], tuple[Rows, Rows]]
"""Divides rows into source and target, given the share of source."""


@dataclass(frozen=True)
class Cell:
    """The rows of one subtype of a class that can be drawn."""

    label: Any
    subtype: Any
    train: Rows
    test: Rows

    def __str__(self) -> str:
        return f"{self.label!r}" if self.subtype is None else f"{self.subtype!r} of {self.label!r}"


@dataclass(frozen=True)
class Pools:
    """All rows that can be drawn: a cell for every known subtype, and one for the new class."""

    known: list[Cell]
    novel: Cell
    duplicates: dict[str, int]


@dataclass(frozen=True)
class Recipe:
    """What to split and how: the columns, which of their values are known, and which are new."""

    name: str
    seed: int
    parameters: dict[str, Any]
    columns: Columns
    label: str
    """The name of the column of classes."""
    subtype: str | None
    known: list[Any]
    novel: dict[str, list[Any]]
    """A row is new if it has, in every column named here, one of the values listed."""
    novel_label: Any = None
    novel_fraction: float | None = None

    def __post_init__(self) -> None:
        check_number("novel_fraction", self.novel_fraction, high=1, open_high=True, optional=True)


def generator(random_state: int) -> np.random.Generator:
    """A generator of random numbers; the seed must be an integer, because the manifest records it."""
    check_integer("random_state", random_state, low=0)
    return np.random.default_rng(random_state)


def known_classes(
    name: str, column: NDArray[Any], known: Sequence[Any] | None, novel: Sequence[Any]
) -> list[Any]:
    """The known classes, sorted: the given ones, which must all be there, else all that are not new."""
    check_list("known", known)
    if known is None:
        classes = [label for label in np.unique(column).tolist() if label not in novel]
    else:
        classes = sorted(set(require(name, column, known)))
        both = [label for label in classes if label in novel]
        if both:
            raise ValueError(f"{', '.join(map(repr, both))} cannot be both known and novel.")
    if not classes:
        raise ValueError(f"{name} has no class beside the novel one: at least one known class is needed.")
    return classes


def make_pools(recipe: Recipe, *, test_fraction: float, random: np.random.Generator) -> Pools:
    """Sort rows into cells, one of each content. Without a split column a share of every cell is for testing."""
    check_number("test_fraction", test_fraction, high=1, open_high=True)
    columns = recipe.columns
    classes = columns[recipe.label]
    is_novel = matches(columns, recipe.novel)
    is_known = matches(columns, {recipe.label: recipe.known}) & ~is_novel
    usable = is_known | is_novel
    is_test = _test_rows(columns["split"]) if "split" in columns else np.zeros(len(classes), bool)
    kept = usable
    differing = 0
    if "content" in columns:
        kept = first_of_each(columns["content"], usable, is_test)
        labels, _ = open_set_labels(classes, is_novel, recipe.novel_label)
        differing = _contents_with_two_labels(columns["content"][usable], labels[usable])

    def cell(label: Any, subtype: Any, rows: NDArray[np.bool_]) -> Cell:
        mine = np.flatnonzero(rows & kept)
        if "split" in columns:
            return Cell(label, subtype, mine[~is_test[mine]], mine[is_test[mine]])
        test, train = divide_all(mine, test_fraction, random)
        return Cell(label, subtype, np.sort(train), np.sort(test))

    known = []
    for label in recipe.known:
        rows = is_known & (classes == label)
        if recipe.subtype is None:
            known.append(cell(label, None, rows))
        else:
            subtypes = columns[recipe.subtype]
            known.extend(cell(label, s, rows & (subtypes == s)) for s in np.unique(subtypes[rows]).tolist())
    duplicates = {"left_out": int((usable & ~kept).sum()), "under_several_labels": differing}
    return Pools(known, cell("novel", None, is_novel), duplicates)


def _test_rows(split: NDArray[Any]) -> NDArray[np.bool_]:
    others = sorted(set(split.tolist()) - {"train", "test"}, key=str)
    if others:
        raise ValueError(
            f"split holds {', '.join(map(repr, others[:5]))}: expected 'train' or 'test' in every row, "
            "or no split column."
        )
    return split == "test"


def _contents_with_two_labels(content: NDArray[Any], labels: NDArray[Any]) -> int:
    labels_of = Counter(key for key, _ in set(zip(content.tolist(), labels.tolist(), strict=True)))
    return sum(n > 1 for n in labels_of.values())


def divide_all(rows: Rows, share: float, random: np.random.Generator) -> tuple[Rows, Rows]:
    """A random share of the rows, rounded to whole rows, and the rest."""
    shuffled = random.permutation(rows)
    n = round(len(rows) * share)
    return shuffled[:n], shuffled[n:]


def divide_truncated(rows: Rows, share: float, random: np.random.Generator) -> tuple[Rows, Rows]:
    """int(n·share) rows and int(n·(1 − share)) others; because of truncation a row may be in neither."""
    shuffled = random.permutation(rows)
    first, second = int(len(rows) * share), int(len(rows) * (1 - share))
    return shuffled[:first], shuffled[first : first + second]


def draw(
    recipe: Recipe,
    pools: Pools,
    shares: Sequence[float],
    *,
    divide: Divide = divide_all,
    novel_size: Callable[[int, str], int],
    random: np.random.Generator,
) -> ShiftSplit:
    """Divide every cell by its share of source, add novel rows to target and its test rows, record all of it.

    Where the recipe has no ``novel_fraction``, ``novel_size(n, part)`` of the n novel rows are taken.
    """
    parts: dict[str, list[Rows]] = {part: [] for part in PARTS}
    proportions = []
    for cell, share in zip(pools.known, shares, strict=True):
        divided = (*divide(cell.train, share, random), *divide(cell.test, share, random))
        for part, rows in zip(PARTS, divided, strict=True):
            parts[part].append(rows)
        counts = {part: len(rows) for part, rows in zip(PARTS, divided, strict=True)}
        proportions.append({"class": cell.label, "subtype": cell.subtype, "share": float(share), **counts})
    _check_classes(proportions, recipe.known)
    fractions: dict[str, float | None] = {}
    for part, pool in (("target", pools.novel.train), ("test_target", pools.novel.test)):
        n_known = sum(map(len, parts[part]))
        n_novel = _novel_rows(recipe, part, n_known, len(pool), novel_size)
        parts[part].append(random.permutation(pool)[:n_novel])
        fractions[part] = n_novel / (n_known + n_novel) if n_known + n_novel else None
    drawn = {part: np.sort(np.concatenate(chosen)) for part, chosen in parts.items()}
    _, novel_label = open_set_labels(
        recipe.columns[recipe.label], matches(recipe.columns, recipe.novel), recipe.novel_label
    )
    manifest = Manifest(
        recipe=recipe.name,
        seed=int(recipe.seed),
        parameters=json_parameters(recipe.parameters | {"novel_fraction": recipe.novel_fraction}),
        n_rows=len(recipe.columns[recipe.label]),
        columns={name: column_checksum(values) for name, values in recipe.columns.items()},
        label=json_parameters({"column": recipe.label, "novel": recipe.novel, "novel_label": novel_label}),
        proportions=json_parameters(proportions),
        sizes={part: len(chosen) for part, chosen in drawn.items()},
        novel_fraction=fractions["target"] or 0.0,
        test_novel_fraction=fractions["test_target"],
        duplicates=pools.duplicates,
        rows={part: encode_rows(chosen) for part, chosen in drawn.items()},
    )
    return split_from(manifest, **recipe.columns)


def _check_classes(proportions: Sequence[Mapping[str, Any]], known: Sequence[Any]) -> None:
    absent = [
        label for label in known if not any(cell["source"] for cell in proportions if cell["class"] == label)
    ]
    if absent:
        raise ValueError(
            f"no row of {', '.join(map(repr, absent))} is in source, so it would look new in target: "
            "give more rows of it, a larger share of source, or remove it from the known classes."
        )
    if not any(cell["target"] for cell in proportions):
        raise ValueError("no known row is in target: give more rows, or smaller shares of source.")


def _novel_rows(
    recipe: Recipe, part: str, n_known: int, available: int, novel_size: Callable[[int, str], int]
) -> int:
    fraction = recipe.novel_fraction
    if fraction is None:
        return novel_size(available, part)
    needed = round(n_known * fraction / (1 - fraction))
    if needed > available:
        raise ValueError(
            f"novel_fraction={fraction} needs {needed} novel rows beside the {n_known} known ones of {part}, but "
            f"there are {available}: ask for at most {available / (n_known + available):.4f}, or give more rows."
        )
    return needed


def json_parameters(value: Any) -> Any:
    """Parameters as JSON data."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: json_parameters(item) for key, item in value.items()}
        return [[json_parameters(key), json_parameters(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [json_parameters(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return value
