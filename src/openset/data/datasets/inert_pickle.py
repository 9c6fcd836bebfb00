"""Reading plain data out of a pickle without letting it run anything.

A pickle is a program: it names functions and calls them. Here every name it may use is bound to a class of ours
that does nothing but hold what it is given, and any other name is refused before anything is called. numpy's own
reconstruction functions are not used either, so that a forged array state never reaches numpy's memory.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Type:
    """Stands where numpy's ``ndarray`` or ``dtype`` is named; calling it records a dtype's code."""

    def __init__(self, *arguments: Any) -> None:
        self.code = str(arguments[0]) if arguments else ""

    def __setstate__(self, state: Any) -> None:
        """Byte order and field layout: of no meaning for the one dtype we read, bytes."""


class _Array:
    """Stands where an array is rebuilt: keeps shape, dtype and bytes as they come."""

    def __init__(self, *_: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Encoded:
    """Stands where ``_codecs.encode`` is named, which is how Python 3 writes bytes for Python 2.

    A class and not a function: a pickle could set attributes of a function and so leave something behind.
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
    """The dictionary in a pickle of plain data; arrays must be of bytes (uint8). Nothing in it is executed.

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
            raise pickle.UnpicklingError("it holds lists of something else than numbers and text")
        return list(value)
    if not isinstance(value, (str, int)):
        raise pickle.UnpicklingError(
            f"it holds a value of an unexpected kind ({type(value).__name__.strip('_')})"
        )
    return value


def _bytes_array(state: Any) -> NDArray[np.uint8]:
    _, shape, dtype, fortran, content = state
    if not isinstance(dtype, _Type) or dtype.code not in ("u1", "|u1") or fortran:
        raise pickle.UnpicklingError("it holds an array of something else than bytes in C order")
    raw = content.encode("latin1") if isinstance(content, str) else content
    if not isinstance(raw, bytes) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise pickle.UnpicklingError("it holds a forged array")
    return np.frombuffer(raw, dtype=np.uint8).reshape(shape)
