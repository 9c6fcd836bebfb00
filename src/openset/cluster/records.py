"""The record of a scored part: which run and which input it came from, what was written, and its facts.

It is written before the part appears: a part without a record is not ours, and a record without its part, or with
one of another size, is a part that was not finished.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as dump_tensors

from openset._utils.typed import read_as
from openset._version import __version__
from openset.features.table.apply import TableNotes
from openset.pipeline.batch_facts import BatchFacts
from openset.pipeline.fit_profile import SAMPLE_ROWS
from openset.stats.ranges import Outside
from openset.stats.row_sample import RowSample, joined_samples

FOLDER = "_openset"
SUCCESS = "_SUCCESS"
_ABOUT = "openset"


def record_name(part: str) -> str:
    """Where the record of a part is, in the folder of the parts.

    >>> record_name("year=2024/part-0.parquet")
    '_openset/year=2024/part-0.parquet.safetensors'
    """
    return f"{FOLDER}/{part}.safetensors"


@dataclass(frozen=True)
class File:
    """A file as it was: its size, its digest and, of an input, when it was changed."""

    size: int
    sha256: str
    modified: int = 0


@dataclass(frozen=True)
class About:
    """The header of a record. ``run`` is a digest; ``options`` are those that change what is written."""

    openset_version: str
    run: str
    options: str
    id: str | None
    kinds: dict[str, str]
    typed: bool
    input: File
    output: File
    rows: int
    called_novel: int
    unseen: dict[str, dict[str, int]] = field(default_factory=dict)
    unusable: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    sample_rows: int = 0


@dataclass(frozen=True, eq=False)
class Record:
    """A part that was scored; ``kinds`` and ``typed`` are those of its columns."""

    run: str
    options: str
    id: str | None
    kinds: Mapping[str, str]
    typed: bool
    input: File
    output: File
    facts: BatchFacts

    def to_bytes(self) -> bytes:
        """The record as a file of safetensors."""
        facts, notes = self.facts, self.facts.notes
        about = About(
            openset_version=__version__,
            run=self.run,
            options=self.options,
            id=self.id,
            kinds=dict(self.kinds),
            typed=self.typed,
            input=self.input,
            output=self.output,
            rows=facts.rows,
            called_novel=facts.called_novel,
            unseen={name: dict(levels) for name, levels in notes.unseen.items()},
            unusable=dict(notes.unusable),
            missing=dict(notes.missing),
            sample_rows=0 if facts.sample is None else facts.sample.size,
        )
        tensors: dict[str, NDArray[Any]] = {"rows": np.array([facts.rows])}
        if facts.outside is not None:
            outside = facts.outside
            tensors |= {"counts": outside.counts, "low": outside.low, "high": outside.high}
        if facts.sample is not None:
            tensors |= {"sample_keys": facts.sample.keys, "sample_rows": facts.sample.rows}
        plain = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        return dump_tensors(plain, metadata={_ABOUT: json.dumps(asdict(about), ensure_ascii=False)})

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> Record:
        """Read what :meth:`to_bytes` returned."""
        try:
            size = int.from_bytes(content[:8], "little")
            header = json.loads(content[8 : 8 + size])["__metadata__"][_ABOUT]
            about = read_as(About, json.loads(header), where)
            tensors = load_tensors(content)
            return cls._restored(about, tensors)
        except (SafetensorError, ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(
                f"{where} is damaged ({error}): delete it and the part that it belongs to."
            ) from None

    @classmethod
    def _restored(cls, about: About, tensors: Mapping[str, NDArray[Any]]) -> Record:
        notes = TableNotes(
            {name: Counter(levels) for name, levels in about.unseen.items()},
            Counter(about.unusable),
            Counter(about.missing),
        )
        outside = sample = None
        if "counts" in tensors:
            outside = Outside(tensors["counts"], tensors["low"], tensors["high"], about.rows)
        if "sample_keys" in tensors:
            sample = RowSample(tensors["sample_keys"], tensors["sample_rows"], about.sample_rows)
        facts = BatchFacts(about.rows, about.called_novel, outside, sample, notes)
        own = (about.run, about.options, about.id, about.kinds, about.typed, about.input, about.output)
        return cls(*own, facts)


def joined_facts(records: Sequence[Record]) -> BatchFacts:
    """The facts of all parts together, in the order of the records."""
    parts = [record.facts for record in records]
    samples = [part.sample for part in parts if part.sample is not None]
    total = replace(parts[0], sample=None)
    for part in parts[1:]:
        total = total.joined(replace(part, sample=None))
    return replace(total, sample=joined_samples(samples, SAMPLE_ROWS) if len(samples) == len(parts) else None)
