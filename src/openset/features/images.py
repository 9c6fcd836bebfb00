"""Image encoders: vision models of transformers (ResNet, ViT, CLIP) and the packaged EfficientNet-Lite0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset._utils.params import check_integer
from openset.data.readers.images import ImageFile, upright_image
from openset.features.base import Batch, Encoder
from openset.features.model_files import LOCAL, load_pretrained, model_directory, model_files, read_json

if TYPE_CHECKING:
    from PIL.Image import Image

LITE = "efficientnet_lite0"
LITE_SIDE = 192
"""Side in pixels of the images that EfficientNet-Lite0 takes."""


class LoadedModel(NamedTuple):
    """Functions from an upright RGB image to pixels, and from pixels (n, 3, h, w) to features or to a map."""

    prepare: Callable[[Image], NDArray[np.float32]]
    features: Callable[[Any], Any]
    maps: Callable[[Any], Any]
    """The last feature map, (n, channels, h, w)."""


class ImageEncoder(Encoder):
    """From images to features. An image is a path, a file, encoded bytes, a uint8 array or a PIL image.

    Parameters
    ----------
    model : "efficientnet_lite0" (packaged, 1280 features), a directory, or a name on the hub. EfficientNet-Lite0
        takes the largest centred square of an image, resized to 192 pixels (bicubic), as (x·255 − 127) / 128;
        its features are the spatial mean of the last feature map. Models of transformers preprocess images as
        their ``preprocessor_config.json`` says. Their features are CLIP's projected embedding, ViT's class token,
        and the pooled output of ResNet and similar models.
    normalise : whether to scale features to length 1.
    cells : return the last feature map instead, averaged to ``cells`` × ``cells`` cells: of EfficientNet and
        ResNet the map before pooling, of ViT and CLIP the patches. A row is then cells² × channels numbers, one
        cell after the other; :func:`~openset.features.encode_cells` returns them as maps.
    device : where torch computes.

    >>> ImageEncoder()
    ImageEncoder('efficientnet_lite0', normalise=False, side=192)
    """

    kind = "image"

    def __init__(
        self, model: str | Path = LITE, *, normalise: bool = False, cells: int | None = None, device: str = "cpu"
    ) -> None:
        check_integer("cells", cells, optional=True)
        self.name = str(model)
        self.device = device
        self.cells = cells
        self.settings = {"normalise": normalise} | ({"side": LITE_SIDE} if self.name == LITE else {})
        if cells is not None:
            self.settings |= {"cells": cells}
        self._directory = model_directory(model)

    def batches(self, items: Sequence[Any], rows: Sequence[int], batch_size: int) -> Iterator[Batch]:
        """Batches in the given order; threads decode the images of a batch (Pillow releases the lock)."""
        prepare = self._loaded.prepare
        with ThreadPoolExecutor() as threads:
            for start in range(0, len(rows), batch_size):
                chosen = list(rows[start : start + batch_size])
                pixels = threads.map(lambda row: prepare(read_image(items[row], row)), chosen)
                yield Batch(chosen, {"pixel_values": np.stack(list(pixels))})

    @cached_property
    def _loaded(self) -> LoadedModel:
        if self.name == LITE:
            return load_efficientnet_lite0(self._directory, self.device)
        return load_transformers(self._directory, self.device)

    def _features(self, tensors: dict[str, Any]) -> Any:
        if self.cells is None:
            return self._loaded.features(tensors["pixel_values"])
        return self._cells(self._loaded.maps(tensors["pixel_values"]))

    def _cells(self, maps: Any) -> Any:
        """Maps (n, channels, h, w) averaged to cells², flattened cell after cell."""
        from torch.nn.functional import adaptive_avg_pool2d

        if self.cells is None or self.cells > min(maps.shape[2:]):
            height, width = maps.shape[2:]
            raise ValueError(
                f"cells={self.cells} is not valid: the map of {self.name} has {height} × {width} cells."
            )
        return adaptive_avg_pool2d(maps, self.cells).flatten(2).transpose(1, 2).flatten(1)

    def _files(self) -> list[Path]:
        if self.name == LITE:
            return sorted(self._directory.glob("*.pth"))
        return model_files([self._directory])

    def _sample(self) -> NDArray[np.uint8]:
        return np.zeros((8, 8, 3), dtype=np.uint8)

    def _content(self, item: object, row: int) -> bytes:
        if isinstance(item, str | Path | ImageFile | bytes):
            return b"file\0" + _encoded(item, row)
        image = read_image(item, row)
        return b"pixels\0%dx%d\0" % image.size + image.tobytes()


def read_image(item: object, row: int) -> Image:
    """An item as an upright RGB image; an error names the row."""
    require("PIL", "encoding images", "encoders")
    from PIL import Image, ImageOps

    if isinstance(item, np.ndarray):
        if item.dtype != np.uint8 or not (item.ndim == 2 or (item.ndim == 3 and item.shape[2] in (3, 4))):
            raise ValueError(
                f"row {row}: an image array must be uint8 of shape (h, w), (h, w, 3) or (h, w, 4), "
                f"got {item.dtype} of shape {item.shape}"
            )
        return Image.fromarray(item).convert("RGB")
    if isinstance(item, Image.Image):
        return ImageOps.exif_transpose(item).convert("RGB")
    data = _encoded(item, row)
    try:
        return upright_image(data)
    except Exception as error:  # Pillow's plugins raise errors of many types for damaged files
        where = "" if isinstance(item, bytes) else f" ({item})"
        raise ValueError(f"row {row}{where}: not a readable image: {error}") from error


def _encoded(item: object, row: int) -> bytes:
    if isinstance(item, bytes):
        return item
    if not isinstance(item, str | Path | ImageFile):
        raise ValueError(
            f"row {row}: expected a path, bytes, a uint8 array or a PIL image, got {type(item).__name__}"
        )
    try:
        return (Path(item) if isinstance(item, str) else item).read_bytes()
    except OSError as error:
        raise ValueError(f"row {row}: cannot read the image {item}: {error.strerror}") from error


def centre_square(image: Image, side: int) -> Image:
    """The largest centred square (its corner rounded down), resized with bicubic interpolation."""
    from PIL.Image import Resampling

    width, height = image.size
    edge = min(width, height)
    left, top = (width - edge) // 2, (height - edge) // 2
    return image.crop((left, top, left + edge, top + edge)).resize((side, side), Resampling.BICUBIC)


def load_efficientnet_lite0(directory: Path, device: str) -> LoadedModel:
    """The packaged EfficientNet-Lite0. Its weights are read as tensors only; no code in the file is executed."""
    import torch

    package = require("efficientnet_lite_pytorch", "the encoder 'efficientnet_lite0'", "encoders")
    (weights,) = directory.glob("*.pth")
    model = package.EfficientNet.from_name("efficientnet-lite0", image_size=LITE_SIDE)
    model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    model.eval().to(device)

    def prepare(image: Image) -> NDArray[np.float32]:
        pixels = np.asarray(centre_square(image, LITE_SIDE), dtype=np.float32)
        return np.ascontiguousarray((pixels.transpose(2, 0, 1) - 127) / 128)

    maps = model.extract_features
    return LoadedModel(prepare, lambda pixels: maps(pixels).mean((2, 3)), maps)


def load_transformers(directory: Path, device: str) -> LoadedModel:
    """A vision model of transformers with its own preprocessing, by Pillow: torchvision is not needed."""
    require("transformers", "encoding images", "encoders")
    from transformers import AutoImageProcessor, AutoModel, CLIPModel, CLIPVisionModelWithProjection

    if not (directory / "preprocessor_config.json").is_file():
        raise ValueError(f"{directory} has no preprocessor_config.json: it is not an image model")
    processor = AutoImageProcessor.from_pretrained(directory, backend="pil", **LOCAL)
    architecture = (read_json(directory / "config.json").get("architectures") or [""])[0]
    projecting = {loader.__name__: loader for loader in (CLIPModel, CLIPVisionModelWithProjection)}
    model = load_pretrained(projecting.get(architecture, AutoModel), directory, device)
    if hasattr(getattr(model, "pooler", None), "dense"):
        model.pooler = None  # ViT's is a layer for pre-training, which many checkpoints lack

    def prepare(image: Image) -> NDArray[np.float32]:
        return np.asarray(processor(images=image, return_tensors="np")["pixel_values"][0], dtype=np.float32)

    def features(pixels: Any) -> Any:
        if architecture in projecting:
            return model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)
        output = model(pixel_values=pixels)
        pooled = output.get("pooler_output")
        return output.last_hidden_state[:, 0] if pooled is None else pooled.flatten(1)

    def maps(pixels: Any) -> Any:
        tower = model.vision_model if hasattr(model, "vision_model") else model
        hidden = tower(pixel_values=pixels).last_hidden_state
        return hidden if hidden.ndim == 4 else patches(hidden, pixels.shape[2:], _patch_size(tower.config))

    return LoadedModel(prepare, features, maps)


def _patch_size(config: Any) -> tuple[int, int] | None:
    """Height and width of a patch in pixels; None where the configuration does not say."""
    size = getattr(config, "patch_size", None)
    return (size, size) if isinstance(size, int) else None if size is None else (size[0], size[1])


def patches(tokens: Any, image: Sequence[int], patch: tuple[int, int] | None) -> Any:
    """The patches of a transformer (n, tokens, width) as a map (n, width, rows, columns) of the image.

    Tokens before the patches, such as the class's and registers, go. A model that merges patches (Swin) has fewer
    than the image; then all tokens must make up a map of the image's shape.
    """
    count, (height, width) = tokens.shape[1], image
    rows, columns = (height // patch[0], width // patch[1]) if patch else (0, 0)
    if not 0 < rows * columns <= count:
        rows = round(math.sqrt(count * height / width))
        columns = rows * width // height
        if rows * columns != count:
            raise ValueError(
                f"the model returns {count} tokens for images of {height} × {width} pixels: they make up no map "
                "of that shape. Cells need a convolutional network, or a transformer with one token a patch."
            )
    return tokens[:, count - rows * columns :].transpose(1, 2).unflatten(2, (rows, columns))
