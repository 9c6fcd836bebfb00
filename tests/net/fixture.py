"""The net's fixture on disk: hashes of whole arrays, the first values of each, and folders of an earlier openset.

To write it anew, because numbers were changed on purpose: ``make net`` (a commit of its own, which
says why). Folders below ``folders/`` are never written again: they must go on loading. Of the runs' folders the
report, which nothing reads, was left out.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from net.cases import CASES, RUNS, Arrays, computed

HERE = Path(__file__).parent
HASHES, VALUES, FOLDERS = HERE / "hashes.json", HERE / "values.npz", HERE / "folders"
SHOWN = 40
"""Values of an array that are stored, for processors that round otherwise."""


def hash_of(array: np.ndarray) -> str:
    """A hash of an array's numbers and shape; all NaN count as one."""
    plain = np.ascontiguousarray(np.where(np.isnan(array), np.nan, array), dtype="<f8")
    return hashlib.sha256(repr(plain.shape).encode() + plain.tobytes()).hexdigest()[:20]


def hashes_of(arrays: Arrays) -> dict[str, str]:
    """The hash of every array of a case."""
    return {key: hash_of(array) for key, array in arrays.items()}


def shown(array: np.ndarray) -> np.ndarray:
    """The first values of an array."""
    return array.ravel()[:SHOWN]


def environment() -> dict[str, str]:
    """What hashes depend on besides the code."""
    from openset.bench.provenance import environment as of_bench

    return of_bench()


def write() -> None:
    """Compute every case and store hashes and values."""
    hashes, values = {}, {}
    for name in (*CASES, *RUNS):
        arrays = computed(name)
        hashes[name] = hashes_of(arrays)
        values |= {f"{name} | {key}": shown(array) for key, array in arrays.items()}
        print(name, flush=True)  # noqa: T201
    HASHES.write_text(json.dumps({"environment": environment(), "hashes": hashes}, indent=1) + "\n")
    np.savez_compressed(VALUES, **values)


if __name__ == "__main__":
    write()
