"""What the system offers to put files in place: exchanged names, syncing to disk, locks that end with us."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)  # by the kernel or by the file system


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths in one step, so that neither is ever absent; False where the system cannot."""
    renameat2 = _renameat2()
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(other))


@cache
def _renameat2() -> Any:
    """The function of Linux's C library; None elsewhere."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk itself; after a power cut it is there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:  # some file systems sync no folders
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync every file and folder below a folder, and the folder."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync(Path(parent) / name)
        sync(Path(parent))


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Hold a lock on a file or folder; it ends with the block, or with the process however that ends."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # without locks nothing is swept
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether a process holds a lock on a file or folder; also True where that cannot be told."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)
