"""``openset.score``: files of any length through a fitted run, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from openset.data.records import Records
from openset.data.writing import check_writable, writing_table
from openset.features import FeatureMaker, stream
from openset.methods.neural import NetworkClassifier
from openset.progress import progress_bar
from openset.result import load_model, read_run_settings, read_summary
from openset.scoring import ScoredTable, score_rows
from openset.threads import a_core_to_spare, one_ahead

BATCH_ROWS = 8192
"""Small enough that the memory of one batch serves the next: fresh pages cost more than reading into them."""


def score(
    run: str | PathLike[str],
    data: Any,
    out: str | PathLike[str],
    *,
    id: str | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: bool = False,
) -> int:
    """Score every row of ``data`` with a saved run and write them to ``out``; gives the number of rows.

    Each row gives one row, in order, with its id (of the run's id column or ``id``; numbered from 0 without).
    Formats are those of the extensions. ``out`` appears, in place of a file that is there, when all is written.
    A row that cannot be used is an error that names it.
    """
    settings = read_run_settings(read_summary(run))
    settings = settings if id is None else replace(settings, id=id)
    check_writable(Path(out))
    batches = stream(settings, data, batch_rows)
    model, maker = load_model(run), FeatureMaker(settings)
    # encoders take far longer than reading does, and get every core
    reads_numbers = settings.text is None and settings.image is None
    spared = a_core_to_spare() if reads_numbers and isinstance(model, NetworkClassifier) else nullcontext()
    done = 0
    with writing_table(Path(out)) as write, progress_bar("scoring", enabled=progress) as update, spared:
        # three at once: a thread reads the next batch, one scores this batch, this one writes the batch before
        for scored in one_ahead(_scored(model, maker, one_ahead(batches))):
            write(scored.columns())
            done += len(scored)
            update(done, None, "rows")
    return done


def _scored(model: Any, maker: FeatureMaker, batches: Iterator[Records]) -> Iterator[ScoredTable]:
    for records in batches:
        if not len(records):
            continue
        ids = records.rows if records.ids is None else records.ids
        try:
            scored = score_rows(model, maker(records), ids)
        except ValueError as error:
            raise ValueError(f"in rows {records.rows[0]} to {records.rows[-1]}: {error}") from None
        yield scored
