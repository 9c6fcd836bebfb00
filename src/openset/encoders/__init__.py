"""Text and images to features: embedded or own encoders, cached on disk. Needs the extra ``encoders``.

>>> from openset.encoders import encode_texts
>>> X = encode_texts(["a short text", "another one"], progress=False, cache=False)
>>> X.shape, X.dtype
((2, 384), dtype('float32'))
"""

from __future__ import annotations

from openset.encoders.cache import FeatureCache
from openset.encoders.encode import encode_images, encode_texts, load_encoder
from openset.encoders.images import ImageEncoder
from openset.encoders.text import TextEncoder

__all__ = ["FeatureCache", "ImageEncoder", "TextEncoder", "encode_images", "encode_texts", "load_encoder"]
