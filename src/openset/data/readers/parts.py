"""Several files as one table: a pattern such as ``data/*.parquet``, or a folder of parts and hive partitions."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from openset._utils.files import extension, is_temporary
from openset._utils.text import listed
from openset.data.readers.source import Chunk, Source

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def is_pattern(path: str | Path) -> bool:
    """Whether a path stands for several files. A file that is there under this very name is one file."""
    return glob.has_magic(str(path)) and not Path(path).exists()


def part_paths(path: Path) -> list[Path]:
    """The files that a pattern names, in order; the path itself if it is none and exists."""
    if not is_pattern(path):
        return [path] if path.exists() else []
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    return [part for part in found if part.is_file() and not part.name.startswith(("_", "."))]


def parts_in(folder: Path, known: Sequence[str]) -> list[Path]:
    """The table files below a folder, in order; names that start with a dot or underscore are no parts."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and extension(path) in known
        and not any(name.startswith(("_", ".")) or is_temporary(name) for name in path.relative_to(folder).parts)
    )


def fixed_folder(pattern: Path) -> Path:
    """The folder of a pattern that holds all of its files.

    >>> fixed_folder(Path("data/*/part-[01].parquet")).as_posix()
    'data'
    """
    return Path(*takewhile(lambda part: not glob.has_magic(part), pattern.parts))


def open_parts(root: Path, name: str, paths: Sequence[Path], open_one: Callable[[Path], Source]) -> Source:
    """One source of several files of one format, whose rows follow each other in the order of the names.

    Folders below ``root`` called ``name=value`` add a column ``name`` (hive partitions). Every part must have the
    same columns, in any order.
    """
    formats = sorted({extension(path) for path in paths})
    if len(formats) > 1:
        raise ValueError(f"{name} holds files of several formats ({listed(formats)}): keep one of them.")
    parts = [open_one(path) for path in paths]
    partitions = [_partitions(path.relative_to(root)) for path in paths]
    first = {**parts[0].kinds, **_kinds(partitions[0])}
    for path, part, values in zip(paths, parts, partitions, strict=True):
        _refuse_other_columns(paths[0], first, path, {**part.kinds, **_kinds(values)})
    kinds = {column: _common(column, parts, kind) for column, kind in first.items()}
    chunks = partial(_chunks, parts, partitions)
    counts = [part.n_rows for part in parts if part.n_rows is not None]
    n_rows = sum(counts) if len(counts) == len(parts) else None
    return replace(parts[0], name=name, folder=_folder(paths), kinds=kinds, chunks=chunks, n_rows=n_rows)


def _chunks(
    parts: Sequence[Source],
    partitions: Sequence[Mapping[str, str | None]],
    columns: Sequence[str],
    batch_rows: int | None,
) -> Iterator[Chunk]:
    start = 0
    for part, values in zip(parts, partitions, strict=True):
        own = [column for column in columns if column not in values]
        # a column is needed to count rows
        read = own or [next(iter(part.kinds))]
        last = -1
        for chunk in part.chunks(read, batch_rows):
            last = max([last, *chunk.rows[-1:].tolist(), *chunk.broken])
            filled: dict[str, Any] = {column: chunk.columns[column] for column in own}
            filled |= {name: _repeated(values[name], len(chunk.rows)) for name in columns if name in values}
            broken = {row + start: reason for row, reason in chunk.broken.items()}
            yield Chunk(chunk.rows + np.int64(start), filled, broken)
        start += last + 1


def _partitions(path: Path) -> dict[str, str | None]:
    """The values in names of folders such as ``year=2024``.

    >>> _partitions(Path("data/year=2024/town=New%20York/part-0.parquet"))
    {'year': '2024', 'town': 'New York'}
    """
    pairs = (part.partition("=") for part in path.parts[:-1])
    return {name: None if value == HIVE_NULL else unquote(value) for name, mark, value in pairs if mark and name}


def _repeated(value: str | None, number: int) -> Any:
    import pyarrow as pa

    return pa.array([value] * number, pa.string())


def _kinds(values: Mapping[str, str | None]) -> dict[str, str]:
    return dict.fromkeys(values, "other")


def _common(column: str, parts: Sequence[Source], kind: str) -> str:
    kinds = {part.kinds.get(column, kind) for part in parts}
    return kinds.pop() if len(kinds) == 1 else "other"


def _folder(paths: Sequence[Path]) -> Path:
    """The folder that image paths start at, that of all parts together."""
    parents = {path.parent for path in paths}
    return parents.pop() if len(parents) == 1 else Path(*_shared([parent.parts for parent in parents]))


def _shared(names: Sequence[tuple[str, ...]]) -> list[str]:
    shared = []
    for level in zip(*names, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return shared


def _refuse_other_columns(one: Path, first: Mapping[str, str], path: Path, found: Mapping[str, str]) -> None:
    lacks, has = [name for name in first if name not in found], [name for name in found if name not in first]
    if lacks or has:
        words = [f"lacks {listed(map(repr, lacks))}"] if lacks else []
        words += [f"also has {listed(map(repr, has))}"] if has else []
        raise ValueError(f"{path} {' and '.join(words)}, unlike {one}: parts of one table have the same columns.")
