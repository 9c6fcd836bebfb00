"""``encode_texts`` and ``encode_images``: cached rows are read, the others are computed and cached in batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.progress import progress_bar
from openset._utils.threads import one_ahead
from openset.data.readers.images import ImageFiles
from openset.features.base import Encoder, Features
from openset.features.cache import FeatureCache, NoCache, OpenCache
from openset.features.images import LITE, ImageEncoder
from openset.features.model_files import model_directory
from openset.features.text import TextEncoder

Cache = bool | str | Path | FeatureCache


def load_encoder(name: str | Path, **settings: Any) -> TextEncoder | ImageEncoder:
    """The encoder of a packaged name, a model directory or a hub name; ``settings`` are its keyword arguments.

    A model that preprocesses images, such as CLIP, gives an image encoder; any other gives a text encoder.

    >>> load_encoder("minilm", max_tokens=32).settings["max_tokens"]
    32
    """
    directory = model_directory(name)
    takes_images = name == LITE or (directory / "preprocessor_config.json").is_file()
    return ImageEncoder(name, **settings) if takes_images else TextEncoder(name, **settings)


def encode_texts(
    texts: Iterable[str],
    encoder: str | Path | TextEncoder = "minilm",
    *,
    batch_size: int = 64,
    cache: Cache = True,
    progress: bool = True,
) -> Features:
    """Features of texts, float32, one row each and in their order.

    Parameters
    ----------
    texts : strings, in a list, an array or a column.
    encoder : the model of a :class:`TextEncoder`, or such an encoder, which keeps its model in memory.
    batch_size : texts computed at a time.
    cache : where to store features. ``True``: in the default directory (``$OPENSET_CACHE``); a path: in that
        directory; ``False``: nowhere; a :class:`FeatureCache` also sets a size limit. Cached rows are not
        computed again.
    progress : whether to show a progress bar while rows are computed.
    """
    if isinstance(texts, str):
        raise ValueError("texts is one string; pass a list of texts")
    ready = encoder if isinstance(encoder, TextEncoder) else TextEncoder(encoder)
    return encode(_as_list(texts), ready, batch_size=batch_size, cache=cache, progress=progress)


def encode_images(
    images: Iterable[Any],
    encoder: str | Path | ImageEncoder = LITE,
    *,
    batch_size: int = 32,
    cache: Cache = True,
    progress: bool = True,
) -> Features:
    """Features of images (paths, encoded bytes, uint8 arrays, PIL images), float32, one row each, in their order.

    Paths and :class:`~openset.data.ImageFiles` are decoded batch by batch, and only where the cache lacks their
    rows. The other arguments are those of :func:`encode_texts`.

    >>> import numpy as np
    >>> encode_images(np.zeros((2, 32, 32, 3), np.uint8), cache=False, progress=False).shape
    (2, 1280)
    """
    if isinstance(images, str | Path | bytes):
        raise ValueError("images is one path or one image; pass a list of images")
    ready = encoder if isinstance(encoder, ImageEncoder) else ImageEncoder(encoder)
    # a list of all images would have the pixels of all in memory
    items = images.files if isinstance(images, ImageFiles) else _as_list(images)
    return encode(items, ready, batch_size=batch_size, cache=cache, progress=progress)


def encode_cells(
    images: Iterable[Any],
    encoder: str | Path = LITE,
    *,
    cells: int = 3,
    device: str = "cpu",
    batch_size: int = 32,
    cache: Cache = True,
    progress: bool = True,
) -> Features:
    """Maps of cells of images, (n, cells², channels) float32: what :class:`~openset.methods.anna.ANNA` takes.

    The encoder's last feature map is averaged to ``cells`` × ``cells`` cells, row by row. The mean of an
    EfficientNet's or ResNet's cells is the vector that :func:`encode_images` returns, if the map divides evenly.
    ``device`` is where torch computes.

    >>> import numpy as np
    >>> encode_cells(np.zeros((2, 32, 32, 3), np.uint8), cells=2, cache=False, progress=False).shape
    (2, 4, 1280)
    """
    ready = ImageEncoder(encoder, cells=cells, device=device)
    flat = encode_images(images, ready, batch_size=batch_size, cache=cache, progress=progress)
    return flat.reshape(len(flat), cells**2, -1)


def encode(items: Sequence[Any], encoder: Encoder, *, batch_size: int, cache: Cache, progress: bool) -> Features:
    """Features of items: read if they are cached, otherwise computed and cached batch by batch."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if not items:
        return np.empty((0, encoder.dimension), dtype=np.float32)
    keys = [encoder.key(item, row) for row, item in enumerate(items)]
    first_row = {key: row for row, key in reversed(list(enumerate(keys)))}
    with _opened(cache) as store:
        features = store.get(first_row.keys())
        missing = sorted(row for key, row in first_row.items() if key not in features)
        with progress_bar("encoding", enabled=progress and bool(missing)) as update:
            for batch in one_ahead(encoder.batches(items, missing, batch_size)):
                batch_keys = [keys[row] for row in batch.rows]
                elsewhere = store.get(batch_keys)  # another process may have computed them by now
                if len(elsewhere) < len(batch_keys):
                    computed = _finite(encoder.forward(batch.inputs), batch.rows)
                    elsewhere = store.put(dict(zip(batch_keys, computed, strict=True)))
                features |= elsewhere
                update(len(features), len(first_row), encoder.name)
    return np.stack([features[key] for key in keys])


def _opened(cache: Cache) -> AbstractContextManager[OpenCache | NoCache]:
    if cache is False:
        return nullcontext(NoCache())
    if isinstance(cache, FeatureCache):
        return cache.open()
    return FeatureCache(None if cache is True else cache).open()


def _as_list(items: Any) -> list[Any]:
    """A list of Python values; iterating over a pyarrow column would give pyarrow scalars."""
    return items.to_pylist() if hasattr(items, "to_pylist") else list(items)


def _finite(features: Features, rows: Sequence[int]) -> Features:
    bad = ~np.isfinite(features).all(axis=1)
    if bad.any():
        raise ValueError(f"row {rows[int(bad.argmax())]}: the encoder returned features that are not finite")
    return features
