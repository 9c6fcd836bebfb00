"""The bytes of a file that may be packed, with a limit to what a small file may unpack to."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

from openset._utils.extras import require
from openset._utils.files import packing
from openset.errors import UnreadableError

MOST_UNPACKED = 2**30
"""Bytes that any packed file may hold."""
_GZIP_START = b"\x1f\x8b"
MOST_TIMES = 200
"""Beyond :data:`MOST_UNPACKED`: how many times as large as the file its content may be.

Tables of real values reach ten to fifty times; what is made to fill memory or a disk reaches a thousand."""


class LimitedStream:
    """The bytes of a stream; an error where they are out of all proportion to the packed file."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._left = max(MOST_UNPACKED, MOST_TIMES * path.stat().st_size)

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``."""
        return self._counted(self._stream.read(size))

    def readline(self, size: int) -> bytes:
        """The next line, or its first ``size`` bytes."""
        return self._counted(self._stream.readline(size))

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableError(
                f"{self._path} unpacks to more than {MOST_TIMES} times its size: if that is meant, unpack it."
            )
        return data

    def __enter__(self) -> LimitedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


def open_unpacked(path: Path) -> Any:
    """The content of a file, unpacked if its extension says that it is packed."""
    if packing(path) == "zstd":
        pa = require("pyarrow", "Reading zstd files", "data")
        return LimitedStream(io.BufferedReader(pa.input_stream(str(path), compression="zstd")), path)
    if packing(path) is None:
        return path.open("rb")
    with path.open("rb") as file:
        start = file.read(len(_GZIP_START))
    if start and start != _GZIP_START:  # a browser may unpack a file that it downloads, and keep its name
        raise UnreadableError(
            f"{path} is not packed, although its name ends in {path.suffix}: download it again, or remove "
            f"{path.suffix} from its name if its content is whole."
        )
    return LimitedStream(gzip.open(path), path)


def check_unpacked_size(path: Path, unpacked: int) -> None:
    """Raise if an archive says that it unpacks to more than a file of its size may hold."""
    if unpacked > max(MOST_UNPACKED, MOST_TIMES * path.stat().st_size):
        raise UnreadableError(
            f"{path} unpacks to {unpacked} bytes, more than {MOST_TIMES} times its size: it is damaged, or made "
            "to fill memory."
        )
