"""``.npy`` and ``.npz`` files. Uncompressed arrays are memory-mapped; pickled objects are never read."""

from __future__ import annotations

import struct
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.data.readers.source import Source, sliced


def open_npy(path: Path) -> Source:
    """One array, as the column ``array``: each entry of its first axis is a row."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is not a readable .npy array of numbers or text: {error}") from None
    if array.ndim < 2:
        raise ValueError(f"{path} holds an array of shape {array.shape}: expected (rows, features).")
    return _source(path, {"array": array})


def open_npz(path: Path) -> Source:
    """Each array is a column; uncompressed arrays are memory-mapped."""
    try:
        with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as content:
            arrays = {
                member.filename.removesuffix(".npy"): _map_member(path, member)
                if member.compress_type == zipfile.ZIP_STORED
                else content[member.filename.removesuffix(".npy")]
                for member in archive.infolist()
            }
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a readable .npz of arrays of numbers or text: {error}") from None
    return _source(path, {name: array for name, array in arrays.items() if array.ndim})


def _source(path: Path, columns: dict[str, NDArray[Any]]) -> Source:
    kinds = {name: _kind(array) for name, array in columns.items()}
    return Source(str(path), path.parent, kinds, partial(sliced, str(path), columns))


def _kind(array: NDArray[Any]) -> str:
    if array.dtype.kind not in "biuf":
        return "other"
    return "number" if array.ndim == 1 else "vector"


def _map_member(path: Path, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Memory-map an array inside an uncompressed zip archive."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        # the name and the extra field of the local header may be longer than the central directory says
        name_length, extra_length = struct.unpack("<26x2H", file.read(30))
        file.seek(name_length + extra_length, 1)
        version = np.lib.format.read_magic(file)
        read_header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran_order, dtype = read_header(file)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds pickled objects, which are not read")
        if 0 in shape or dtype.itemsize == 0:
            return np.empty(shape, dtype)
        order: Any = "F" if fortran_order else "C"
        return np.memmap(path, dtype, "r", file.tell(), shape, order)
