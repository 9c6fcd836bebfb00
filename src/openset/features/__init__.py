"""From rows to features: the columns of a table, and text and images through packaged encoders or your own.

Encoders need the extra ``encoders``; what they compute is cached on disk.

>>> from openset.features import encode_texts
>>> X = encode_texts(["a short text", "another one"], progress=False, cache=False)
>>> X.shape, X.dtype
((2, 384), dtype('float32'))
"""

from __future__ import annotations

from openset._utils.downloads import downloads
from openset.features.cache import FeatureCache
from openset.features.encode import encode_cells, encode_images, encode_texts, load_encoder
from openset.features.images import ImageEncoder
from openset.features.table.vectorizer import TableFeatures
from openset.features.text import TextEncoder

__all__ = [
    "FeatureCache",
    "ImageEncoder",
    "TableFeatures",
    "TextEncoder",
    "downloads",
    "encode_cells",
    "encode_images",
    "encode_texts",
    "load_encoder",
]
