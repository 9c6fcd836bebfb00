"""What a watch stores of each batch and of each model, as plain values; their names are those of ``--json``."""

from __future__ import annotations

from dataclasses import dataclass, field

from openset._utils.typed import Scalar
from openset.pipeline.batch_answer import CalledShare
from openset.stats.e_process import References, Tally


@dataclass(frozen=True)
class ModelRecord:
    """A model of the watch: the number of batches before it, and the batches it was fitted on.

    Model 0 was fitted on the run's own target. ``called_share`` is the share of its target rows that it calls
    new, ``limit`` why it can prove nothing (empty where it can). The reference rows are source rows that it was
    fitted without.
    """

    number: int
    after: int
    target: list[str]
    target_rows: int
    thresholds: list[float]
    n_reference: int
    called_share: float
    limit: str = ""

    @property
    def references(self) -> References:
        """The thresholds that fresh rows are counted at."""
        return References(tuple(self.thresholds), self.n_reference)


@dataclass(frozen=True)
class Count:
    """How many rows of a batch are above each threshold of a model."""

    model: int
    above: list[int]
    n_reference: int
    called: int = 0
    """Rows that this model calls new."""

    def joined(self, other: Count) -> Count:
        """The count of two parts of a batch, by one model."""
        above = [one + more for one, more in zip(self.above, other.above, strict=True)]
        return Count(self.model, above, self.n_reference, self.called + other.called)

    def tally(self, rows: int) -> Tally:
        """The count as the evidence takes it."""
        return Tally(rows, tuple(self.above), self.n_reference)


@dataclass(frozen=True)
class GroupRecord:
    """A group among the rows called new: its number over all batches, its share of the batch, and examples.

    ``again`` is whether a group of an earlier batch is the same.
    """

    number: int
    size: int
    share: CalledShare
    stability: float
    examples: list[Scalar]
    again: bool


@dataclass(frozen=True)
class OwnFit:
    """The fit on the whole source and this batch alone: its test of "there is no new class".

    ``p_value`` holds if no known kind is more than ``max_density_ratio`` times as common as in source; ``limit``
    says why it proves nothing. ``rows`` of the batch were fitted on.
    """

    p_value: float
    max_density_ratio: float
    rows: int
    limit: str = ""


@dataclass(frozen=True)
class BatchRecord:
    """What was found in one batch.

    ``moved`` is ``yes``, ``no`` or ``unknown``; ``counts`` has the rows above the thresholds of every model in
    use, none if the batch does not count; ``cannot_tell`` says why it does not. ``confirmed_known`` rows are not
    counted: a review confirmed that rows like them are known. Rows are called new, and grouped, by the batch's
    own fit where there is one, of at most 5000 of its rows, else by the newest model.
    """

    number: int
    name: str
    sha256: str
    rows: int
    called_novel: int
    called_share: CalledShare
    moved: str
    moved_sentence: str
    model: int
    counts: list[Count]
    groups: list[GroupRecord]
    own_fit: OwnFit | None = None
    cannot_tell: str = ""
    confirmed_known: int = 0
    notes: list[str] = field(default_factory=list)
    path: str = ""
    """Where it was read from; empty for a data frame."""
    time: str = ""
