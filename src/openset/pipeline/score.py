"""``openset.score``: files of any length through a fitted run, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from openset._utils.files import check_not_input
from openset._utils.progress import progress_bar
from openset.data.readers.open import open_source
from openset.data.readers.source import Source
from openset.data.writer import check_writable, writing_table
from openset.errors import Parameter, ParameterError
from openset.pipeline.batch_answer import BatchAnswer, answer_of
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.list_rows import largest_listed, listed_rows
from openset.pipeline.loaded_run import LoadedRun
from openset.pipeline.scored_batches import BATCH_ROWS
from openset.pipeline.scored_file import count_values
from openset.pipeline.scored_table import ScoredTable, assumed_ratio


def score(
    run: str | PathLike[str],
    data: Any,
    out: str | PathLike[str],
    *,
    id: str | None = None,
    carry: str | Sequence[str] | None = None,
    fdr: float | None = None,
    max_density_ratio: float | None = None,
    csv_safe: bool = False,
    batch_rows: int = BATCH_ROWS,
    progress: bool = False,
) -> BatchAnswer:
    """Score every row of ``data`` with a saved run, write them to ``out``, and say what was found.

    The answer has the number of rows, the share called novel with its interval, and how the batch compares with
    the rows that the run was fitted on: whether it moved, values outside of the fit's ranges, new columns.

    Each row gives one row, in order, with its id (of the run's id column or ``id``; numbered from 0 without).
    Extensions tell the formats. ``out`` appears, in place of a file that is there, when all is written.
    ``carry`` names columns of the data that it has too, or "all". A row that cannot be read is an error that
    names it; missing values are filled in as in the fit.

    With ``fdr`` a column ``novel_at_fdr`` marks the rows to list so that at most that share of them is known, on
    average, if known rows are at most ``max_density_ratio`` times as common as in the source (None: as the run
    assumes). None is marked if the batch moved, or if the verdict of the run was "cannot tell". It takes the
    p-values of all rows, so ``data`` is then read and scored twice. The promise is for rows that the run was not
    fitted on: the fitted target's are in the run, from ``openset.run(..., fdr=...)``.

    ``csv_safe`` puts an apostrophe before text that a spreadsheet would run as a formula, in ids and labels of a
    CSV file: for files that others open, where ids or labels come from strangers.
    """
    if max_density_ratio is not None and fdr is None:
        given = Parameter("max_density_ratio", max_density_ratio)
        raise ParameterError(given, " does nothing without ", Parameter("fdr"), ": give both.")
    check_writable(Path(out), csv_safe=csv_safe)
    check_not_input(Path(out), run, data)
    source = open_source(data)
    loaded = LoadedRun.load(run, id=id, carry=carry, fdr=fdr, max_density_ratio=max_density_ratio)
    batches = loaded.batches(source, batch_rows)
    counter = FactCounter(loaded.profile)
    write = partial(_write, partial(writing_table, Path(out), csv_safe=csv_safe), progress)
    with loaded.threads() as workers:
        if fdr is None:
            write(loaded.tables(batches, workers, counter))
            return _answer(loaded, counter, source)
        seen = _count_p_values(loaded.tables(batches, workers, counter), progress)
        answer = _answer(loaded, counter, source)
        ratio = assumed_ratio(loaded.model, loaded.settings.max_density_ratio)
        why_none = f"{answer.cannot_tell}, so nothing can be promised of a list" if answer.cannot_tell else ""
        limit = largest_listed(seen, fdr, ratio, why_none)
        again = loaded.tables(loaded.batches(source, batch_rows), workers, FactCounter(None))
        marked = (replace(scored, novel_at_fdr=scored.p_value <= limit) for scored in again)
        write(marked, expected=seen.total())
    counts = {"n_source": loaded.model.n_source_, "n_called": answer.called_novel}
    return replace(answer, listed=listed_rows(seen, fdr, ratio, **counts, why_none=why_none))


def _answer(loaded: LoadedRun, counter: FactCounter, source: Source) -> BatchAnswer:
    return answer_of(counter.facts, loaded.profile, loaded.summary, source, loaded.settings.id)


def _count_p_values(tables: Iterator[ScoredTable], progress: bool) -> Counter[float]:
    """How often every p-value occurs."""
    seen: Counter[float] = Counter()
    with progress_bar("ranking", enabled=progress) as update:
        for scored in tables:
            count_values(seen, scored.p_value)
            update(seen.total(), None, "rows")
    return seen


def _write(opened: Any, progress: bool, tables: Iterator[ScoredTable], expected: int | None = None) -> None:
    """Write every table; another number of rows than expected is an error."""
    done = 0
    with opened() as write, progress_bar("scoring", enabled=progress) as update:
        for scored in tables:
            write(scored.columns())
            done += len(scored)
            update(done, None, "rows")
        if expected is not None and done != expected:
            raise ValueError(f"the data gave {expected} rows at first and {done} when read again.")
