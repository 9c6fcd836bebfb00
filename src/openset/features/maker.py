"""``FeatureMaker`` makes features of records: table columns, vectors, texts and images, put side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from openset.data.readers.images import ImageFiles
from openset.data.readers.records import Records
from openset.features.base import Encoder
from openset.features.encode import encode_images, encode_texts, load_encoder
from openset.features.fitted import Block, FittedFeatures
from openset.features.images import ImageEncoder
from openset.features.table.apply import TableNotes, scaled, values_of
from openset.features.table.fit import fit_table
from openset.features.text import TextEncoder

E = TypeVar("E", TextEncoder, ImageEncoder)
Rows = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class MadeFeatures:
    """The features of some rows.

    ``X`` is what models take. ``values`` are the same features in their own units, under ``names``, where there
    is a table or one column of vectors; a name is that of the column where the column holds vectors.
    """

    X: Rows
    values: Rows | None = None
    names: tuple[str, ...] = ()
    notes: TableNotes = field(default_factory=TableNotes)


@dataclass
class FeatureMaker:
    """One row of features for each record; encoders are loaded once and kept for further records.

    ``encoder_name`` is as :func:`openset.features.load_encoder` takes it; None for the packaged ones. ``fitted``
    is what :meth:`fit` or an earlier run found; None for records that need no fitting: one block, no table.

    >>> maker = FeatureMaker()
    >>> maker(Records(np.arange(2), X=np.eye(2))).X.tolist(), maker.encoders
    ([[1.0, 0.0], [0.0, 1.0]], {})
    """

    encoder_name: str | None = None
    progress: bool = False
    fitted: FittedFeatures | None = None
    encoders: dict[str, Encoder] = field(default_factory=dict)
    """The encoders of "text" and "image", once records needed one."""

    def fit(
        self, source: Records, target: Records, *, text: str | None = None, image: str | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> tuple[MadeFeatures, MadeFeatures, FittedFeatures]:  # fmt: skip
        """Fit the table and weigh the blocks, by source; return the features of both, and what was fitted."""
        table = None
        if source.table:
            table = fit_table(source.table, target.table, kinds)
        blocks = [Block("table")] if table is not None else []
        if source.X is not None:
            blocks.append(Block("vector", source.feature_names[0] if len(source.feature_names) == 1 else None))
        blocks += [Block("text", text)] if source.texts is not None else []
        blocks += [Block("image", image)] if source.images is not None else []
        self.fitted = fitted = FittedFeatures(blocks, table)
        made, parts = self._made(source)
        if source.images is not None:
            blocks[-1] = replace(blocks[-1], fill=parts[-1].mean(axis=0).tolist())
        if len(blocks) > 1:
            blocks = [replace(block, factor=_factor(part)) for block, part in zip(blocks, parts, strict=True)]
            made = replace(made, X=_side_by_side(blocks, parts))
        self.fitted = fitted = replace(fitted, blocks=blocks)
        return made, self(target), fitted

    def __call__(self, records: Records) -> MadeFeatures:
        """The features of these records."""
        return self._made(records)[0]

    def _made(self, records: Records) -> tuple[MadeFeatures, list[Rows]]:
        parts: list[Rows] = []
        values: list[Rows] = []
        names: tuple[str, ...] = ()
        notes = TableNotes()
        if self.fitted is not None and self.fitted.table is not None and records.table is not None:
            found = values_of(self.fitted.table, records.table)
            notes, names = found.notes, tuple(self.fitted.table.features)
            values.append(found.values)
            parts.append(scaled(self.fitted.table, found.values))
        if records.X is not None:
            parts.append(records.X)
            names += () if names else records.feature_names
        if records.texts is not None:
            parts.append(encode_texts(records.texts, self._encoder("text", TextEncoder), progress=self.progress))
        if records.images is not None:
            parts.append(self._with_gaps(records.images))
        if not parts:
            raise ValueError("there are no features: name columns of numbers, or a text or image column.")
        if len(parts) == 1:
            own = values[0] if values else records.X
            return MadeFeatures(parts[0], own, names, notes), parts
        blocks = self.fitted.blocks if self.fitted is not None else [Block("")] * len(parts)
        X = _side_by_side(blocks, parts)
        if not values:
            return MadeFeatures(X, None, (), notes), parts
        encoded = [(block, part) for block, part in zip(blocks[1:], parts[1:], strict=True)]
        names += tuple(f"{block.column}[{i}]" for block, part in encoded for i in range(part.shape[1]))
        return MadeFeatures(X, np.column_stack([*values, *parts[1:]]), names, notes), parts

    def _with_gaps(self, images: ImageFiles) -> Rows:
        """The features of all rows; those without an image get the source's mean."""
        present = images.present
        found = encode_images(
            images if present.all() else images[np.flatnonzero(present)],
            self._encoder("image", ImageEncoder),
            progress=self.progress,
        )
        if present.all():
            return found
        stored = [block.fill for block in (self.fitted.blocks if self.fitted else ()) if block.fill is not None]
        fill = np.asarray(stored[0], dtype=found.dtype) if stored else found.mean(axis=0)
        made = np.tile(fill, (len(present), 1))
        made[present] = found
        return made

    def _encoder(self, kind: str, of: type[E]) -> E:
        if kind not in self.encoders:
            self.encoders[kind] = self._named(of)
        encoder: Any = self.encoders[kind]
        return encoder

    def _named(self, of: type[E]) -> E:
        """The named encoder; where texts and images come together, the other one is packaged."""
        if self.encoder_name is None:
            return of()
        has_both = self.fitted is not None and {"text", "image"} <= {block.kind for block in self.fitted.blocks}
        if has_both and not isinstance(load_encoder(self.encoder_name), of):
            return of()
        return of(self.encoder_name)


def _factor(part: Rows) -> float:
    """What gives a block a total variance of 1."""
    total = float(np.var(part.reshape(len(part), -1), axis=0, dtype=np.float64).sum())
    return 1 / np.sqrt(total) if total > 0 else 1.0


def _side_by_side(blocks: list[Block], parts: list[Rows]) -> Rows:
    return np.column_stack([part * block.factor for block, part in zip(blocks, parts, strict=True)])
