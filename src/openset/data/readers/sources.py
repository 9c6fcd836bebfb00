"""Opening what a user has: a file by its extension, a folder of images, or a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from openset._utils.arrays import as_objects
from openset._utils.extras import require_pyarrow
from openset._utils.files import existing, extension
from openset._utils.text import listed
from openset.data.readers.arrays import open_npy, open_npz
from openset.data.readers.arrow_files import open_csv, open_ipc, open_parquet, refuse_repeated
from openset.data.readers.chunk import Chunk, Source, sliced
from openset.data.readers.columns import arrow_kind, is_arrow, kind_of
from openset.data.readers.images import list_images
from openset.data.readers.json_lines import read_json_lines

_SAMPLE = 1000  # rows looked at to tell what the columns of a file without a schema hold
_JSON_CHUNK = 65536


def open_source(source: Any) -> Source:
    """The source behind a path or a frame (pandas, polars, pyarrow)."""
    if nw.dependencies.is_into_dataframe(source):
        return _open_frame(source)
    if not isinstance(source, (str, Path)):
        raise ValueError(f"a path or a data frame is needed, got {type(source).__name__}.")
    path = existing(source, "Give the path of a table, an array file or a folder of images.")
    if path.is_dir():
        return _open_image_folder(path)
    suffix = extension(path)
    opener = OPENERS.get(suffix)
    if opener is None:
        raise ValueError(
            f"{path}: the extension {suffix!r} is unknown. Known are {listed(OPENERS, len(OPENERS))}."
        )
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: it has no bytes at all.")
    return opener(path)


def _open_frame(frame: Any) -> Source:
    require_pyarrow("Reading data frames")
    try:
        native = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"the data frame has columns of one name: rename them. {error}") from None
    refuse_repeated([str(name) for name in native.columns], "the data frame")
    columns = {str(name): _frame_column(native.get_column(name)) for name in native.columns}
    kinds = {
        name: arrow_kind(column.type) if is_arrow(column) else kind_of(column[:_SAMPLE])
        for name, column in columns.items()
    }
    return Source("the data frame", Path(), kinds, partial(sliced, "the data frame", columns))


def _frame_column(series: Any) -> Any:
    """As Arrow; a column of mixed types, which Arrow refuses, as a list, so that the bad rows can be told."""
    native = series.to_native()
    if is_arrow(native):
        return native
    try:
        return series.to_arrow()
    except Exception:  # each library has its own error for mixed types
        return [None if value is None or value != value else value for value in series.to_list()]


def _open_image_folder(path: Path) -> Source:
    names = list_images(path)
    if not names:
        raise ValueError(f"{path} is a folder without images: expected <class>/<name>.jpg or the like.")
    columns: dict[str, Any] = {"image": as_objects(names)}
    defaults = {"image": "image", "id": "image"}
    inside = [name for name in names if "/" in name]
    if inside and len(inside) < len(names):
        loose = [name for name in names if "/" not in name]
        raise ValueError(
            f"{path} has {len(loose)} images beside the class folders ({listed(loose)}): move them into one."
        )
    if inside:
        columns["label"] = np.asarray([name.split("/")[0] for name in names])
        defaults["label"] = "label"
    kinds = dict.fromkeys(columns, "other")
    return Source(str(path), path, kinds, partial(sliced, str(path), columns), defaults=defaults)


def _json_chunks(path: Path, columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    """Lines are parsed one at a time; a line that is no object is a broken row, a blank one is none."""
    lines = enumerate(read_json_lines(path))
    while batch := list(islice(lines, batch_rows or _JSON_CHUNK)):
        good = [(row, value) for row, value in batch if isinstance(value, dict)]
        yield Chunk(
            np.asarray([row for row, _ in good], dtype=np.int64),
            {name: [value.get(name) for _, value in good] for name in columns},
            {row: problem for row, problem in batch if isinstance(problem, str)},
        )


def _open_json_lines(path: Path) -> Source:
    sample = list(islice(read_json_lines(path), _SAMPLE))
    objects = [value for value in sample if isinstance(value, dict)]
    if not sample:
        raise ValueError(f"{path} has no rows: all of its lines are blank.")
    if not objects:
        raise ValueError(f"{path}: no line holds a JSON object {{…}}. Of the first line: {sample[0]}.")
    names = dict.fromkeys(name for value in objects for name in value)
    kinds = {name: kind_of(value.get(name) for value in objects) for name in names}
    return Source(str(path), path.parent, kinds, partial(_json_chunks, path))


OPENERS: dict[str, Callable[[Path], Source]] = {
    ".parquet": open_parquet,
    ".csv": open_csv,
    ".csv.gz": open_csv,
    ".tsv": open_csv,
    ".tsv.gz": open_csv,
    ".jsonl": _open_json_lines,
    ".jsonl.gz": _open_json_lines,
    ".ndjson": _open_json_lines,
    ".json": _open_json_lines,
    ".json.gz": _open_json_lines,
    ".arrow": open_ipc,
    ".feather": open_ipc,
    ".npy": open_npy,
    ".npz": open_npz,
}
