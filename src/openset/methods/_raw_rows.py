"""Rows for a backbone: arrays of any shape, such as images of uint8, and checks of them."""

from __future__ import annotations

from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_choice
from openset.learn.backbone_schedule import split_learning_rate
from openset.learn.backbones import named_backbone
from openset.stats.scaling import NO_SCALING, Moments, Scaling, channel_axis, fit_image_scaling

RowKind = dict[str, Any]


def check_backbone(backbone: Any, learning_rate: Any = 1e-3) -> None:
    """Raise unless ``backbone`` is None, a known name, a module, or a function, and its rate is valid."""
    if split_learning_rate(learning_rate)[1] is not None and backbone is None:
        raise ValueError(f"learning_rate={learning_rate!r} needs a backbone: pass one, or give a number.")
    if isinstance(backbone, str):
        named_backbone(backbone)
    elif backbone is not None and not callable(backbone):
        raise ValueError(
            f"backbone={backbone!r} is not valid: expected a torch.nn.Module that maps rows to vectors, "
            "a function that makes one, or a name such as 'resnet18'."
        )


def check_checkpoint(checkpoint: Any, random_state: Any) -> None:
    """Raise unless ``checkpoint`` is None, or a folder together with an integer seed."""
    if checkpoint is None:
        return
    if not isinstance(checkpoint, (str, PathLike)):
        raise ValueError(f"checkpoint={checkpoint!r} is not valid: expected a folder or None.")
    if not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state={random_state!r} is not valid with checkpoint={str(checkpoint)!r}: expected an "
            "integer, because a resumed fit must draw the same random numbers."
        )


def check_augment(augment: Any, backbone: Any) -> None:
    """Raise unless ``augment`` is None, or a known augmentation together with a backbone."""
    check_choice("augment", augment, ("crop_flip", None))
    if augment is not None and backbone is None:
        raise ValueError(f"augment={augment!r} needs images, and images need a backbone such as 'resnet18'.")


def row_kind(rows: NDArray[Any]) -> RowKind:
    """Return the shape and type that all rows of a fitted backbone must have."""
    return {"shape": list(rows.shape[1:]), "bytes": rows.dtype == np.uint8}


def check_row_kind(name: str, kind: RowKind, fitted: RowKind, augment: str | None) -> None:
    """Raise unless rows have the shape and type of the fit, and are images if they are to be augmented."""
    if kind != fitted:
        raise ValueError(f"{name} has rows {_described(kind)}, but X was fitted with rows {_described(fitted)}.")
    if augment is not None and len(kind["shape"]) != 3:
        raise ValueError(f"augment={augment!r} needs images: {name} has rows {_described(kind)}.")


def raw_scaling(rows: NDArray[Any], source: Moments, target: Moments | None, standardize: str | None) -> Scaling:
    """Return the scaling for a backbone: images of uint8 are standardised by channel, other rows unchanged."""
    axis = channel_axis(rows)
    return NO_SCALING if axis is None else fit_image_scaling(source, target, standardize, axis)


def _described(kind: RowKind) -> str:
    return f"of shape {tuple(kind['shape'])} and type " + ("uint8" if kind["bytes"] else "float")
