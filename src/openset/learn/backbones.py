"""What ``backbone=`` can be: a name, a function that makes a module, or a module.

A name and a function start from scratch: every member's module is made anew, with torch seeded from that member's
seed. A module starts from the weights it has (pretrained ones, say), copied for every member; it is itself never
changed. Only names can be rebuilt from a saved model without being given again.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from openset.learn.resnet import resnet18

NAMED: dict[str, Callable[..., nn.Module]] = {"resnet18": resnet18}
_CALL = re.compile(r"(\w+)(?:\((.*)\))?")
_ARGUMENT = re.compile(r"\s*(width|channels)\s*=\s*([1-9]\d*)\s*")


def named_backbone(name: str) -> Callable[[], nn.Module]:
    """The function behind a name such as ``"resnet18"`` or ``"resnet18(width=16)"``.

    >>> sum(p.numel() for p in named_backbone("resnet18(width=16, channels=1)")().parameters())
    699888
    """
    call = _CALL.fullmatch(name.strip())
    given = [_ARGUMENT.fullmatch(part) for part in call[2].split(",")] if call and call[2] else []
    if call is None or call[1] not in NAMED or not all(given):
        raise ValueError(
            f"backbone={name!r} is not valid: expected one of {', '.join(map(repr, NAMED))}, if need be with "
            "width and channels as in 'resnet18(width=16, channels=1)', a torch.nn.Module, or a function that "
            "makes one."
        )
    return functools.partial(NAMED[call[1]], **{match[1]: int(match[2]) for match in given if match})


def maker_of(backbone: Any) -> Callable[[], nn.Module] | None:
    """What makes a member's module from scratch; None for a module, which has its weights already."""
    if isinstance(backbone, nn.Module) or backbone is None:
        return None
    return named_backbone(backbone) if isinstance(backbone, str) else backbone


def template_of(backbone: Any) -> nn.Module | None:
    """A module of the right shape, to be copied; torch's random state stays as it was."""
    make = maker_of(backbone)
    if make is None:
        return backbone
    with torch.random.fork_rng():
        module = make()
    if not isinstance(module, nn.Module):
        raise ValueError(f"backbone={backbone!r} made a {type(module).__name__}: expected a torch.nn.Module.")
    return module


def as_cells(z: torch.Tensor) -> torch.Tensor:
    """A convolutional map (rows, hidden, height, width) as (rows, cells, hidden); all else as it is."""
    return z.flatten(2).transpose(1, 2) if z.ndim == 4 else z


def output_shape(backbone: nn.Module, row_shape: Sequence[int]) -> tuple[int, ...]:
    """What a backbone makes of a row of a shape: (width,), or (cells, width) if it returns a map."""
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
