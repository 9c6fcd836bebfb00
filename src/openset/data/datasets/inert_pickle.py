"""Reading plain data from a pickle without executing anything in it.

A pickle is a program: it names functions and calls them. Here every allowed name stands for one of the classes
below, which only store what they receive. Any other name is refused before anything is called. numpy's own
functions that rebuild arrays are not used either, so that a forged array never reaches numpy's memory.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Type:
    """In place of numpy's ``ndarray`` or ``dtype``; calling it stores the code of a dtype."""

    def __init__(self, *arguments: Any) -> None:
        self.code = str(arguments[0]) if arguments else ""

    def __setstate__(self, state: Any) -> None:
        """Ignore byte order and field layout: they have no meaning for bytes, the only dtype that is read."""


class _Array:
    """In place of a rebuilt array; stores its shape, dtype and bytes."""

    def __init__(self, *_: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Encoded:
    """In place of ``_codecs.encode``, which Python 3 uses to write bytes for Python 2.

    It is a class because a pickle can set the attributes of a function, and they would outlast the reading.
    """

    def __new__(cls, text: str, encoding: str) -> Any:
        if encoding != "latin1":
            raise pickle.UnpicklingError(f"it names the encoding {encoding!r}")
        return text.encode("latin1")

    def __setstate__(self, state: Any) -> None:
        """Nothing to set."""


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Type,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _Encoded,
}


class _InertUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which plain data does not need")
        return _ALLOWED[module, name]


def read_inert(content: bytes, name: str) -> dict[str, Any]:
    """The dictionary in a pickle of plain data. Arrays must be of bytes (uint8). Nothing is executed.

    >>> read_inert(pickle.dumps({"labels": [1, 2]}), "train")
    {'labels': [1, 2]}
    >>> import os
    >>> read_inert(pickle.dumps(os.getcwd), "train")
    Traceback (most recent call last):
    ValueError: train was refused: it names posix.getcwd, which plain data does not need. ...
    """
    try:
        value = _InertUnpickler(io.BytesIO(content), encoding="latin1").load()
        if not isinstance(value, dict):
            raise pickle.UnpicklingError("it holds no dictionary")
        return {str(key): _plain(item) for key, item in value.items()}
    except Exception as error:  # a forged pickle can fail in any way at all
        raise ValueError(
            f"{name} was refused: {error}. It is damaged or not the official file; nothing in it was executed."
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        return _bytes_array(value.state)
    if isinstance(value, (list, tuple)):
        if not all(isinstance(item, (str, int)) for item in value):
            raise pickle.UnpicklingError("it holds lists of something other than numbers and text")
        return list(value)
    if not isinstance(value, (str, int)):
        raise pickle.UnpicklingError(
            f"it holds a value of an unexpected type ({type(value).__name__.strip('_')})"
        )
    return value


def _bytes_array(state: Any) -> NDArray[np.uint8]:
    _, shape, dtype, fortran, content = state
    if not isinstance(dtype, _Type) or dtype.code not in ("u1", "|u1") or fortran:
        raise pickle.UnpicklingError("it holds an array of something other than bytes in C order")
    raw = content.encode("latin1") if isinstance(content, str) else content
    if not isinstance(raw, bytes) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise pickle.UnpicklingError("it holds a forged array")
    return np.frombuffer(raw, dtype=np.uint8).reshape(shape)
