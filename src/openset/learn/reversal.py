"""Gradient reversal: what stands after it descends on a loss, what stands before it ascends."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * -ctx.strength, None


def reverse_gradient(values: Tensor, strength: float = 1.0) -> Tensor:
    """The values themselves; on the way back their gradient is multiplied by −strength."""
    reversed_: Tensor = _Reversal.apply(values, strength)  # type: ignore[no-untyped-call]
    return reversed_
