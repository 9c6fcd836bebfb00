"""What the report page shows, as plain data: nothing of a model, nothing of HTML."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openset.pipeline.summary import ResultSummary

MAX_TABLE_ROWS = 500
MAX_MAP_ROWS = 5000


@dataclass(frozen=True)
class Example:
    """One target row as the page shows it; ``text`` and ``image`` are its content and may be empty.

    ``image`` is a small picture as a ``data:`` address.
    """

    id: str
    score: float
    p_value: float | None
    predicted: str
    nearest_known: str
    text: str = ""
    image: str = ""


@dataclass(frozen=True)
class Group:
    """Novel rows that resemble each other, with examples that represent them."""

    name: str
    size: int
    examples: tuple[Example, ...]
    sentence: str = ""


@dataclass(frozen=True, eq=False)
class TargetMap:
    """A sample of target rows laid out in two dimensions."""

    xy: NDArray[np.floating]
    ids: tuple[str, ...]
    predicted: tuple[str, ...]
    scores: NDArray[np.floating]
    table_rows: tuple[int, ...]
    """The index of each row in the page's table, -1 for rows that are not in it."""
    n_rows: int
    """Target rows that the sample was drawn from."""
    variance_kept: float
    """Share of the features' variance that the two directions hold."""

    def __post_init__(self) -> None:
        lengths = {len(self.xy), len(self.ids), len(self.predicted), len(self.scores), len(self.table_rows)}
        if len(lengths) > 1:
            raise ValueError(f"the map's columns have different lengths: {sorted(lengths)}.")
        if len(self.xy) > MAX_MAP_ROWS:
            raise ValueError(f"the map has {len(self.xy)} rows: draw at most {MAX_MAP_ROWS}.")


@dataclass(frozen=True, eq=False)
class ReportData:
    """One run, ready to be written as a page.

    ``rows`` are the target rows of the highest scores, best first.
    """

    summary: ResultSummary
    source_scores: NDArray[np.floating]
    target_scores: NDArray[np.floating]
    rows: tuple[Example, ...]
    map: TargetMap | None = None
    groups: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        if len(self.rows) > MAX_TABLE_ROWS:
            raise ValueError(f"the table has {len(self.rows)} rows: pass at most {MAX_TABLE_ROWS}.")
