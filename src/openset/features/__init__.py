"""From text and images to features: packaged encoders or your own, with a cache on disk.

They need the extra ``encoders``.

>>> from openset.features import encode_texts
>>> X = encode_texts(["a short text", "another one"], progress=False, cache=False)
>>> X.shape, X.dtype
((2, 384), dtype('float32'))
"""

from __future__ import annotations

from openset._utils.downloads import downloads
from openset.features.cache import FeatureCache
from openset.features.encode import encode_images, encode_texts, load_encoder
from openset.features.images import ImageEncoder
from openset.features.text import TextEncoder

__all__ = [
    "FeatureCache",
    "ImageEncoder",
    "TextEncoder",
    "downloads",
    "encode_images",
    "encode_texts",
    "load_encoder",
]
