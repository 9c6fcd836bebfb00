"""The two layers of a feature network as hand-written forward and backward passes over reused memory.

At these sizes allocating memory costs as much as arithmetic: autograd allocates a dozen batch-sized tensors a
step, and the operating system provides each page by page. These functions write into buffers that last for all of
training, and write gradients directly into ``.grad``. They compute dropout → linear → ReLU → dropout → linear;
tests compare them with plain autograd. The gain in speed is in docs/decisions/0002-training-step.md.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NARROW = 8
"""With fewer columns than this, the rounding of a row may depend on its position in the block (seen with MKL at 5
columns), so narrower products are padded. MKL does so at 9 to 11 columns too, which are not padded."""


def repeatable_product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return x W + b, padded so that a row's rounding does not depend on its position in the block."""
    width = weight.shape[2]
    if width >= NARROW:
        return torch.baddbmm(bias, x, weight)
    missing = (0, NARROW - width)
    return torch.baddbmm(F.pad(bias, missing), x, F.pad(weight, missing))[..., :width]


class Workspace:
    """Reusable tensors by shape; a tensor is valid until the next :meth:`reset`."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, ...], list[Tensor]] = {}
        self._used: dict[tuple[int, ...], list[Tensor]] = {}

    def take(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return an uninitialised float32 tensor, which is not returned again before the next reset."""
        free = self._free.setdefault(shape, [])
        tensor = free.pop() if free else torch.empty(shape, dtype=torch.float32, device=like.device)
        self._used.setdefault(shape, []).append(tensor)
        return tensor.detach()  # a new tensor object: autograd changes those that a function returns

    def reset(self) -> None:
        """Make all tensors available again."""
        for shape, tensors in self._used.items():
            self._free[shape].extend(tensors)
            tensors.clear()


def _add_gradient(
    parameter: nn.Parameter, buffers: dict[int, Tensor], a: Tensor, b: Tensor, alpha: float
) -> None:
    """Add alpha · a @ b to ``parameter.grad``, in a buffer that belongs to the parameter."""
    if parameter.grad is None:
        buffer = buffers.setdefault(id(parameter), torch.empty_like(parameter, requires_grad=False))
        parameter.grad = torch.baddbmm(buffer, a, b, beta=0, alpha=alpha, out=buffer)
    else:
        parameter.grad.baddbmm_(a, b, alpha=alpha)


def _add_bias_gradient(parameter: nn.Parameter, delta: Tensor, scale: float | Tensor) -> None:
    gradient = delta.sum(dim=1, keepdim=True)
    if isinstance(scale, Tensor) or scale != 1.0:
        gradient.mul_(scale)
    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


class BodyFunction(torch.autograd.Function):
    """h = keep_h ⊙ ReLU((keep_x ⊙ x) W + b), with both dropout masks scaled by 1 / (1 − rate).

    ``keep_x`` and ``keep_h`` contain 0 and 1. Their scale is part of the product, because ReLU(s·z) = s·ReLU(z).
    If members have different scales, the rows are scaled instead.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weight: nn.Parameter,
        bias: nn.Parameter,
        x: Tensor,
        keep_x: Tensor | None,
        keep_h: Tensor | None,
        scale: float | Tensor,
        workspace: Workspace,
        buffers: dict[int, Tensor],
    ) -> Tensor:
        """Return the hidden representation, in workspace memory."""
        kept = x
        if keep_x is not None:
            kept = torch.mul(x, keep_x, out=workspace.take(tuple(x.shape), x))
        h = workspace.take((*x.shape[:2], weight.shape[2]), x)
        if isinstance(scale, Tensor):
            scale = scale.to(x.device)
            torch.baddbmm(bias * scale, kept.mul_(scale * scale), weight, out=h)
        else:
            torch.baddbmm(bias, kept, weight, beta=scale, alpha=scale * scale, out=h)
        h.relu_()
        if keep_h is not None:
            h.mul_(keep_h)
        ctx.state = (weight, bias, kept, h, scale, workspace, buffers)
        return h

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, ...]:
        """Add the gradients of weight and bias to their ``.grad``; rows need no gradient."""
        weight, bias, kept, h, scale, workspace, buffers = ctx.state
        (dh,) = gradients
        # h > 0 exactly where the unit was active and kept
        dz = workspace.take(tuple(dh.shape), dh)
        torch.ops.aten.threshold_backward.grad_input(dh, h, 0, grad_input=dz)
        alpha = 1.0 if isinstance(scale, Tensor) else scale * scale
        _add_gradient(weight, buffers, kept.transpose(1, 2), dz, alpha)
        _add_bias_gradient(bias, dz, scale)
        return (None,) * 8


class HeadsFunction(torch.autograd.Function):
    """logits = h W + b for all heads at once."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: nn.Parameter,
        bias: nn.Parameter,
        h: Tensor,
        workspace: Workspace,
        buffers: dict[int, Tensor],
    ) -> Tensor:
        """Return logits (members, rows, width)."""
        ctx.state = (weight, bias, h, workspace, buffers)
        return torch.baddbmm(bias, h, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Add the gradients of weight and bias to their ``.grad``; return that of h."""
        weight, bias, h, workspace, buffers = ctx.state
        (delta,) = gradients
        _add_gradient(weight, buffers, h.transpose(1, 2), delta, 1.0)
        _add_bias_gradient(bias, delta, 1.0)
        dh = torch.bmm(delta, weight.transpose(1, 2), out=workspace.take(tuple(h.shape), h))
        return None, None, dh, None, None
