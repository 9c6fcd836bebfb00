"""What is told of the data of a run: files with their digests, and what became of every column."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from openset._utils.hashing import path_sha256, sha256
from openset.data.readers.parts import part_paths
from openset.data.readers.records import Records
from openset.features.base import Encoder
from openset.features.fitted import FittedFeatures
from openset.pipeline.data_used import ColumnUse, Data, EncodedColumn, Origin
from openset.pipeline.load import RunData


def describe_data(data: RunData, fitted: FittedFeatures, encoders: Mapping[str, Encoder]) -> Data:
    """The data of a run, with what was fitted to make features of it, and the encoders of text and images."""
    settings = data.settings
    columns = [*(fitted.table.columns if fitted.table is not None else ()), *data.unread]
    encoded = [
        EncodedColumn(block.kind, block.column, encoders[block.kind].name, encoders[block.kind].fingerprint)
        for block in fitted.blocks
        if block.kind in encoders
    ]
    return Data(
        source=_origin(settings.source, data.source),
        target=_origin(settings.target, data.target),
        label=settings.label,
        id=settings.id,
        features=fitted.columns,
        left_out=[column.name for column in columns if not column.is_used],
        columns=[ColumnUse(column.name, column.kind, column.became, len(column.features)) for column in columns],
        encoded=encoded,
    )


def digest_of(path: str) -> str:
    """The digest of a file, of a folder, or of all files that a pattern names."""
    paths = part_paths(Path(path))
    if len(paths) == 1:
        return path_sha256(paths[0])
    return sha256("".join(f"{part}\0{path_sha256(part)}\0" for part in paths))


def _origin(path: str | None, records: Records) -> Origin:
    drawn, sha256_ = records.drawn, None if path is None else digest_of(path)
    if drawn is None:
        return Origin(path, len(records), records.n_skipped, sha256_)
    return Origin(
        path, drawn.n_rows, records.n_skipped, sha256_, len(records), drawn.by, len(records) - drawn.n_alike
    )
