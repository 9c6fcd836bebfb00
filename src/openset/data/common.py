"""Small helpers that every reader uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.errors import MissingExtraError


def as_objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """A one-dimensional object array, whatever the values are.

    >>> as_objects([[1, 2], [3, 4]]).shape
    (2,)
    """
    return np.fromiter(values, dtype=object, count=len(values))


def listed(items: Iterable[Any], limit: int = 5) -> str:
    """A few of many, for a message.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    names = [str(item) for item in items]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


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


def require_pyarrow(purpose: str) -> Any:
    """The pyarrow package, or an error that names the extra."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(purpose, "data") from None
    return pyarrow
