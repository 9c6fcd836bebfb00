"""A split into source, target and test rows, and how to rebuild it from its manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from openset.errors import ManifestError
from openset.shift.columns import as_columns, matches, open_set_labels, same_columns
from openset.shift.manifest import PARTS, Manifest, Rows


class Parts(NamedTuple):
    """The rows and labels of a split: source and target to fit on, and test rows drawn like each of them."""

    X: Any
    y: NDArray[Any]
    X_target: Any
    y_target: NDArray[Any]
    X_test: Any
    """Test rows drawn like the target."""
    y_test: NDArray[Any]
    X_test_source: Any
    y_test_source: NDArray[Any]


@dataclass(frozen=True, eq=False)
class ShiftSplit:
    """Which rows are source, target and test, and the truth that a method must not see.

    Row numbers are ascending and refer to the caller's data; no row is in two parts. ``label`` has the class of
    every row of the data, or ``novel_label`` for rows of the new class.
    """

    source: Rows
    target: Rows
    test_source: Rows
    test_target: Rows
    label: NDArray[Any]
    novel_label: Any
    novel_fraction: float
    """The share of target rows that are of the new class."""
    manifest: Manifest

    def __post_init__(self) -> None:
        rows = np.concatenate([getattr(self, part) for part in PARTS])
        if len(np.unique(rows)) < len(rows):
            raise ManifestError("the parts share rows: source, target and test must be disjoint.")
        if rows.size and rows.max() >= len(self.label):
            raise ManifestError(f"row {rows.max()} is in a part, but the data has {len(self.label)} rows.")

    def take(self, X: Any) -> Parts:
        """Return the parts of X (an array, a memory map, a data frame, a list of texts) and their labels.

        Of an array on disk only the rows of the split are read.
        """
        rows = X if hasattr(X, "shape") else np.asarray(X)
        is_frame = nw.dependencies.is_into_dataframe(X)
        if len(rows) != len(self.label):
            raise ValueError(f"X has {len(rows)} rows, but the split was made for {len(self.label)}.")
        order = (self.source, self.target, self.test_target, self.test_source)
        taken = [
            nw.from_native(X, eager_only=True)[part].to_native() if is_frame else rows[part] for part in order
        ]
        return Parts(*(item for x, part in zip(taken, order, strict=True) for item in (x, self.label[part])))

    @property
    def unseen_subtypes(self) -> list[tuple[Any, Any]]:
        """Known (class, subtype) pairs with rows in target but none in source: to a method they look new."""
        return [
            (cell["class"], cell["subtype"])
            for cell in self.manifest.proportions
            if cell["source"] == 0 and cell["target"] > 0
        ]

    @property
    def effective_size(self) -> float:
        """The effective number of source rows, with every subtype weighted to its share of target.

        This is (Σw)²/Σw² over source rows, with w the target-to-source ratio of the row's class and subtype.
        """
        cells = [cell for cell in self.manifest.proportions if cell["source"]]
        total = sum(cell["target"] for cell in cells)
        return total**2 / sum(cell["target"] ** 2 / cell["source"] for cell in cells) if total else 0.0

    def describe(self) -> str:
        """Describe the split in a few sentences."""
        made = self.manifest
        sentences = [
            f"{made.recipe}, seed {made.seed}: {len(self.source)} source and {len(self.target)} target rows, "
            f"{self.novel_fraction:.1%} of the target new.",
            f"For testing {len(self.test_source)} source and {len(self.test_target)} target rows.",
        ]
        if made.duplicates["left_out"]:
            sentences.append(f"{made.duplicates['left_out']} rows were left out as copies of others.")
        if self.unseen_subtypes:
            listed = ", ".join(f"{subtype} of {known}" for known, subtype in self.unseen_subtypes)
            sentences.append(f"Known subtypes without a row in source: {listed}.")
        return " ".join(sentences)

    __str__ = describe


def split_from(manifest: Manifest, **columns: Any) -> ShiftSplit:
    """The split of a manifest; the columns must be those it was made from."""
    rule = manifest.label
    labels, novel_label = open_set_labels(
        columns[rule["column"]], matches(columns, rule["novel"]), rule["novel_label"]
    )
    parts = {part: manifest.part(part) for part in PARTS}
    return ShiftSplit(
        **parts,
        label=labels,
        novel_label=novel_label,
        novel_fraction=manifest.novel_fraction,
        manifest=manifest,
    )


def rebuild(manifest: Manifest | str | Path, **columns: Any) -> ShiftSplit:
    """Rebuild a split from its manifest (or the path of one) and the same columns, under the same names.

    Rows are read from the manifest and not drawn again, so the split does not depend on the machine or on
    versions. Data with another checksum is refused.

    >>> from openset.shift import background_shift
    >>> data = {"label": ["a"] * 40 + ["b"] * 40 + ["c"] * 10}
    >>> split = background_shift(**data, novel="c")
    >>> again = rebuild(split.manifest, **data)
    >>> bool((again.target == split.target).all())
    True
    """
    if not isinstance(manifest, Manifest):
        manifest = Manifest.load(manifest)
    checked = as_columns(**columns)
    same_columns(checked, manifest.columns)
    return split_from(manifest, **checked)
