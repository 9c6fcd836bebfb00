"""``.npy`` and ``.npz`` files. Uncompressed arrays are memory-mapped; pickled objects are never read."""

from __future__ import annotations

import math
import struct
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.data.readers.boundary import reading
from openset.data.readers.packed import check_unpacked_size
from openset.data.readers.source import Source, sliced

_BLOCK_BYTES = 2**20


def open_npy(path: Path) -> Source:
    """One array, as the column ``array``: each entry of its first axis is a row."""
    with reading(path, ".npy array of numbers or text"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim < 2:
        raise ValueError(f"{path} holds an array of shape {array.shape}: expected (rows, features).")
    return _source(path, {"array": array})


def open_npz(path: Path) -> Source:
    """Each array is a column; uncompressed arrays are memory-mapped."""
    with reading(path, ".npz of arrays of numbers or text"), zipfile.ZipFile(path) as archive:
        check_unpacked_size(path, sum(member.file_size for member in archive.infolist()))
        arrays = {
            member.filename.removesuffix(".npy"): _read_member(path, archive, member)
            for member in archive.infolist()
        }
    return _source(path, {name: array for name, array in arrays.items() if array.ndim})


def _source(path: Path, columns: dict[str, NDArray[Any]]) -> Source:
    kinds = {name: _kind(array) for name, array in columns.items()}
    lengths = {len(array) for array in columns.values()}
    n_rows = lengths.pop() if len(lengths) == 1 else None
    return Source(str(path), path.parent, kinds, partial(sliced, str(path), columns), n_rows=n_rows)


def _kind(array: NDArray[Any]) -> str:
    if array.dtype.kind not in "biuf":
        return "other"
    return "number" if array.ndim == 1 else "vector"


def _read_member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array of an archive, memory-mapped if it is not compressed, its checksum and length checked."""
    with archive.open(member) as file:
        shape, order, dtype = _read_header(file)
        start = file.tell()
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds pickled objects, which are not read")
        if start + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"{member.filename} is not as long as its header says")
        if member.compress_type != zipfile.ZIP_STORED:
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
        while file.read(_BLOCK_BYTES):
            pass  # the archive compares the checksum at the end
    if 0 in shape or dtype.itemsize == 0:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", _data_offset(path, member) + start, shape, order)


def _read_header(file: Any) -> tuple[tuple[int, ...], Any, np.dtype[Any]]:
    formats = np.lib.format
    first = formats.read_magic(file) == (1, 0)
    read = formats.read_array_header_1_0 if first else formats.read_array_header_2_0
    shape, fortran_order, dtype = read(file)
    return shape, "F" if fortran_order else "C", dtype


def _data_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """Where the bytes of a member begin: the local header may be longer than the central directory says."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        name_length, extra_length = struct.unpack("<26x2H", file.read(30))
        return file.tell() + int(name_length) + int(extra_length)
