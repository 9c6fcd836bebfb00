"""A ResNet of torchvision as a model directory: its tensors under the names that transformers has for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openset._utils.extras import require
from openset._utils.files import existing, expanded, replacing_folder
from openset._utils.text import shortened

SOURCE = (
    "Download https://download.pytorch.org/models/resnet50-0676ba61.pth, torchvision's ResNet50 with the weights "
    "IMAGENET1K_V1, which the paper used."
)
PREPROCESSING = {
    "size": {"shortest_edge": 256},
    "crop_size": {"height": 224, "width": 224},
    "resample": 2,  # bilinear
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
}
"""What torchvision does to an image for its weights IMAGENET1K_V1."""


def save_torchvision_resnet(weights: str | Path, folder: str | Path) -> None:
    """Write a model directory of a file of weights of torchvision's ResNet18, 34, 50, 101 or 152.

    The weights are read as tensors only; no code in the file is executed. A folder that is not empty is an error.
    """
    import torch
    from safetensors.torch import save_file

    transformers = require("transformers", "a model directory", "encoders")
    file, place = existing(weights, SOURCE), expanded(folder)
    if place.exists() and any(place.iterdir()):
        raise FileExistsError(f"{place} exists already: remove it, or choose another name.")
    try:
        tensors = torch.load(file, map_location="cpu", weights_only=True)
        model = transformers.ResNetModel(transformers.ResNetConfig(**settings_of(tensors)))
        model.load_state_dict(renamed(tensors))  # raises where a tensor is missing or has another shape
    except Exception as error:  # torch raises errors of many types for what is no file of weights
        reason = shortened(" ".join(str(error).split()), 200)
        raise ValueError(f"{file} holds no ResNet of torchvision ({reason}). {SOURCE}") from error
    with replacing_folder(place, overwrite=False) as temporary:
        model.config.save_pretrained(temporary)
        save_file(model.state_dict(), temporary / "model.safetensors", metadata={"format": "pt"})
        transformers.BitImageProcessorPil(**PREPROCESSING).save_pretrained(temporary)


def settings_of(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of transformers' ResNet with these tensors of torchvision's: kind, widths and depths."""
    blocks = sorted({tuple(name.split(".")[:2]) for name in tensors if name.startswith("layer")})
    stages = sorted({stage for stage, _ in blocks})
    last = 3 if "layer1.0.conv3.weight" in tensors else 2
    return {
        "layer_type": "bottleneck" if last == 3 else "basic",
        "embedding_size": len(tensors["conv1.weight"]),
        "hidden_sizes": [len(tensors[f"{stage}.0.conv{last}.weight"]) for stage in stages],
        "depths": [sum(of == stage for of, _ in blocks) for stage in stages],
    }


def renamed(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """torchvision's tensors under transformers' names, without the layer that classifies.

    >>> renamed({"conv1.weight": 1, "layer2.0.bn3.bias": 2, "fc.bias": 3})
    {'embedder.embedder.convolution.weight': 1, 'encoder.stages.1.layers.0.layer.2.normalization.bias': 2}
    """
    return {_new_name(name): tensor for name, tensor in tensors.items() if not name.startswith("fc.")}


def _new_name(name: str) -> str:
    """torchvision counts stages, and the layers of a block, from 1, transformers from 0."""
    kinds = {"conv": "convolution", "bn": "normalization"}
    match name.split("."):
        case ["conv1" | "bn1" as layer, parameter]:
            return f"embedder.embedder.{kinds[layer[:-1]]}.{parameter}"
        case [stage, block, "downsample", "0" | "1" as number, parameter]:
            layer = f"shortcut.{list(kinds.values())[int(number)]}"
        case [stage, block, layer, parameter]:
            layer = f"layer.{int(layer[-1]) - 1}.{kinds[layer[:-1]]}"
        case _:
            raise ValueError(f"it has a tensor {name!r}.")
    return f"encoder.stages.{int(stage.removeprefix('layer')) - 1}.layers.{block}.{layer}.{parameter}"
