"""Digests of text, files, folders and arrays. They are stored in files, so none of them may ever change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

_BLOCK_BYTES = 2**24


def sha256(content: str | bytes) -> str:
    """SHA-256 of text (as UTF-8) or bytes, in hexadecimal digits.

    >>> sha256("text")[:12]
    '982d9e3eb996'
    """
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def path_sha256(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files below a folder."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    files = sorted(p for p in path.rglob("*") if p.is_file())
    return sha256("".join(f"{file.relative_to(path).as_posix()}\0{path_sha256(file)}\0" for file in files))


def arrays_sha256(*arrays: NDArray[Any]) -> str:
    """SHA-256 of the types, shapes and values of arrays. Objects count as their text."""
    total = hashlib.sha256()
    for array in arrays:
        plain = array if array.dtype.kind in "biuf" else array.astype(str)
        total.update(f"{plain.dtype}{plain.shape}".encode())
        for block in _blocks(plain):
            total.update(block)
    return total.hexdigest()


def digest(*parts: str | NDArray[Any]) -> str:
    """One digest of several texts and arrays, 128 bits of BLAKE2b.

    >>> digest("a", "bc") == digest("ab", "c")
    False
    """
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, str):
            total.update(f"{len(part)}:{part}".encode())
            continue
        total.update(f"{part.dtype.str}{part.shape}".encode())
        for block in _blocks(part):
            total.update(block)
    return total.hexdigest()


def _blocks(array: NDArray[Any]) -> Iterator[bytes]:
    """The bytes of an array in C order, in blocks of rows, so that a memory-mapped array stays on disk."""
    rows = array.reshape(1) if array.ndim == 0 else array
    step = max(1, _BLOCK_BYTES * len(rows) // max(rows.nbytes, 1))
    for start in range(0, len(rows), step):
        yield rows[start : start + step].tobytes()
