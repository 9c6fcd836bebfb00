"""The boundary to the libraries that read files: whatever they raise becomes one error with one sentence."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from openset._utils.text import shortened
from openset.errors import UnreadableError

_LONGEST_REASON = 200  # characters


@dataclass
class Place:
    """How far reading came: where a file is damaged further down, the error says so."""

    row: int = 0


@contextmanager
def reading(path: Path, what: str) -> Iterator[Place]:
    """Run the calls of a library that read ``path`` as ``what``; their errors become :class:`UnreadableError`.

    A damaged file makes libraries raise errors of almost every type. Our own error passes, and so does what the
    system refuses, such as a permission.

    >>> with reading(Path("rows.npz"), ".npz file"):
    ...     raise RuntimeError("File 'x.npy' is encrypted, password required for extraction")
    Traceback (most recent call last):
    ...
    openset.errors.UnreadableError: rows.npz is not a readable .npz file: File 'x.npy' is encrypted, ...
    """
    place = Place()
    try:
        yield place
    except UnreadableError:
        raise
    except MemoryError as error:
        raise UnreadableError(f"{path} asks for more memory than there is: it is damaged or huge.") from error
    except EOFError as error:
        raise UnreadableError(f"{path} ends too early: it is not whole. Download or write it again.") from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system's; libraries' have no number
            raise
        reason = shortened(" ".join(str(error).split()), _LONGEST_REASON).rstrip(".") or type(error).__name__
        beyond = f" beyond row {place.row}" if place.row else ""
        raise UnreadableError(f"{path} is not a readable {what}{beyond}: {reason}.") from error


def refuse_special(path: Path) -> None:
    """Raise unless a path is a file or a folder: reading a pipe or a device may wait or go on for ever.

    >>> refuse_special(Path("/dev/zero"))
    Traceback (most recent call last):
    ...
    ValueError: /dev/zero is a device: give a file or a folder.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise ValueError(f"{path} is {kinds.get(stat.S_IFMT(mode), 'a device')}: give a file or a folder.")
