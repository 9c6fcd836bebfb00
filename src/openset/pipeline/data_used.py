"""The part of ``result.json`` on the data: files, columns, and what became of each column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from openset._utils.text import counted, listed, shortened, wrapped

MOST_COLUMNS = 20
"""How many columns a text shows."""


@dataclass(frozen=True)
class Origin:
    """Where rows were read from: path and checksum are None for a data frame.

    ``fitted`` is the number of rows that were fitted on, where these are a sample, drawn by the hash of
    ``drawn_by``, "id" or "row number"; ``more_of_rare`` of them are more than the share of rare classes.
    """

    path: str | None
    rows: int
    skipped: int
    sha256: str | None
    fitted: int | None = None
    drawn_by: str = ""
    more_of_rare: int = 0

    def fitted_text(self, role: str) -> str:
        """How many rows were fitted on.

        >>> Origin(None, 5_000_000, 0, None, 100_000, "id").fitted_text("source")
        '100000 of 5000000 source rows'
        """
        return f"{self.rows} {role} rows" if self.fitted is None else f"{self.fitted} of {self.rows} {role} rows"


@dataclass(frozen=True)
class EncodedColumn:
    """A column of text or images, and the encoder that made features of it."""

    kind: str
    column: str | None
    encoder: str
    fingerprint: str


@dataclass(frozen=True)
class ColumnUse:
    """A column of the source: what it holds, and what became of it. An unused one has no features."""

    name: str
    kind: str
    became: str
    features: int


@dataclass(frozen=True)
class Data:
    """What was read: source and target, and the columns that features are made of.

    ``columns`` says of every column of a table what became of it, ``left_out`` has those that are not used.
    ``encoded`` are the columns that went through an encoder; an earlier openset had one in ``features``.
    """

    source: Origin
    target: Origin
    label: str | None
    id: str | None
    features: list[str] | EncodedColumn
    left_out: list[str]
    columns: list[ColumnUse] = field(default_factory=list)
    encoded: list[EncodedColumn] = field(default_factory=list)

    def __post_init__(self) -> None:
        if isinstance(self.features, EncodedColumn):
            object.__setattr__(self, "encoded", [self.features])
            object.__setattr__(self, "features", [self.features.column] if self.features.column else [])

    @property
    def is_sample(self) -> bool:
        """Whether the fit was on a sample of source or target."""
        return self.source.fitted is not None or self.target.fitted is not None

    @property
    def sample_text(self) -> str:
        """Which rows were fitted on and what the answers are about; empty if all rows were."""
        if not self.is_sample:
            return ""
        origins = {"source": self.source, "target": self.target}
        sampled = {role: origin for role, origin in origins.items() if origin.fitted is not None}
        rows = " and ".join(origin.fitted_text(role) for role, origin in sampled.items())
        by = " and ".join(dict.fromkeys(origin.drawn_by for origin in sampled.values()))
        words = (
            f"Fitted on {rows}, drawn by a hash of the {by}, because more rows take more memory and time and "
            "were no better where that was measured; --fit-rows all takes every row."
        )
        if self.target.fitted is not None:
            words += (
                " All target rows are scored; the test, the groups, the known classes and the checks are about "
                "the rows fitted on."
            )
        if self.source.more_of_rare and self.source.fitted:
            above = self.source.fitted / (self.source.fitted - self.source.more_of_rare) - 1
            words += (
                f" Rare classes have {self.source.more_of_rare} source rows more than their share, so rates that "
                f"are promised for source can be up to {100 * above:.2g} % higher."
            )
        return words

    @property
    def features_text(self) -> str:
        """The features in a few words."""
        return "; ".join(self._features())

    def _features(self) -> Iterator[str]:
        encoded = {entry.column for entry in self.encoded}
        named = self.features if isinstance(self.features, list) else []
        others = [name for name in named if name not in encoded]
        made = sum(use.features for use in self.columns)
        if made > len(others):
            yield f"{made}, made of {counted(len(others), 'column')}: {listed(others, 8)}"
        elif others:
            yield f"{len(others)}: {listed(others, 8)}"
        for entry in self.encoded:
            yield f"{entry.kind} column {entry.column!r} through {entry.encoder}"

    def column_lines(self) -> list[str]:
        """What became of the columns, for a terminal; nothing where all are numbers that stay as they are."""
        told = [use for use in self.columns if (use.kind, use.became) != ("number", "as it is")]
        if not told:
            return []
        name_width = min(24, max(len(_short(use.name)) for use in told))
        lines = ["What became of the columns"]
        for use in told[:MOST_COLUMNS]:
            lines += wrapped(f"  {_short(use.name):<{name_width}}  {use.kind:<14}", use.became)
        rest = len(told) - MOST_COLUMNS
        if rest > 0:
            lines.append(f"  and {rest} more; result.json has them all")
        plain = len(self.columns) - len(told)
        return [*lines, f"  {counted(plain, 'more column')} of numbers, as they are"] if plain else lines


def _short(name: str) -> str:
    return shortened(" ".join(name.split()) or repr(name), 24)
