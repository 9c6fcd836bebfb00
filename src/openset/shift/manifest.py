"""The record of a split: all that is needed to rebuild it anywhere, and to notice any difference."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset._utils.files import write_atomically
from openset._utils.hashing import sha256
from openset.errors import ManifestError

Rows = NDArray[np.intp]

PARTS = ("source", "target", "test_source", "test_target")
FORMAT = "openset shift manifest 1"
_GAP_TYPES = ("u1", "u2", "u4", "u8")


@dataclass(frozen=True)
class Manifest:
    """How a split was made, from which data, and its rows; everything is plain JSON data."""

    recipe: str
    seed: int
    parameters: dict[str, Any]
    n_rows: int
    columns: dict[str, str]
    """The checksum of every column the split was made from, content keys included if there were any."""
    label: dict[str, Any]
    """``column`` has the classes; rows whose values are all listed under ``novel`` have ``novel_label``."""
    proportions: list[dict[str, Any]]
    """For every class and subtype the drawn share of source, and the number of rows in each part."""
    sizes: dict[str, int]
    novel_fraction: float
    test_novel_fraction: float | None
    duplicates: dict[str, int]
    """Rows left out as copies of others, and contents found under different labels."""
    rows: dict[str, dict[str, Any]]

    @property
    def checksum(self) -> str:
        """SHA-256 of the whole manifest."""
        return sha256(json.dumps(asdict(self), sort_keys=True, ensure_ascii=False, separators=(",", ":")))

    def part(self, name: str) -> Rows:
        """The row numbers of one part, ascending."""
        return decode_rows(self.rows[name])

    def to_json(self) -> str:
        """The manifest as JSON, with its checksum."""
        record = {"format": FORMAT, **asdict(self), "checksum": self.checksum}
        return json.dumps(record, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read a manifest; raise where its checksum does not match its content."""
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            raise ManifestError(f"this is not a manifest: it cannot be read as JSON ({error}).") from None
        if not isinstance(record, dict) or record.pop("format", None) != FORMAT:
            raise ManifestError(f"this is not a manifest: expected a JSON object with format {FORMAT!r}.")
        checksum = record.pop("checksum", None)
        try:
            manifest = cls(**record)
        except TypeError as error:
            raise ManifestError(f"the manifest has missing or unknown fields: {error}.") from None
        if manifest.checksum != checksum:
            raise ManifestError(
                f"the manifest was altered: its checksum is {checksum!r}, but its content has "
                f"{manifest.checksum!r}. Get the original, or build the split again."
            )
        return manifest

    def save(self, path: str | Path) -> None:
        """Write the manifest as a JSON file."""
        write_atomically(Path(path), self.to_json().encode("utf-8"))

    @classmethod
    def load(cls, path: str | Path) -> Manifest:
        """Read a manifest from a JSON file."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def encode_rows(rows: Rows) -> dict[str, Any]:
    """Store ascending row numbers as the gaps between them, in the smallest type that holds the largest gap.

    >>> encode_rows(np.array([0, 1, 2, 7]))
    {'n': 4, 'type': 'u1', 'gaps': 'AAAABA=='}
    """
    gaps = np.diff(rows, prepend=-1) - 1
    largest = int(gaps.max(initial=0))
    kind = next(t for t in _GAP_TYPES if largest <= np.iinfo(t).max)
    packed = base64.b64encode(gaps.astype(f"<{kind}").tobytes()).decode("ascii")
    return {"n": len(rows), "type": kind, "gaps": packed}


def decode_rows(packed: Mapping[str, Any]) -> Rows:
    """The inverse of :func:`encode_rows`."""
    if packed["type"] not in _GAP_TYPES:
        raise ManifestError(f"rows are of unknown type {packed['type']!r}: expected one of {_GAP_TYPES}.")
    gaps = np.frombuffer(base64.b64decode(packed["gaps"]), dtype=f"<{packed['type']}")
    if len(gaps) != packed["n"]:
        raise ManifestError(f"the manifest states {packed['n']} rows but holds {len(gaps)}.")
    return np.cumsum(gaps.astype(np.intp) + 1) - 1


def column_checksum(values: ArrayLike) -> str:
    """SHA-256 of a column's values, the same for every array type that holds equal values.

    >>> column_checksum(np.array([1, 2], np.int8)) == column_checksum([1, 2])
    True
    """
    return sha256(json.dumps(np.asarray(values).tolist(), ensure_ascii=False, separators=(",", ":")))
