"""Paths and extensions; files and folders that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write a file to; the file replaces ``path`` when the block ends without an error.

    After an error, a full disk or a kill, ``path`` is unchanged.

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
    """Like :func:`replacing`, for a folder. An old folder is moved aside first: a rename cannot replace it."""
    path = path.resolve()  # so that a link stays a link
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
    """Raise an error where no file can be written: the parent folder is missing, or the path is a folder."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} cannot be written: it is a folder.")


def check_folder_replaceable(path: Path) -> None:
    """Raise an error now if :func:`replacing_folder` would fail at its end, after all the work.

    The current folder and a mount point cannot be renamed. Creating an empty folder tests the rest.
    """
    whole = path.resolve()
    if os.path.ismount(whole) or whole == Path.cwd():
        raise ValueError(
            f"{path} is the current folder or a mount point and cannot be replaced: name a folder inside it."
        )
    above = next(folder for folder in whole.parents if folder.is_dir())
    trial = _beside(above / "trial")
    trial.mkdir()
    trial.rmdir()


_TEMPORARY = ".writing-"


def is_temporary(name: str) -> bool:
    """Whether this is the name of a half-written file or folder, which a kill leaves behind."""
    return name.startswith(_TEMPORARY)


def _beside(path: Path) -> Path:
    return path.parent / f"{_TEMPORARY}{token_hex(8)}"


PACKED = {".gz": "gzip", ".zst": "zstd"}
"""Extensions of packed files, and how they are packed."""


def packing(path: Path) -> str | None:
    """How the extension says that the file is packed: gzip, zstd, or None.

    >>> packing(Path("rows.csv.gz")), packing(Path("rows.csv"))
    ('gzip', None)
    """
    return PACKED.get(path.suffix.lower())


def extension(path: Path) -> str:
    """The extension that tells a file's format, in lower case; two parts if the file is packed.

    >>> extension(Path("rows.CSV.gz")), extension(Path("v1.2.parquet"))
    ('.csv.gz', '.parquet')
    """
    return ("".join(path.suffixes[-2:]) if packing(path) else path.suffix).lower()


def existing(path: str | Path, what: str) -> Path:
    """The path, if it exists; else an error that ends with ``what``, a sentence on what to do."""
    found = Path(path).expanduser()
    if not found.exists():
        raise FileNotFoundError(f"{found} does not exist. {what}")
    return found
