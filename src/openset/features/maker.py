"""``FeatureMaker`` makes features of records: numbers as they are, texts and images through one encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from openset.data.readers.records import Records
from openset.features.base import Encoder
from openset.features.encode import encode_images, encode_texts
from openset.features.images import ImageEncoder
from openset.features.text import TextEncoder

E = TypeVar("E", TextEncoder, ImageEncoder)


@dataclass
class FeatureMaker:
    """One row of features for each record; the encoder is loaded once and kept for further records.

    ``encoder_name`` is as :func:`openset.features.load_encoder` takes it; None for the packaged one.

    >>> maker = FeatureMaker()
    >>> maker(Records(np.arange(2), X=np.eye(2))).tolist(), maker.encoder
    ([[1.0, 0.0], [0.0, 1.0]], None)
    """

    encoder_name: str | None = None
    progress: bool = False
    encoder: Encoder | None = None
    """The encoder, once records needed one."""

    def __call__(self, records: Records) -> NDArray[np.floating]:
        """The features of these records."""
        if records.X is not None:
            return records.X
        if records.texts is not None:
            return encode_texts(records.texts, self._encoder(TextEncoder), progress=self.progress)
        if records.images is not None:
            return encode_images(records.images, self._encoder(ImageEncoder), progress=self.progress)
        raise ValueError("there are no features: name columns of numbers, or a text or image column.")

    def _encoder(self, kind: type[E]) -> E:
        if not isinstance(self.encoder, kind):
            self.encoder = kind() if self.encoder_name is None else kind(self.encoder_name)
        return self.encoder
