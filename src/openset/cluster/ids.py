"""Ids that occur in several parts: one pass over the id column, with the keys of ids in partitions on disk."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset._utils.text import counted, listed
from openset.cluster.folders import Folder, open_folder
from openset.cluster.records import FOLDER, SUCCESS, Record
from openset.data.readers.open import open_file

MEMORY = 2**26
"""Bytes of keys that are sorted at a time."""
_MOST_PARTITIONS = 512
"""Files that are open at the same time; systems allow a thousand."""
MOST_NAMED = 1000
"""Repeated ids that are looked up and named."""
_BATCH_ROWS = 65536


@dataclass(frozen=True)
class RepeatedId:
    """An id as text, and the parts that hold it."""

    id: str
    parts: list[str]


@dataclass(frozen=True)
class IdsAnswer:
    """How many ids were looked at in how many parts, how many occur more than once, and the first of these."""

    rows: int
    parts: int
    is_complete: bool
    n_repeated: int
    repeated: list[RepeatedId]

    def __call__(self) -> str:
        """The answer in a sentence."""
        looked_at = f"{counted(self.rows, 'id')} in {counted(self.parts, 'part')}"
        more = "" if self.is_complete else " Not all parts are there yet: there is no _SUCCESS."
        if not self.n_repeated:
            return f"{looked_at}, all different.{more}"
        named = [f"{entry.id!r} ({listed(entry.parts, 3)})" for entry in self.repeated]
        return f"{looked_at}, {self.n_repeated} of them more than once: {listed(named, 5)}.{more}"


def check_ids(out: str | PathLike[str]) -> IdsAnswer:
    """Look for ids that occur more than once in the parts that ``openset score`` wrote to a folder.

    Eight bytes for each id are written to partitions in the temporary folder and sorted one partition at a time,
    so memory does not grow with the rows. Ids found twice are then looked up: none is named by a chance of keys.
    """
    require("pyarrow", "Reading ids", "data")
    folder = open_folder(out)
    records = _records(folder)
    if not records:
        raise FileNotFoundError(
            f"{folder.url} holds no scored parts: give the folder that 'openset score' wrote to."
        )
    ids = {record.id for record in records.values()}
    if None in ids:
        raise ValueError(
            f"{folder.url} was scored without an id column, so rows are numbered from 0 in each part: there is "
            "nothing to compare. Score with --id."
        )
    rows = sum(record.facts.rows for record in records.values())
    count, keys = _repeated_keys(folder, records, rows)
    found = _named(folder, records, keys) if len(keys) else []
    chance = len(keys) - len(found)  # different ids with one key
    return IdsAnswer(rows, len(records), folder.found(SUCCESS) is not None, count - chance, found)


def _records(folder: Folder) -> dict[str, Record]:
    """The records of the parts that are there, by the part's name."""
    there = folder.files()
    found = {}
    for name in there:
        part = name.removeprefix(f"{FOLDER}/").removesuffix(".safetensors")
        if name.startswith(f"{FOLDER}/") and part in there:
            found[part] = Record.from_bytes(folder.read(name), f"{folder.url}/{name}")
    return found


def _repeated_keys(folder: Folder, records: dict[str, Record], rows: int) -> tuple[int, NDArray[np.uint64]]:
    """How many keys occur more than once, and the first of them."""
    number = min(_MOST_PARTITIONS, 2 ** math.ceil(math.log2(max(1, rows * 8 / MEMORY))))
    shift = np.uint64(64 - number.bit_length() + 1)
    with tempfile.TemporaryDirectory(prefix="openset-ids-") as temporary:
        paths = [Path(temporary) / str(i) for i in range(number)]
        with ExitStack() as files:
            opened = [files.enter_context(path.open("wb")) for path in paths]
            for part, record in records.items():
                for _, keys in _keys_of(folder, part, record):
                    _spread(keys, opened, shift)
        count, found = 0, np.empty(0, np.uint64)
        for path in paths:
            ordered = np.sort(np.fromfile(path, np.uint64))
            again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
            count += len(again)
            found = np.concatenate([found, again])[:MOST_NAMED]
    return count, found


def _spread(keys: NDArray[np.uint64], files: Sequence[IO[bytes]], shift: np.uint64) -> None:
    """Append every key to the file of its first bits."""
    if len(files) == 1:
        files[0].write(keys.tobytes())
        return
    owner = (keys >> shift).astype(np.intp)
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=len(files)))
    for file, part in zip(files, np.split(keys[order], ends[:-1]), strict=True):
        if len(part):
            file.write(part.tobytes())


def _named(folder: Folder, records: dict[str, Record], keys: NDArray[np.uint64]) -> list[RepeatedId]:
    """The ids with these keys that do occur more than once."""
    places: dict[str, list[str]] = {}
    for part, record in records.items():
        for texts, own in _keys_of(folder, part, record):
            for row in np.flatnonzero(np.isin(own, keys)).tolist():
                places.setdefault(texts[row], []).append(part)
    return [RepeatedId(id, parts) for id, parts in places.items() if len(parts) > 1]


def _keys_of(folder: Folder, part: str, record: Record) -> Iterator[tuple[list[str], NDArray[np.uint64]]]:
    """The ids of a part as text, and their keys, in batches."""
    import pyarrow as pa

    assert record.id is not None
    with folder.fetched(part) as root:
        source = open_file(root / part)
        name = record.id if record.id in source.kinds else "id"
        for chunk in source.chunks([name], _BATCH_ROWS):
            texts = pa.array(chunk.columns[name]).cast(pa.string()).to_pylist()
            yield texts, np.fromiter(map(hash, texts), np.int64, len(texts)).view(np.uint64)
