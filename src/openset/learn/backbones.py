"""Backbones: ResNet18 for small images, and the values of ``backbone=``: a name, a function, or a module.

A name or a function starts from scratch: a new module is made for every member, with torch seeded from its seed.
A module starts from its weights, for example pretrained ones. It is copied for every member and never changed.
Only a name can be rebuilt from a saved model; a function or a module must be passed to ``load`` again.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def resnet18(width: int = 64, channels: int = 3) -> nn.Module:
    """He et al. (2016) with the CIFAR stem: one 3×3 convolution of stride 1 and no pooling before the blocks.

    ``width`` is the number of channels of the first stage, 64 as published; vectors have 8 · width numbers.

    >>> import torch
    >>> resnet18(width=8)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """
    return ResNet18(width, channels)


class ResNet18(nn.Module):
    """Stem, four stages of two residual blocks each, and the mean over the remaining pixels."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.stem = _convolution(channels, width)
        self.norm = nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        width_in = width
        for stage in range(4):
            width_out = width << stage
            blocks += [Block(width_in, width_out, 1 if stage == 0 else 2), Block(width_out, width_out, 1)]
            width_in = width_out
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n, C, H, W) to vectors (n, 8 · width)."""
        # convolutions are faster with channels last in memory; the layout of the weights does not change
        x = x.contiguous(memory_format=torch.channels_last)
        features: Tensor = self.blocks(F.relu(self.norm(self.stem(x))))
        return features.mean(dim=(2, 3))


class Block(nn.Module):
    """Two 3×3 convolutions plus a shortcut, which is a 1×1 convolution where the shape changes."""

    def __init__(self, width_in: int, width_out: int, stride: int) -> None:
        super().__init__()
        self.first, self.first_norm = _convolution(width_in, width_out, stride), nn.BatchNorm2d(width_out)
        self.second, self.second_norm = _convolution(width_out, width_out), nn.BatchNorm2d(width_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width_in != width_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width_in, width_out, 1, bias=False), nn.BatchNorm2d(width_out)
            )
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Return ReLU(convolutions(x) + shortcut(x))."""
        z = F.relu(self.first_norm(self.first(x)))
        # equals a 1×1 convolution of that stride, which writes past its memory in oneDNN (its issue 6035)
        strided = x[:, :, :: self.stride, :: self.stride]
        return F.relu(self.second_norm(self.second(z)) + self.shortcut(strided))


def _convolution(width_in: int, width_out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(width_in, width_out, 3, stride, padding=1, bias=False)


NAMED: dict[str, Callable[..., nn.Module]] = {"resnet18": resnet18}
_CALL = re.compile(r"(\w+)(?:\((.*)\))?")
_ARGUMENT = re.compile(r"\s*(width|channels)\s*=\s*([1-9]\d*)\s*")


def named_backbone(name: str) -> Callable[[], nn.Module]:
    """Return the function of a name such as ``"resnet18"`` or ``"resnet18(width=16)"``.

    >>> sum(p.numel() for p in named_backbone("resnet18(width=16, channels=1)")().parameters())
    699888
    """
    call = _CALL.fullmatch(name.strip())
    given = [_ARGUMENT.fullmatch(part) for part in call[2].split(",")] if call and call[2] else []
    if call is None or call[1] not in NAMED or not all(given):
        raise ValueError(
            f"backbone={name!r} is not valid: expected one of {', '.join(map(repr, NAMED))}, optionally with "
            "width and channels as in 'resnet18(width=16, channels=1)', a torch.nn.Module, or a function that "
            "returns one."
        )
    return functools.partial(NAMED[call[1]], **{match[1]: int(match[2]) for match in given if match})


def maker_of(backbone: Any) -> Callable[[], nn.Module] | None:
    """Return the function that makes a new module; None for a module, which already has weights."""
    if isinstance(backbone, nn.Module) or backbone is None:
        return None
    return named_backbone(backbone) if isinstance(backbone, str) else backbone


def template_of(backbone: Any) -> nn.Module | None:
    """Return a module of the right shape, to be copied; torch's random state does not change."""
    make = maker_of(backbone)
    if make is None:
        return backbone
    with torch.random.fork_rng():
        module = make()
    if not isinstance(module, nn.Module):
        raise ValueError(f"backbone={backbone!r} returned a {type(module).__name__}: expected a torch.nn.Module.")
    return module


def as_cells(z: torch.Tensor) -> torch.Tensor:
    """Return a convolutional map (rows, hidden, height, width) as (rows, cells, hidden); others unchanged."""
    return z.flatten(2).transpose(1, 2) if z.ndim == 4 else z


def output_shape(backbone: nn.Module, row_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a backbone's output for one row: (width,), or (cells, width) for a map."""
    with torch.no_grad():
        try:
            z = copy.deepcopy(backbone).cpu().eval()(torch.zeros(2, *row_shape))
        except RuntimeError as error:
            raise ValueError(
                f"the backbone cannot take rows of shape {tuple(row_shape)}: {error} "
                "(Images are (n, channels, height, width); uint8 images may have their channels last.)"
            ) from error
    if z.ndim not in (2, 3, 4) or len(z) != 2:
        raise ValueError(
            f"the backbone returned shape {tuple(z.shape)} for 2 rows: expected one vector a row, (2, width), "
            "or one map, (2, cells, width) or (2, channels, height, width)."
        )
    return tuple(as_cells(z).shape[1:])
