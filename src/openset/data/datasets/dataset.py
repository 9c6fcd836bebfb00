"""``Dataset``: the labelled rows of a dataset and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset.data.readers.images import ImageFiles


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled rows, one array for each column, all in the same row order.

    ``label`` is the class, ``subtype`` the finer class within it. A model sees ``features``, ``texts`` or
    ``images``; those that the dataset lacks are None. ``stand_in_for`` names the dataset that this one replaces,
    if any.

    >>> data = Dataset("toy", "A toy", citation="nobody", label=np.array(["a", "a", "b"]), features=np.eye(3))
    >>> len(data), data.take([2, 0]).label.tolist()
    (3, ['b', 'a'])
    """

    name: str
    title: str
    citation: str
    label: NDArray[Any]
    stand_in_for: str | None = None
    subtype: NDArray[Any] | None = None
    sentiment: NDArray[np.int8] | None = None  # 0 negative, 1 positive
    split: NDArray[Any] | None = None
    features: NDArray[Any] | None = None
    texts: NDArray[np.object_] | None = None
    images: NDArray[np.uint8] | ImageFiles | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # other values of each row in the files
    notes: tuple[str, ...] = ()  # what was dropped, and what is missing

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self._row_arrays().items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} {n}" for name, n in lengths.items())
            raise ValueError(
                f"{self.title}: columns of different lengths ({found}): the files do not belong together."
            )

    def __len__(self) -> int:
        return len(self.label)

    def _row_arrays(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        per_row = {k: v for k, v in own.items() if isinstance(v, (np.ndarray, ImageFiles))}
        return per_row | dict(self.columns)

    def take(self, rows: ArrayLike) -> Self:
        """The rows at these indices, in this order, or where a mask is true."""
        chosen = np.asarray(rows)
        parts = {name: column[chosen] for name, column in self._row_arrays().items()}
        columns = {name: parts.pop(name) for name in self.columns}
        return replace(self, **parts, columns=columns)
