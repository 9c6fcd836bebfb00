"""JSON lines, plain or gzipped, parsed one line at a time."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset._utils.files import packing
from openset.data.readers.columns import kind_of
from openset.data.readers.source import SAMPLE, Chunk, Source

_CHUNK_ROWS = 65536


def open_json_lines(path: Path) -> Source:
    """A file of JSON lines. The first rows tell which columns there are and what they hold."""
    sample = list(islice(read_json_lines(path), SAMPLE))
    objects = [value for value in sample if isinstance(value, dict)]
    if not sample:
        raise ValueError(f"{path} has no rows: all of its lines are blank.")
    if not objects:
        raise ValueError(f"{path}: no line holds a JSON object {{…}}. The first line: {sample[0]}.")
    names = dict.fromkeys(name for value in objects for name in value)
    kinds = {name: kind_of(value.get(name) for value in objects) for name in names}
    return Source(str(path), path.parent, kinds, partial(_chunks, path))


def _chunks(path: Path, columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    """A line that holds no object is a broken row; a blank line is not a row."""
    lines = enumerate(read_json_lines(path))
    while batch := list(islice(lines, batch_rows or _CHUNK_ROWS)):
        good = [(row, value) for row, value in batch if isinstance(value, dict)]
        yield Chunk(
            np.asarray([row for row, _ in good], dtype=np.int64),
            {name: [value.get(name) for _, value in good] for name in columns},
            {row: problem for row, problem in batch if isinstance(problem, str)},
        )


def read_json_lines(path: Path) -> Iterator[dict[str, Any] | str]:
    """Yield the object of each line that is not blank, or a text that says what is wrong with the line."""
    try:
        with _opened(path) as lines:
            for line in lines:
                if line.strip():
                    yield _parse(line)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file ({error}): download or write it again.") from None


def _opened(path: Path) -> Any:
    if packing(path) == "zstd":
        pa = require("pyarrow", "Reading zstd files", "data")
        return io.BufferedReader(pa.input_stream(str(path), compression="zstd"))
    return gzip.open(path) if packing(path) else path.open("rb")


def _parse(line: bytes) -> dict[str, Any] | str:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except (json.JSONDecodeError, RecursionError) as error:
        return f"it is not JSON ({error})"
    return value if isinstance(value, dict) else f"it holds a {type(value).__name__}, not an object {{…}}"
