"""Paths and their names; files and folders that appear whole or not at all."""

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
    check_parent(path)
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
    path = path.resolve()  # a link stays a link
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


def check_parent(path: Path) -> None:
    """Raise a FileNotFoundError or IsADirectoryError where no file can be written."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} cannot be written: it is a folder.")


def check_folder_replaceable(path: Path) -> None:
    """Raise an error where :func:`replacing_folder` would fail at its end, after all the work.

    The current folder and a mount point cannot be renamed; all else is tried out with an empty folder.
    """
    whole = path.resolve()
    if os.path.ismount(whole) or whole == Path.cwd():
        raise ValueError(f"{path} is in use as it is, so it cannot be replaced: name a folder inside it.")
    above = next(folder for folder in whole.parents if folder.is_dir())
    trial = _beside(above / "trial")
    trial.mkdir()
    trial.rmdir()


_TEMPORARY = ".writing-"


def is_temporary(name: str) -> bool:
    """Whether a name is that of something half-written, left behind by a kill."""
    return name.startswith(_TEMPORARY)


def _beside(path: Path) -> Path:
    return path.parent / f"{_TEMPORARY}{token_hex(8)}"


def is_packed(path: Path) -> bool:
    """Whether the name says that it is gzipped."""
    return path.suffix.lower() == ".gz"


def extension(path: Path) -> str:
    """What tells a file's format, in lower case; both parts of a packed one.

    >>> extension(Path("rows.CSV.gz")), extension(Path("v1.2.parquet"))
    ('.csv.gz', '.parquet')
    """
    return ("".join(path.suffixes[-2:]) if is_packed(path) else path.suffix).lower()


def existing(path: str | Path, what: str) -> Path:
    """The path, if something is there; else an error that says where ``what`` comes from."""
    found = Path(path).expanduser()
    if not found.exists():
        raise FileNotFoundError(f"{found} does not exist. {what}")
    return found
