"""What was learned from a table: plain values that are stored as JSON and applied to later batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from openset.data.readers.cells import DATE_FORMATS, ISO
from openset.features.table.column_kinds import USED

OTHER, MISSING = "(other)", "is missing"
DATE_PARTS = ("month", "day", "weekday", "hour", "elapsed days")


@dataclass(frozen=True)
class TableColumn:
    """One column of a table.

    ``kind`` is one of ``USED``, or says why the column is not used: ``constant``, ``empty``, ``id``, ``text``,
    ``nested``, ``dropped``, ``row numbers``. ``fill`` takes the place of a missing cell: the source's median, or
    its most common level. ``has_flag`` adds a feature that is 1 where the cell is missing. ``tail``: the number x
    becomes asinh(x / tail). ``levels`` are those of a category in source; with ``buckets`` they are hashed.
    ``parts`` are those of a date. ``missing`` and ``missing_in_target`` are shares of rows.
    """

    name: str
    kind: str
    fill: float | str | None = None
    has_flag: bool = False
    tail: float | None = None
    form: str = ISO
    parts: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    buckets: int = 0
    missing: float = 0.0
    missing_in_target: float = 0.0
    is_constant: bool = False
    note: str = ""

    def problem(self) -> str:
        """What keeps the column from making features; empty if nothing does. Files may be damaged."""
        if not self.is_used:
            return ""
        if self.kind == "category":
            if self.buckets < 0 or not self.levels or self.fill not in self.levels:
                return f"fill {self.fill!r} is none of its levels"
        elif not isinstance(self.fill, (int, float)) or not math.isfinite(self.fill):
            return f"fill {self.fill!r} is no number"
        if self.kind == "date" and (not self.parts or not set(self.parts) <= set(DATE_PARTS)):
            return f"{self.parts} are no parts of a date"
        if self.form != ISO and self.form not in DATE_FORMATS:
            return f"{self.form!r} is no format of dates"
        if self.tail is not None and not (math.isfinite(self.tail) and self.tail > 0):
            return f"tail {self.tail!r} is not above 0"
        return ""

    @property
    def is_used(self) -> bool:
        """Whether features are made of it."""
        return self.kind in USED

    @property
    def features(self) -> list[str]:
        """The names of its features.

        >>> TableColumn("town", "category", levels=["Bonn", "Ulm"], has_flag=True).features
        ['town=Bonn', 'town=Ulm', 'town=(other)', 'town is missing']
        """
        if not self.is_used:
            return []
        if self.kind == "category":
            own = range(self.buckets) if self.buckets else self.levels
            names = [f"{self.name}{'#' if self.buckets else '='}{part}" for part in (*own, OTHER)]
            names[-1] = f"{self.name}={OTHER}"
        elif self.kind == "date":
            names = [f"{self.name} {part}" for part in self.parts]
        else:
            names = [self.name]
        return [*names, f"{self.name} {MISSING}"] if self.has_flag else names

    @property
    def became(self) -> str:
        """What became of the column, in a few words."""
        if not self.is_used:
            return self.note
        words = _WORDS[self.kind](self)
        return "; ".join(part for part in (words, self._gaps(), self.note) if part)

    def _gaps(self) -> str:
        if not self.missing and not self.missing_in_target:
            return ""
        filled = "most common level" if self.kind == "category" else "median"
        shares = f"{100 * self.missing:.3g} % missing (target {100 * self.missing_in_target:.3g} %)"
        return f"{shares}: {filled}{' and a flag' if self.has_flag else ''}"


@dataclass(frozen=True)
class FittedTable:
    """All columns, in the order of the source, and the scaling of their features.

    ``mean`` and ``factor`` are None in a table of complete numbers, whose features are the numbers themselves.
    """

    columns: list[TableColumn]
    mean: list[float] | None = None
    factor: list[float] | None = None

    @property
    def used(self) -> list[TableColumn]:
        """The columns that features are made of."""
        return [column for column in self.columns if column.is_used]

    @property
    def features(self) -> list[str]:
        """The names of all features, in order; one that came before gets underscores behind it."""
        names: dict[str, None] = {}
        for column in self.columns:
            for name in column.features:
                while name in names:
                    name += "_"
                names[name] = None
        return list(names)

    @property
    def feature_columns(self) -> list[str]:
        """The column of every feature, in order."""
        return [column.name for column in self.columns for _ in column.features]


def _category(column: TableColumn) -> str:
    number = f"{len(column.levels)} level{'s' if len(column.levels) > 1 else ''}"
    return f"{number} in {column.buckets} hashed columns" if column.buckets else f"{number}, a column each"


_WORDS = {
    "number": lambda column: "as it is" if column.tail is None else "its logarithm, as its tail is heavy",
    "boolean": lambda column: "1 for true, 0 for false",
    "duration": lambda column: "seconds",
    "date": lambda column: ", ".join(column.parts),
    "category": _category,
}
