"""Batches of rows to scored tables, in order: one thread reads ahead, others score."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from openset._utils.threads import mapped_ahead, one_ahead, torch_on_one_thread
from openset.data.readers.records import Records
from openset.errors import ParameterError
from openset.features.maker import FeatureMaker
from openset.methods._network import NetworkClassifier
from openset.pipeline.batch_facts import BatchFacts, FactCounter
from openset.pipeline.scored_table import ScoredTable, predictions, scored_table
from openset.pipeline.settings import RunSettings

BATCH_ROWS = 8192
"""Small enough that the memory of one batch serves the next: fresh pages cost more than reading into them."""


def scoring_threads(model: Any, settings: RunSettings) -> AbstractContextManager[int]:
    """The context to score in, and how many batches to score at the same time.

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
