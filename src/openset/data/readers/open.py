"""Opening a source of rows: a file by its extension, a folder of images, or a data frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw

from openset._utils.arrays import is_missing
from openset._utils.extras import require
from openset._utils.files import existing, expanded, extension
from openset._utils.text import listed
from openset.data.readers.arrow_files import open_ipc, open_parquet
from openset.data.readers.boundary import refuse_special
from openset.data.readers.columns import arrow_kind, is_arrow, kind_of
from openset.data.readers.csv_files import open_csv
from openset.data.readers.images import has_images, open_image_folder
from openset.data.readers.json_lines import open_json_lines
from openset.data.readers.numpy_files import open_npy, open_npz
from openset.data.readers.parts import fixed_folder, is_pattern, open_parts, part_paths, parts_in
from openset.data.readers.source import SAMPLE, Source, refuse_repeated, sliced

OPENERS: dict[str, Callable[[Path], Source]] = {
    ".parquet": open_parquet,
    ".csv": open_csv,
    ".csv.gz": open_csv,
    ".csv.zst": open_csv,
    ".tsv": open_csv,
    ".tsv.gz": open_csv,
    ".tsv.zst": open_csv,
    ".jsonl": open_json_lines,
    ".jsonl.gz": open_json_lines,
    ".jsonl.zst": open_json_lines,
    ".ndjson": open_json_lines,
    ".json": open_json_lines,
    ".json.gz": open_json_lines,
    ".arrow": open_ipc,
    ".feather": open_ipc,
    ".npy": open_npy,
    ".npz": open_npz,
}


def open_source(source: Any) -> Source:
    """Open a path, a pattern such as ``data/*.parquet`` or a data frame; an opened source is returned as it is.

    A folder is a table if there are table files in it, and no images.
    """
    if isinstance(source, Source):
        return source
    if nw.dependencies.is_into_dataframe(source):
        return _open_frame(source)
    if not isinstance(source, (str, Path)):
        raise ValueError(f"expected a path or a data frame, got {type(source).__name__}.")
    if is_pattern(source):
        pattern = expanded(source)
        paths = part_paths(pattern)
        if not paths:
            raise FileNotFoundError(f"{source} matches no file. Give a pattern such as 'data/*.parquet'.")
        return open_parts(fixed_folder(pattern), str(source), paths, open_file)
    path = existing(source, "Give the path of a table, an array file or a folder of images.")
    refuse_special(path)
    if path.is_dir():
        paths = [] if has_images(path) else parts_in(path, tuple(OPENERS))
        return open_parts(path, str(path), paths, open_file) if paths else open_image_folder(path)
    return open_file(path)


def open_file(path: Path) -> Source:
    """Open a file by its extension."""
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
    require("pyarrow", "Reading data frames", "data")
    try:
        native = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"the data frame has several columns of the same name: rename them. {error}") from None
    refuse_repeated([str(name) for name in native.columns], "the data frame")
    columns = {str(name): _frame_column(native.get_column(name)) for name in native.columns}
    kinds = {
        name: arrow_kind(column.type) if is_arrow(column) else kind_of(column[:SAMPLE])
        for name, column in columns.items()
    }
    chunks = partial(sliced, "the data frame", columns)
    return Source("the data frame", Path(), kinds, chunks, n_rows=len(native))


def _frame_column(series: Any) -> Any:
    """An Arrow array; a list where Arrow refuses mixed types, so that the bad rows can be named."""
    native = series.to_native()
    if is_arrow(native):
        return native
    try:
        return series.to_arrow()
    except Exception:  # each library has its own error for mixed types
        return [None if is_missing(value) else value for value in series.to_list()]
