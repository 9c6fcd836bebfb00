"""What ``openset score`` says of a batch: how many rows are called new, and is it like the fit's rows?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

from openset._utils.text import listed, shortened, wrapped
from openset.align.moved_since_fit import FEWEST, MoveSinceFit, find_move_since_fit, most_moved_features
from openset.data.readers.tables import holds_row_numbers
from openset.pipeline.batch_facts import BatchFacts
from openset.pipeline.fit_profile import Columns, FitProfile
from openset.pipeline.summary import ListedRows, ResultSummary
from openset.stats.ranges import Outside, Ranges, features_outside, is_far_outside
from openset.stats.shares import binomial_interval

CONFIDENCE = 0.95
MOST_COLUMNS = 5
"""How many columns a text shows."""
_HOLDS = {"number": "numbers", "vector": "vectors"}


@dataclass(frozen=True)
class CalledShare:
    """The share of rows that are called novel, with the exact binomial interval of the count."""

    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Moved:
    """Did the batch move away from the fit's rows? ``answer`` is ``yes``, ``no`` or ``unknown``.

    ``overlap`` and ``overlap_with_source`` are those of :class:`~openset.align.moved.Move`, with the fit's target
    and its source; below ``limit`` most rows lie where that domain had none. ``columns`` are those that moved
    most, where the batch moved and columns have names.
    """

    answer: str
    sentence: str
    overlap: float | None = None
    overlap_with_source: float | None = None
    limit: float | None = None
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class OutOfRange:
    """A column with rows outside of its range in the fit: how many, and both ranges."""

    column: str
    rows: int
    share: float
    fit_low: float
    fit_high: float
    low: float
    high: float
    sentence: str


@dataclass(frozen=True)
class ChangedColumn:
    """A column that holds something else than in the fit's target: ``number``, ``vector`` or ``other``."""

    column: str
    at_fit: str
    now: str


@dataclass(frozen=True)
class FitVerdict:
    """The verdict of the run that scored the batch: its code, and the reason where it is ``cannot_tell``."""

    code: str
    reason: str = ""


