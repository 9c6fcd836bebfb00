"""``openset.score``: files of any length through a fitted run, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from openset._utils.files import check_not_input
from openset._utils.progress import progress_bar
from openset._utils.threads import mapped_ahead, one_ahead, torch_on_one_thread
from openset.data.readers.open import open_source
from openset.data.readers.records import Records
from openset.data.writer import check_writable, writing_table
from openset.errors import Parameter, ParameterError
from openset.features.fitted import read_features
from openset.features.maker import FeatureMaker
from openset.methods._network import NetworkClassifier
from openset.pipeline.batch_answer import BatchAnswer, answer_of
from openset.pipeline.batch_facts import BatchFacts, FactCounter
from openset.pipeline.fit_profile import read_profile
from openset.pipeline.load import stream
from openset.pipeline.result import FEATURES, PROFILE, load_model, read_summary
from openset.pipeline.scored_file import count_values
from openset.pipeline.scored_table import ScoredTable, assumed_ratio, predictions, scored_table
from openset.pipeline.settings import RunSettings
from openset.stats.p_values import largest_p_value

BATCH_ROWS = 8192
"""Small enough that the memory of one batch serves the next: fresh pages cost more than reading into them."""


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
    assumes). It takes the p-values of all rows, so ``data`` is then read and scored twice. The promise is for
    rows that the run was not fitted on: the fitted target's are in the run, from ``openset.run(..., fdr=...)``.

    ``csv_safe`` puts an apostrophe before text that a spreadsheet would run as a formula, in ids and labels of a
    CSV file: for files that others open, where ids or labels come from strangers.
    """
    if max_density_ratio is not None and fdr is None:
        given = Parameter("max_density_ratio", max_density_ratio)
        raise ParameterError(given, " does nothing without ", Parameter("fdr"), ": give both.")
    summary, profile = read_summary(run), read_profile(Path(run) / PROFILE)
    settings = summary.settings
    ratio = settings.max_density_ratio if max_density_ratio is None else max_density_ratio
    carried = (carry,) if isinstance(carry, str) else None if carry is None else tuple(carry)
    id = settings.id if id is None else id
    settings = replace(settings, fdr=fdr, max_density_ratio=ratio, id=id, carry=carried)
    check_writable(Path(out), csv_safe=csv_safe)
    check_not_input(Path(out), run, data)
    source = open_source(data)
    fitted = read_features(Path(run) / FEATURES)
    batches = stream(settings, source, batch_rows, fitted)
    model, maker = load_model(run), FeatureMaker(settings.encoder, fitted=fitted)
    counter = FactCounter(profile)
    write = partial(_write, partial(writing_table, Path(out), csv_safe=csv_safe), progress)
    with scoring_threads(model, settings) as workers:
        if fdr is None:
            write(scored_batches(model, maker, batches, workers, counter, settings.id))
        else:
            first = scored_batches(model, maker, batches, workers, FactCounter(None), settings.id)
            seen = _count_p_values(first, progress)
            assumed = assumed_ratio(model, ratio)
            limit = largest_p_value(list(seen), list(seen.values()), fdr, max_density_ratio=assumed)
            second = stream(settings, source, batch_rows, fitted)
            again = scored_batches(model, maker, second, workers, counter, settings.id)
            marked = (replace(scored, novel_at_fdr=scored.p_value <= limit) for scored in again)
            write(marked, expected=seen.total())
    return answer_of(counter.facts, profile, summary, source, settings.id)


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


def scoring_threads(model: Any, settings: RunSettings) -> AbstractContextManager[int]:
    """How many batches are scored at a time, torch on one thread for each.

    Encoders take far longer than reading does, and get every core; so do methods with no network.
    """
    reads_numbers = settings.text is None and settings.image is None
    on_one_thread = reads_numbers and isinstance(model, NetworkClassifier)
    return torch_on_one_thread() if on_one_thread else nullcontext(1)


def scored_batches(
    model: Any,
    maker: FeatureMaker,
    batches: Iterator[Records],
    workers: int,
    counter: FactCounter,
    id_name: str | None,
) -> Iterator[ScoredTable]:
    """Every batch scored, in order: a thread reads the next one, others score, and the caller writes.

    When a table is taken, the facts of its rows are added to ``counter``.
    """

    def scored(records: Records) -> tuple[ScoredTable, BatchFacts]:
        try:
            made = maker(records)
            found = predictions(model, made.X)
            return scored_table(model, found, records, id_name), counter.facts_of(made, found, records.rows)
        except ParameterError:  # not of a row
            raise
        except ValueError as error:
            raise ValueError(f"counted from row {records.rows[0]} of the data: {error}") from None

    with_rows = (records for records in one_ahead(batches) if len(records))
    for table, facts in mapped_ahead(scored, with_rows, workers):
        counter.add(facts)
        yield table
