"""What was fitted to make features of rows: blocks of table columns, vectors, text and images; one JSON file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from openset._utils.files import write_atomically
from openset._utils.typed import read_as, read_json
from openset._version import __version__
from openset.features.table.fitted import FittedTable

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Block:
    """Features that belong together: ``kind`` is table, vector, text or image; ``column`` is None for a table.

    Where there are several blocks, ``factor`` gives each the same total variance in source. ``fill`` are the
    features of a row without an image: the source's mean.
    """

    kind: str
    column: str | None = None
    factor: float = 1.0
    fill: list[float] | None = None


@dataclass(frozen=True)
class FittedFeatures:
    """The blocks in their order, the table first, and what was fitted of the table."""

    blocks: list[Block]
    table: FittedTable | None = None
    openset_version: str = __version__
    format_version: int = FORMAT_VERSION

    @property
    def columns(self) -> list[str]:
        """The columns of the data that features are made of."""
        own = [] if self.table is None else [column.name for column in self.table.used]
        return own + [block.column for block in self.blocks if block.column is not None]

    @property
    def is_scaled(self) -> bool:
        """Whether features have comparable scales already, so that a method need not scale them one by one."""
        return len(self.blocks) > 1 or (self.table is not None and self.table.mean is not None)


def write_features(fitted: FittedFeatures, path: Path) -> None:
    """Write what was fitted to a JSON file."""
    write_atomically(path, json.dumps(asdict(fitted), ensure_ascii=False, allow_nan=False).encode())


def read_features(path: Path) -> FittedFeatures | None:
    """What was fitted, from its file; None if there is no file, as in the run of an earlier openset."""
    if not path.exists():
        return None
    fitted = read_as(FittedFeatures, read_json(path), str(path))
    if fitted.format_version > FORMAT_VERSION:
        raise ValueError(f"{path}: openset {fitted.openset_version} wrote it in a later format: upgrade openset.")
    table = fitted.table
    for column in table.columns if table is not None else ():
        if problem := column.problem():
            raise ValueError(f"{path} is damaged: of column {column.name!r}, {problem}.")
    if table is not None and table.mean is not None:
        n_features = len(table.features)
        if len(table.mean) != n_features or len(table.factor or ()) != n_features:
            raise ValueError(f"{path} is damaged: its scaling is not of its {n_features} features.")
    return fitted
