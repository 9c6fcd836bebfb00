"""The scored table of all target rows, in a file, where the fit was on a sample of them."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset._utils.params import check_choice
from openset._utils.progress import progress_bar
from openset.data.writer import writing_table
from openset.pipeline.list_rows import largest_listed
from openset.pipeline.scored_table import ScoredTable, assumed_ratio, ranks
from openset.pipeline.settings import RunSettings
from openset.stats.p_values import conformal_p_values

_BATCH_ROWS = 2**16
_BEFORE = "nearest_known"
"""The column before rank, group and novel_at_fdr, as in :meth:`ScoredTable.columns`."""

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoredFile:
    """A Parquet file with one row for each target row, in order; ``index`` has the positions of the fit's rows.

    ``group`` is null in rows that are called novel and that the fit did not have: groups are looked for among its
    own rows.
    """

    path: Path
    index: Index

    def __len__(self) -> int:
        pq = require("pyarrow.parquet", "Reading the scored target", "data")
        return int(pq.read_metadata(self.path).num_rows)

    def to_frame(self, backend: str = "pandas") -> Any:
        """All rows as a data frame of pandas, polars or pyarrow."""
        pq = require("pyarrow.parquet", "Reading the scored target", "data")
        return _as_frame(pq.read_table(self.path), backend)

    def take(self, name: str, rows: Index) -> NDArray[Any]:
        """A column of the given rows, in the given order."""
        parts, order = [], np.argsort(rows)
        for start, batch in self.batches([name]):
            here = order[slice(*np.searchsorted(rows[order], [start, start + len(batch)]))]
            if len(here):
                parts.append(batch.column(0).take(rows[here] - start).to_numpy(zero_copy_only=False))
        found = np.concatenate(parts)
        taken = np.empty(len(rows), found.dtype)
        taken[order] = found
        return taken

    def listed(self, model: Any, fdr: float, ratio: float | None, backend: str, why_none: str = "") -> Any:
        """The rows to list at a false discovery rate, surest first, as a data frame."""
        import pyarrow as pa

        check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
        of_fit = FitRows(model, self.index)
        seen: Counter[float] = Counter()
        for start, batch in self.batches(["p_value"]):
            count_values(seen, of_fit.p_values(batch.column(0).to_numpy(), start))
        limit = largest_listed(seen, fdr, assumed_ratio(model, ratio), why_none)
        kept = []
        for start, batch in self.batches(None):
            p = of_fit.p_values(batch.column("p_value").to_numpy(), start)
            kept.append(batch.filter(pa.array(p <= limit)))
        table = pa.Table.from_batches(kept)
        order = np.argsort(-table.column("novelty_score").to_numpy(), kind="stable")
        return _as_frame(table.take(order), backend)

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[int, Any]]:
        """The position of the first row, and Arrow's record batch, of every batch; None for all columns."""
        pq = require("pyarrow.parquet", "Reading the scored target", "data")
        start = 0
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=2**20) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                yield start, batch
                start += batch.num_rows


class FitRows:
    """The rows of the fit among all rows, by their positions, with p-values by members not trained on them."""

    def __init__(self, model: Any, index: Index) -> None:
        self._order = np.argsort(index)
        self._index, self._own = index[self._order], model.target_novelty_score_[self._order]
        self._p = conformal_p_values(model.calibration_scores_, self._own)

    def p_values(self, p: NDArray[np.float64], start: int) -> NDArray[np.float64]:
        """The p-values of rows from ``start`` on, with those of the fit's rows put in."""
        here = self._here(start, len(p))
        rows, has_own = self._index[here] - start, ~np.isnan(self._own[here])
        p = p.copy()
        p[rows[has_own]] = self._p[here][has_own]
        return p

    def among(self, start: int, number: int) -> tuple[Index, Index]:
        """Which of so many rows from ``start`` on are the fit's, and which row of the fit each of them is."""
        here = self._here(start, number)
        return self._index[here] - start, self._order[here]

    def _here(self, start: int, number: int) -> slice:
        return slice(*np.searchsorted(self._index, [start, start + number]).tolist())


@dataclass(frozen=True, eq=False)
class AllRows:
    """All target rows in a file, their ranks and, where rows are to be listed, p-values and their limit."""

    file: ScoredFile
    rank: NDArray[np.int64]
    p_values: Mapping[float, int]
    limit: float | None


def write_all(
    tables: Iterator[ScoredTable],
    model: Any,
    settings: RunSettings,
    index: Index,
    group: Index,
    *,
    why_none: str = "",
    progress: bool,
) -> AllRows:
    """Write the scored tables of all target rows to a temporary file, which is deleted with what is returned.

    ``index`` has the positions of the fit's rows, ``group`` their groups, 0 for none. With ``why_none``, a reason
    not to list rows, none is marked. Memory holds a batch, and
    of every row 8 bytes for its score, and 32 while rows are ranked.
    """
    folder = Path(tempfile.mkdtemp(prefix="openset-"))
    file = ScoredFile(folder / "scored.parquet", index)
    weakref.finalize(file, shutil.rmtree, folder, ignore_errors=True)
    first, of_fit = replace(file, path=folder / "first.parquet"), FitRows(model, index)
    scores: list[NDArray[np.float64]] = []
    seen: Counter[float] = Counter()
    done = 0
    with writing_table(first.path) as write, progress_bar("scoring", enabled=progress) as update:
        for scored in tables:
            write(scored.columns())
            scores.append(scored.novelty_score)
            if settings.fdr is not None:
                count_values(seen, of_fit.p_values(scored.p_value, done))
            done += len(scored)
            update(done, None, "rows")
    rank = ranks(np.concatenate(scores))
    scores.clear()
    ratio = assumed_ratio(model, settings.max_density_ratio)
    limit = None if settings.fdr is None else largest_listed(seen, settings.fdr, ratio, why_none)
    with writing_table(file.path) as write:
        for start, batch in first.batches(None):
            more: dict[str, Any] = {"rank": rank[start : start + len(batch)]}
            more["group"] = _groups(
                batch.column("novelty_score").to_numpy() > model.threshold_, start, of_fit, group
            )
            if limit is not None:
                more["novel_at_fdr"] = of_fit.p_values(batch.column("p_value").to_numpy(), start) <= limit
            write(_with(batch, more))
    first.path.unlink()
    return AllRows(file, rank, seen, limit)


def count_values(seen: Counter[float], values: NDArray[np.float64]) -> None:
    """Add how often every value occurs; however many rows there are, p-values have few distinct ones."""
    distinct, counts = np.unique(values, return_counts=True)
    seen.update(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))


def _groups(called: NDArray[np.bool_], start: int, of_fit: FitRows, group: Index) -> Any:
    """The groups of rows from ``start`` on; null in rows that are called novel and are not the fit's."""
    import pyarrow as pa

    rows, fit_rows = of_fit.among(start, len(called))
    values, unknown = np.zeros(len(called), np.int64), called.copy()
    values[rows], unknown[rows] = group[fit_rows], False
    return pa.array(values, mask=unknown)


def _with(batch: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a batch with further ones, where a :class:`ScoredTable` has them."""
    names = batch.schema.names
    cut = names.index(_BEFORE) + 1
    columns = {name: batch.column(name) for name in names}
    return {**{n: columns[n] for n in names[:cut]}, **more, **{n: columns[n] for n in names[cut:]}}


def _as_frame(table: Any, backend: str) -> Any:
    import narwhals as nw

    check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
    if backend == "pyarrow":
        return table
    frame = nw.from_native(table, eager_only=True)
    return frame.to_pandas() if backend == "pandas" else frame.to_polars()
