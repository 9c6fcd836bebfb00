"""JSON lines, plain or gzipped, parsed one line at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.text import shortened
from openset.data.readers.boundary import reading
from openset.data.readers.columns import kind_of
from openset.data.readers.packed import open_unpacked
from openset.data.readers.source import SAMPLE, Chunk, Source
from openset.errors import UnreadableError

_CHUNK_ROWS = 65536
LONGEST_LINE = 2**26
"""Bytes of a line. A longer one is read into memory whole, and is rather one JSON list than lines."""


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
    with reading(path, "file of JSON lines"), open_unpacked(path) as lines:
        while line := lines.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise UnreadableError(f"{path}: a line is longer than 64 MB. Write one JSON object per line.")
            if line.strip():
                yield _parse(line)


def _parse(line: bytes) -> dict[str, Any] | str:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except (ValueError, RecursionError) as error:  # no JSON, a number of thousands of digits, nested without end
        return f"it is not JSON ({shortened(str(error), 80)})"
    return value if isinstance(value, dict) else f"it holds a {type(value).__name__}, not an object {{…}}"
