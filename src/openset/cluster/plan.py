"""Which parts there are, what each is called in the output, and which of them a shard scores."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from openset._utils.files import extension
from openset._utils.text import listed
from openset.cluster.folders import Folder, Found, LocalFolder, RemoteFolder, is_remote, local_path
from openset.data.readers.open import OPENERS
from openset.data.readers.parts import fixed_folder, is_pattern, part_paths, parts_in
from openset.data.writer import check_format
from openset.errors import Parameter, ParameterError

WHERE = "Give a file, a folder of table files, or a pattern such as 's3://bucket/in/*.parquet'."


@dataclass(frozen=True)
class Part:
    """A file of the input by its path in ``Plan.data``, what its scores are called, and how the file is now."""

    name: str
    out: str
    size: int
    modified: int
    share: float
    """Of the bytes of all parts."""


@dataclass(frozen=True)
class Shard:
    """Every ``number``-th part, from ``index`` on.

    >>> Shard.parsed("1/3").of(["a", "b", "c", "d", "e"])
    ['b', 'e']
    """

    index: int = 0
    number: int = 1

    @classmethod
    def parsed(cls, text: str | None) -> Shard:
        """The shard that ``i/n`` names; without a text there is one."""
        if text is None:
            return cls()
        found = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
        if found is None:
            raise ParameterError(Parameter("shard", text), " is not valid: expected i/n, such as 0/4.")
        index, number = map(int, found.groups())
        if index >= number:
            last = f"from 0/{number} to {number - 1}/{number}" if number > 1 else "0/1 alone"
            raise ParameterError(
                Parameter("shard", text), f" is not valid: of {number}, shards are numbered {last}."
            )
        return cls(index, number)

    def of(self, parts: Sequence[Any]) -> list[Any]:
        """The parts of this shard."""
        return list(parts[self.index :: self.number])


@dataclass(frozen=True)
class Plan:
    """The folder of the data, and its parts in the order of their names."""

    data: Folder
    parts: tuple[Part, ...]


def make_plan(data: Any, format: str | None = None) -> Plan:
    """List the parts of a file, a folder or a pattern, on this machine or an object store."""
    if not isinstance(data, (str, Path)):
        raise ValueError(f"parts are files, and the data is a {type(data).__name__}: write it to a file first.")
    folder, files = _remote_files(str(data)) if is_remote(data) else _local_files(data)
    if not files:
        raise FileNotFoundError(f"{data} matches no table file. {WHERE}")
    formats = sorted({extension(Path(name)) for name in files})
    if len(formats) > 1:
        raise ValueError(f"{data} holds files of several formats ({listed(formats)}): keep one of them.")
    empty = [name for name, file in files.items() if not file.size]
    if empty:
        raise ValueError(f"{folder.url}/{empty[0]} is empty: it has no bytes at all.")
    total = sum(file.size for file in files.values())
    parts = [
        Part(name, _out_name(name, format), file.size, file.modified, file.size / total)
        for name, file in sorted(files.items())
    ]
    return Plan(folder, tuple(parts))


def _out_name(name: str, format: str | None) -> str:
    """The same name; with another format its extension, which must be one that can be written."""
    old = extension(Path(name))
    if format is None:
        check_format(Path(name), ", or another with ", Parameter("format", "parquet"))
        return name
    new = f".{format.lstrip('.').lower()}"
    out = name[: len(name) - len(old)] + new
    check_format(Path(out))
    return out


def _local_files(data: str | Path) -> tuple[Folder, dict[str, Found]]:
    path = local_path(data)
    if is_pattern(path):
        root, paths = fixed_folder(path), part_paths(path)
    elif path.is_dir():
        root, paths = path, parts_in(path, tuple(OPENERS))
    else:
        root, paths = path.parent, [path] if path.is_file() else []
    folder = LocalFolder(root)
    found = {name: folder.found(name) for name in (path.relative_to(root).as_posix() for path in paths)}
    return folder, {name: file for name, file in found.items() if file is not None}


def _remote_files(url: str) -> tuple[Folder, dict[str, Found]]:
    scheme, _, path = url.partition("://")
    pieces = path.rstrip("/").split("/")
    fixed = next((i for i, piece in enumerate(pieces) if glob.has_magic(piece)), None)
    if fixed == 0:
        raise ValueError(f"{url}: a bucket is named, not a pattern.")
    if fixed is not None:
        folder = RemoteFolder.at(f"{scheme}://{'/'.join(pieces[:fixed])}")
        wanted = re.compile(pattern_regex("/".join(pieces[fixed:])))
        return folder, {name: file for name, file in _visible(folder) if wanted.fullmatch(name)}
    folder = RemoteFolder.at(url)
    inside = {name: file for name, file in _visible(folder) if extension(Path(name)) in OPENERS}
    if inside or len(pieces) == 1:
        return folder, inside
    above = RemoteFolder.at(f"{scheme}://{'/'.join(pieces[:-1])}")
    alone = above.found(pieces[-1])
    return above, {} if alone is None else {pieces[-1]: alone}


def _visible(folder: Folder) -> list[tuple[str, Found]]:
    return [(name, file) for name, file in folder.files().items() if not is_hidden(name)]


def is_hidden(name: str) -> bool:
    """Whether a name in the path starts with a dot or underscore, which no part does.

    >>> is_hidden("_SUCCESS"), is_hidden("year=2024/.writing-1"), is_hidden("year=2024/part-0.csv")
    (True, True, False)
    """
    return any(piece.startswith(("_", ".")) for piece in PurePosixPath(name).parts)


def pattern_regex(pattern: str) -> str:
    """A pattern of paths as a regular expression, as the shell reads it.

    >>> [bool(re.fullmatch(pattern_regex("*/p[01].csv"), name)) for name in ("a/p1.csv", "a/b/p1.csv")]
    [True, False]
    >>> [bool(re.fullmatch(pattern_regex("**/*.csv"), name)) for name in ("x.csv", "a/b/x.csv", "a/x.txt")]
    [True, True, False]
    """
    pieces = pattern.split("/")
    text = ""
    for i, piece in enumerate(pieces):
        is_last = i == len(pieces) - 1
        if piece == "**":
            text += ".*" if is_last else "(?:[^/]+/)*"
            continue
        marks = re.split(r"(\*|\?|\[[^\]]+\])", piece)
        text += "".join(_mark_regex(mark) for mark in marks) + ("" if is_last else "/")
    return text


def _mark_regex(mark: str) -> str:
    if mark in ("*", "?"):
        return "[^/]*" if mark == "*" else "[^/]"
    if mark.startswith("[") and mark.endswith("]") and len(mark) > 2:
        return f"[^{mark[2:]}" if mark[1] == "!" else mark
    return re.escape(mark)
