"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path`` to write a file to; it takes its place when the block ends well.

    Whatever happens before that, an error, a full disk or a kill, ``path`` is what it was.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    temporary = _beside(path)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """The same for a folder. One that is there is moved aside first, since a rename cannot replace it."""
    temporary, aside = _beside(path), _beside(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            os.replace(path, aside)
        os.replace(temporary, path)
    except BaseException:
        if aside.exists() and not path.exists():
            os.replace(aside, path)
        raise
    finally:
        for leftover in (temporary, aside):
            shutil.rmtree(leftover, ignore_errors=True)


def _beside(path: Path) -> Path:
    return path.parent / f".writing-{token_hex(8)}"
