"""Paths and extensions; files and folders that are written whole or not at all.

Everything that openset writes goes through :func:`replacing` or :func:`replacing_folder`. Both write beside the
path, sync to the disk, and rename. What a kill leaves behind is swept by the next writer.
"""

from __future__ import annotations

import glob
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any

from openset._utils.renames import exchange, holding, is_held, sync, sync_tree

_TEMPORARY, _ASIDE = ".writing-", ".replaced-"
_OLD = 60.0
"""Seconds after which a temporary file that nobody holds is swept: a writer holds its own at once."""
_written: list[Path] = []


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write a file to; the file replaces ``path`` when the block ends without an error.

    After an error, a full disk or a kill, ``path`` is unchanged. A link is followed: the file it leads to is
    replaced, and the link stays.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    check_parent(path)
    place = _followed(path)
    _sweep(place.parent)
    temporary = _beside(place, place.suffix)
    temporary.touch(exist_ok=False)
    try:
        with holding(temporary):
            yield temporary
            if not temporary.stat().st_size:
                raise FileNotFoundError(f"{path}: nothing was written to it.")
            sync(temporary)
            os.replace(temporary, place)
            sync(place.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    note_written(place)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing_folder(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Like :func:`replacing`, for a folder. Once there is a folder at ``path``, there is a whole one at any time.

    Without ``overwrite`` a folder that is not empty stays, also if it appeared while the block ran: an error.
    """
    place = _followed(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    recover(place)
    _sweep(place.parent)
    temporary = _beside(place)
    temporary.mkdir()
    try:
        with holding(temporary):
            yield temporary
            sync_tree(temporary)
            if overwrite and place.exists():
                _exchange(temporary, place)
            else:
                _rename_new(temporary, place)
            sync(place.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    note_written(place)


def _rename_new(temporary: Path, place: Path) -> None:
    """Rename a folder; the system refuses if there is one already, unless that is empty."""
    try:
        os.rename(temporary, place)
    except OSError as error:
        if place.is_dir() and any(place.iterdir()):
            raise ValueError(
                f"{place} was written by another process meanwhile, so it is not replaced: choose another folder."
            ) from error
        raise


def _exchange(temporary: Path, place: Path) -> None:
    """Put the new folder where the old one is. Where the system cannot exchange them, in two steps."""
    if exchange(temporary, place):
        return
    aside = _aside(place)
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(place, aside)
    try:
        os.rename(temporary, place)  # a kill before this leaves the old folder aside, for :func:`recover`
    except BaseException:
        recover(place)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def recover(path: Path) -> None:
    """Put back the old folder, if a kill came between the two steps of replacing it."""
    place = _followed(path)
    aside = _aside(place)
    if os.path.isdir(aside) and not os.path.exists(place):
        with suppress(OSError):  # another process was faster
            os.rename(aside, place)


def check_parent(path: Path) -> None:
    """Raise an error where no file can be written: the parent folder is missing, or the path is a folder."""
    place = _followed(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")
    if place.exists() and not place.is_file():
        what = "a folder" if place.is_dir() else "a pipe or a device"
        raise IsADirectoryError(f"{path} cannot be written: it is {what}.")


def check_folder_replaceable(path: Path) -> None:
    """Raise an error now if :func:`replacing_folder` would fail at its end, after all the work.

    The current folder and a mount point cannot be renamed. Creating an empty folder tests the rest.
    """
    whole = _followed(path)
    if os.path.ismount(whole) or whole == Path.cwd():
        raise ValueError(
            f"{path} is the current folder or a mount point and cannot be replaced: name a folder inside it."
        )
    above = next(folder for folder in whole.parents if folder.is_dir())
    trial = _beside(above / "trial")
    trial.mkdir()
    trial.rmdir()


def check_not_input(out: Path, *inputs: Any) -> None:
    """Raise if writing to ``out`` would destroy what is read: an input, a part of it, or a folder that holds it.

    Inputs that are no paths, such as data frames, are safe. A new file inside a folder that is read does no harm.
    """
    place = _followed(out)
    for given in (path for each in inputs for path in _paths_of(each)):
        read = _followed(given)
        if place == read or (place.exists() and place.samefile(read)):
            raise ValueError(f"{out} is read too, and would be lost: write to another place.")
        if read in place.parents and place.exists():
            raise ValueError(f"{out} is a part of {given}, which is read and would be damaged: write elsewhere.")
        if place in read.parents and place.exists():
            raise ValueError(f"{out} holds {given}, which is read and would be lost: write elsewhere.")


def _paths_of(given: Any) -> list[Path]:
    """The paths that an input stands for: its own, or those of a pattern such as ``data/*.csv``."""
    if not isinstance(given, (str, Path)):
        return []
    path = expanded(given)
    return [path] if os.path.exists(path) else [Path(name) for name in glob.glob(str(path), recursive=True)]


def written_paths() -> tuple[Path, ...]:
    """The files and folders that this process has written so far, in order: messages of errors tell them."""
    return tuple(_written)


def note_written(place: Path) -> None:
    """Note what is in place now. What is inside a temporary folder is not."""
    if not any(is_temporary(part) for part in place.parts) and place not in _written:
        _written.append(place)


def is_temporary(name: str) -> bool:
    """Whether this is the name of a half-written file or folder, which a kill leaves behind."""
    return name.startswith(_TEMPORARY)


def _beside(path: Path, suffix: str = "") -> Path:
    """A free name; a suffix tells libraries the format."""
    return path.parent / f"{_TEMPORARY}{token_hex(8)}{suffix}"


def _aside(path: Path) -> Path:
    return path.parent / f"{_ASIDE}{path.name}"


def _followed(path: Path) -> Path:
    """Where a path leads, through links; unlike ``Path.resolve``, a loop of links is no error."""
    return Path(os.path.realpath(path))


@cache
def _sweep(folder: Path) -> None:
    """Once for each folder: delete what writers left behind that are no more."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not is_temporary(entry.name):
                continue
            path = Path(entry.path)
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < _OLD or is_held(path):
                    continue
                shutil.rmtree(path) if entry.is_dir(follow_symlinks=False) else path.unlink()


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


def expanded(path: str | Path) -> Path:
    """The path with ``~`` replaced; the home of a user who is not there stays as it is written.

    >>> expanded("~nobody-of-this-name/rows.csv").as_posix()
    '~nobody-of-this-name/rows.csv'
    """
    return Path(os.path.expanduser(path))


def existing(path: str | Path, what: str) -> Path:
    """The path, if it exists; else an error that ends with ``what``, a sentence on what to do."""
    found = expanded(path)
    if not found.exists():
        raise FileNotFoundError(f"{found} does not exist. {what}")
    return found
