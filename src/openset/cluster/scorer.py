"""A run as a function of tables, for engines that bring their own rows: Ray Data, Spark, Dask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np

from openset._utils.extras import require
from openset.cluster.runs import one_thread_each, run_here
from openset.data.readers.open import open_source
from openset.data.writer import as_arrow
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.loaded_run import LoadedRun
from openset.pipeline.scored_batches import BATCH_ROWS


class Scorer:
    """Loads a run by its path or URL, once; a call scores a table of rows and returns one row for each.

    It takes a table of pyarrow, a data frame, or a dictionary of arrays (vectors as an array of two axes), and
    returns a table of pyarrow, or a dictionary for a dictionary. ``carry`` names columns that come back too, or
    is "all". Rows without the run's id column are numbered from 0 in each call. A computation takes one thread,
    so that an engine may run one scorer on each core. No rows give no rows, with the same columns.

    >>> import pyarrow as pa, tempfile, openset
    >>> data = openset.make_background_shift(n_source=300, n_target=300, n_features=4, random_state=0)
    >>> known, batch = (pa.table({f"x{i}": c for i, c in enumerate(X.T)}) for X in (data.X, data.X_target))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     known = known.append_column("kind", pa.array(data.y))
    ...     openset.run(known, batch, label="kind", method="mahalanobis").save(f"{folder}/run")
    ...     scorer = Scorer(f"{folder}/run")
    >>> scorer(batch).column_names[:4], scorer(batch).num_rows
    (['id', 'predicted', 'novelty_score', 'p_value'], 300)
    """

    def __init__(
        self,
        run: str | PathLike[str],
        *,
        id: str | None = None,
        carry: str | Sequence[str] | None = None,
    ) -> None:
        with run_here(run) as folder:
            self._loaded = LoadedRun.load(folder, id=id, carry=carry)

    def __call__(self, rows: Any) -> Any:
        """Score some rows."""
        pa = require("pyarrow", "Scoring tables", "data")
        given = _table(pa, rows) if isinstance(rows, Mapping) else rows
        source = open_source(given)
        loaded = self._loaded
        if loaded.settings.id not in source.kinds:
            loaded = replace(loaded, settings=replace(loaded.settings, id=None))
        with one_thread_each(loaded):
            if source.n_rows == 0:  # engines have empty partitions
                table = loaded.no_rows(source, nw.from_native(given, eager_only=True).to_arrow().schema)
            else:
                scored = loaded.tables(loaded.batches(source, BATCH_ROWS), 1, FactCounter(None))
                parts = [{name: as_arrow(c) for name, c in part.columns().items()} for part in scored]
                table = pa.concat_tables([pa.table(columns) for columns in parts])
        if not isinstance(rows, Mapping):
            return table
        return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def _table(pa: Any, columns: Mapping[str, Any]) -> Any:
    """Arrays by name as a table; an array of two axes is a column of vectors."""
    arrays = {}
    for name, values in columns.items():
        array = np.asarray(values)
        if array.ndim == 2:
            arrays[name] = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
        else:
            arrays[name] = pa.array(array)
    return pa.table(arrays)