@dataclass(frozen=True)
class BatchAnswer:
    """What scoring a batch found; ``answer()`` says it in words, ``answer.to_dict()`` for programs.

    ``called_novel`` of ``rows`` rows are called novel. ``called_share_at_fit`` is that share of the fit's target.
    ``out_of_range`` has the columns to check, ``new_columns`` those that neither source nor target had.
    ``not_compared`` says why the batch could not be compared with the fit's rows; it is empty where it was.
    ``cells`` says which levels were never seen in source, and which values are missing or cannot be read.
    ``fit_verdict`` is that of the run. ``cannot_tell`` says why the number of rows called new must not be
    trusted: the batch moved, or the verdict of the run was "cannot tell"; it is empty where it may be.
    ``listed`` are the rows marked at a false discovery rate, where one was given.

    ``int(answer)`` is the number of rows.
    """

    rows: int
    called_novel: int
    called_share: CalledShare
    called_share_at_fit: float
    moved: Moved
    ranges_compared: bool
    out_of_range: list[OutOfRange]
    new_columns: list[str]
    changed_columns: list[ChangedColumn]
    not_compared: str = ""
    cells: list[str] = field(default_factory=list)
    fit_verdict: FitVerdict | None = None
    cannot_tell: str = ""
    listed: ListedRows | None = None

    def __int__(self) -> int:
        return self.rows

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, under the names of the fields."""
        return asdict(self)

    def __call__(self) -> str:
        """The answer in words, at most 80 columns wide."""
        share = self.called_share
        called = (
            f"{self.called_novel} of {self.rows} rows, {percent(share.value)} % "
            f"({percent(share.low)} to {percent(share.high)} %); "
            f"{percent(self.called_share_at_fit)} % when the run was fitted"
        )
        lines = wrapped("Called new      ", called)
        if self.fit_verdict is not None and self.fit_verdict.reason:
            reason = f'its verdict was "cannot tell": {self.fit_verdict.reason}'
            words = f"{reason} Do not trust its scores before that is corrected."
            lines = [*wrapped("Run             ", words), *lines]
        if self.listed is not None:
            lines += wrapped(f"{f'At FDR {self.listed.fdr:g}':<16}", self._list())
        lines += [line for sentence in self.cells for line in wrapped("Cells           ", sentence)]
        if self.not_compared:
            return "\n".join(lines + wrapped("Not compared    ", self.not_compared))
        lines += wrapped("Moved           ", f"{self.moved.answer}. {self.moved.sentence}")
        return "\n".join(lines + self._ranges() + self._columns())

    def _list(self) -> str:
        assert self.listed is not None
        if self.listed.rows:
            return f"{self.listed.text}; column novel_at_fdr marks them"
        ranked = "Column novelty_score ranks all rows." if not self.listed.why_none else ""
        return " ".join(part for part in (f"{self.listed.text}.", ranked, self.listed.next_step) if part)

    def _ranges(self) -> list[str]:
        if not self.ranges_compared:
            return []
        if not self.out_of_range:
            return wrapped("Out of range    ", "no column, beyond what chance explains")
        shown = [found.sentence for found in self.out_of_range[:MOST_COLUMNS]]
        lines = [line for sentence in shown for line in wrapped("Out of range    ", sentence)]
        more = len(self.out_of_range) - len(shown)
        return lines + ([f"                and {more} more columns; --json lists them"] if more else [])

    def _columns(self) -> list[str]:
        lines: list[str] = []
        if self.new_columns:
            names = listed(map(_named, self.new_columns), MOST_COLUMNS)
            lines += wrapped("New columns     ", f"{names}: not in the fit's data, so not used")
        if self.changed_columns:
            changes = [
                f"{_named(entry.column)} holds {_holds(entry.now)} (in the fit's target {_holds(entry.at_fit)})"
                for entry in self.changed_columns
            ]
            lines += wrapped("Changed columns ", listed(changes, MOST_COLUMNS))
        return lines


class HasColumns(Protocol):
    """Data whose columns hold numbers, vectors or other values; ``typed`` is False for CSV."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """What each column holds."""

    @property
    def typed(self) -> bool:
        """Whether the file says so."""


def answer_of(
    facts: BatchFacts, profile: FitProfile | None, fit: ResultSummary, data: HasColumns, id: str | None
) -> BatchAnswer:
    """The answer for a batch of these facts, read from ``data`` with the id column ``id``."""
    low, high = binomial_interval(facts.called_novel, facts.rows, CONFIDENCE)
    moved, verdict = _moved(facts, profile), _fit_verdict(fit)
    columns = Columns() if profile is None else profile.columns
    new, changed = columns.new_in(data.kinds), columns.changed_in(data.kinds, data.typed)
    return BatchAnswer(
        rows=facts.rows,
        called_novel=facts.called_novel,
        called_share=CalledShare(facts.called_novel / facts.rows, low, high, CONFIDENCE),
        called_share_at_fit=fit.called_novel / fit.data.target.rows,
        moved=moved,
        ranges_compared=facts.outside is not None,
        out_of_range=_out_of_range(facts.outside, profile),
        new_columns=[name for name in new if name != id and not holds_row_numbers(name)],
        changed_columns=[ChangedColumn(name, *kinds) for name, kinds in changed.items()],
        not_compared=_NO_PROFILE if profile is None else "",
        cells=facts.notes.sentences(),
        fit_verdict=verdict,
        cannot_tell=MOVED if moved.answer == "yes" else RUN_CANNOT_TELL if verdict.reason else "",
    )


MOVED = "the batch moved away from the rows of the fit"
RUN_CANNOT_TELL = 'the verdict of the run was "cannot tell"'


def _fit_verdict(fit: ResultSummary) -> FitVerdict:
    """The verdict of a run; the reason is that of the first failed check, or of the test."""
    if fit.verdict.code != "cannot_tell":
        return FitVerdict(fit.verdict.code)
    failed = [check.sentence for check in fit.checks if check.state == "failed"]
    return FitVerdict(fit.verdict.code, failed[0] if failed else fit.verdict.sentence)


_NO_PROFILE = (
    "An earlier openset wrote this run without a profile of its rows, so moves and ranges cannot be compared: "
    "fit again to compare them."
)


def _moved(facts: BatchFacts, profile: FitProfile | None) -> Moved:
    if profile is None or facts.sample is None:
        return Moved("unknown", _NO_PROFILE)
    fewest = min(len(profile.source_rows), len(profile.target_rows), facts.rows)
    if fewest < FEWEST:
        whose = "batch" if facts.rows == fewest else "fit"
        return Moved("unknown", f"The {whose} has {fewest} rows; it takes {FEWEST} to tell.")
    rows = profile.scaled(facts.sample.rows).astype(np.float64)
    source, target = (part.astype(np.float64) for part in (profile.source_rows, profile.target_rows))
    move = find_move_since_fit(source, target, rows)
    names = profile.feature_names
    columns = [names[i] for i in most_moved_features(target, rows, 3)] if move.is_moved and names else []
    return Moved(
        answer="yes" if move.is_moved else "no",
        sentence=_move_sentence(move, columns),
        overlap=move.from_target.overlap,
        overlap_with_source=move.from_source.overlap,
        limit=move.from_target.limit,
        columns=columns,
    )


def _move_sentence(move: MoveSinceFit, columns: list[str]) -> str:
    overlap = f"overlap {move.from_target.overlap:.2f}"
    if not move.is_moved and not move.from_target.is_moved:
        return f"The batch lies where the target of the fit lay ({overlap})."
    if not move.is_moved:
        return (
            f"The batch lies where the source of the fit lay, hardly where its target did ({overlap}): it has "
            "another mix of the known kinds."
        )
    most = f" Moved most: {listed(map(_named, columns))}." if columns else ""
    if not move.from_source.is_moved:
        return (
            f"The target of the fit lay away from its source, and this batch lies with the source ({overlap})."
            f"{most} Do not trust its scores: fit again with this batch as target."
        )
    return (
        f"Most rows lie where the fit had none ({overlap}): the batch moved as a whole, or more than half of its "
        f"rows are new.{most} Do not trust its scores before you know which; if the rows are right, fit again "
        "with this batch as target."
    )


def _out_of_range(found: Outside | None, profile: FitProfile | None) -> list[OutOfRange]:
    if found is None or profile is None or profile.ranges is None:
        return []
    names, ranges = profile.feature_names, profile.ranges
    far = is_far_outside(found, ranges)
    return [_of_column(names[i], int(i), found, ranges, bool(far[i])) for i in features_outside(found, ranges)]


def _of_column(name: str, i: int, found: Outside, fit: Ranges, is_far: bool) -> OutOfRange:
    rows, share = int(found.counts[i]), float(found.counts[i] / found.n_rows)
    fit_low, fit_high, low, high = (float(ends[i]) for ends in (fit.low, fit.high, found.low, found.high))
    is_constant = fit_low == fit_high
    fitted = f"{fit_low:.4g}, the only value" if is_constant else f"{fit_low:.4g} to {fit_high:.4g}, the range"
    if share >= 0.5:
        advice = "Is it in another unit, or another column under this name?"
    elif is_far:
        advice = "Look for another unit, or a code for missing values."
    else:
        advice = "The model was fitted without such values: look at these rows, or fit again with some of them."
    sentence = (
        f"{_named(name)}: {rows} of {found.n_rows} rows ({percent(share)} %) lie outside {fitted} in the fit; "
        f"the batch has {f'{low:.4g} to' if low < high else 'only'} {high:.4g}. {advice}"
    )
    return OutOfRange(name, rows, share, fit_low, fit_high, low, high, sentence)


def percent(share: float) -> str:
    """A share in percent with one decimal, or with one digit where the decimal would be 0.

    >>> percent(0.0186), percent(0.00002), percent(2e-7), percent(0.0), percent(1.0)
    ('1.9', '0.002', '0.00002', '0.0', '100.0')
    """
    decimals = 1 if share == 0 else max(1, -math.floor(math.log10(100 * share)))
    return f"{100 * share:.{decimals}f}"


def _named(column: str) -> str:
    return shortened(" ".join(column.split()), 30)


def _holds(kind: str) -> str:
    return _HOLDS.get(kind, "no numbers")
