"""Rows with equal content: a key for every row, and one row of each content."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.shift.columns import as_array

_CELLS = 2**20
"""How many numbers are read at a time: an array on disk need not fit into memory."""


def content_keys(X: Any) -> NDArray[np.uint64]:
    """Return a key for every row of an array (rows, images) or list of texts; equal content has equal keys.

    Equal means equal in every number, or in every character: near-duplicates count as different. Keys are
    64-bit hashes: the chance that any two of ten million different rows have the same key is below 10⁻⁵.

    >>> a, b, c = content_keys(["good", "bad", "good"])
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    rows = X if hasattr(X, "shape") else as_array(X)
    if rows.ndim == 0 or (rows.ndim == 1 and rows.dtype.kind not in "UOT"):
        raise ValueError(
            f"X has shape {rows.shape} and type {rows.dtype}: expected rows of numbers (two or more dimensions) "
            "or a list of texts."
        )
    if rows.ndim == 1:
        texts = rows.tolist()
        others = [text for text in texts if not isinstance(text, str)]
        if others:
            raise ValueError(f"X holds {others[0]!r} among its texts: every entry must be a string.")
        return _hashes([text.encode("utf-8", "surrogatepass") for text in texts])
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"X is of type {rows.dtype}: expected numbers in every row.")
    size = max(1, _CELLS // max(1, int(np.prod(rows.shape[1:]))))
    keys = [_block_keys(np.asarray(rows[start : start + size])) for start in range(0, len(rows), size)]
    return np.concatenate(keys) if keys else np.empty(0, np.uint64)


def _block_keys(block: NDArray[Any]) -> NDArray[np.uint64]:
    if block.dtype.kind == "f":
        block = block + block.dtype.type(0)  # so that −0 and 0 have one key
    little_endian = np.ascontiguousarray(block, dtype=block.dtype.newbyteorder("<"))
    return _hashes([row.tobytes() for row in little_endian])


def _hashes(items: list[bytes]) -> NDArray[np.uint64]:
    digests = b"".join(hashlib.blake2b(item, digest_size=8).digest() for item in items)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def first_of_each(
    content: NDArray[Any], usable: NDArray[np.bool_], later: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mark the first of the usable rows with equal content; rows in ``later`` come after all others."""
    order = np.lexsort((np.arange(len(content)), later))
    order = order[usable[order]]
    _, first = np.unique(content[order], return_index=True)
    kept = np.zeros(len(content), bool)
    kept[order[first]] = True
    return kept
