"""A linear bottleneck with batch normalisation, and heads of normalised weights (SHOT)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from openset.learn.architecture import Architecture, HeadWidths
from openset.learn.kernels import Workspace, repeatable_product

if TYPE_CHECKING:
    from openset.learn.network import DropoutMasks

_MOMENTUM = 0.1
_EPSILON = 1e-5


class BottleneckBody(nn.Module):
    """Dropout → linear → batch normalisation → dropout, for every member; no ReLU.

    Training normalises by the batch it is given and moves the running statistics, which are buffers of each
    member; scoring normalises by those, so that a row's result does not depend on its company. The linear layer
    has no bias: normalisation takes it out again, and Adam would step on the rounding that is its gradient.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, architecture: Architecture, workspace: Workspace) -> None:
        super().__init__()
        members, n_features, hidden = architecture.members, architecture.n_features, architecture.hidden
        self.dropout = architecture.dropout
        self.weight = nn.Parameter(torch.empty(members, n_features, hidden))
        self.scale = nn.Parameter(torch.empty(members, 1, hidden))
        self.shift = nn.Parameter(torch.empty(members, 1, hidden))
        self.register_buffer("running_mean", torch.empty(members, 1, hidden))
        self.register_buffer("running_variance", torch.empty(members, 1, hidden))

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """Weights by Glorot's normal rule; normalisation starts as the identity."""
        _draw_glorot(self.weight[member], generator)
        for values in (self.scale, self.running_variance):
            values[member].fill_(1)
        for values in (self.shift, self.running_mean):
            values[member].zero_()

    def forward(self, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        """Rows (members, rows, features) to representations (members, rows, hidden)."""
        z = repeatable_product(self._dropped(x, masks), self.weight, torch.zeros_like(self.weight[:, :1]))
        if masks is None:
            mean, variance = self.running_mean, self.running_variance
        else:
            variance, mean = torch.var_mean(z, dim=1, correction=0, keepdim=True)
            self._follow(mean.detach(), variance.detach(), z.shape[1])
        normal = (z - mean) * (variance + _EPSILON).rsqrt()
        return self._dropped(normal * self.scale + self.shift, masks)

    def _follow(self, mean: Tensor, variance: Tensor, rows: int) -> None:
        """Move the running statistics towards those of a batch, with its unbiased variance."""
        with torch.no_grad():
            self.running_mean.lerp_(mean, _MOMENTUM)
            self.running_variance.lerp_(variance * (rows / max(rows - 1, 1)), _MOMENTUM)

    def _dropped(self, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        if masks is None or self.dropout == 0:
            return x
        scale = masks.scale(self.dropout)
        return x * masks.fill(torch.empty_like(x, requires_grad=False), self.dropout) * scale


class WeightNormHeads(nn.Module):
    """A linear head whose weights are directions of unit length times one learned length for each class."""

    def __init__(self, widths: HeadWidths, hidden: int, members: int, workspace: Workspace) -> None:
        super().__init__()
        n_classes = widths["classes"]
        self.direction = nn.Parameter(torch.empty(members, hidden, n_classes))
        self.length = nn.Parameter(torch.empty(members, 1, n_classes))
        self.bias = nn.Parameter(torch.empty(members, 1, n_classes))

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """Directions by Glorot's normal rule, lengths as drawn."""
        _draw_glorot(self.direction[member], generator)
        self.length[member].copy_(self.direction[member].norm(dim=0, keepdim=True))
        self.bias[member].zero_()

    def forward(self, z: Tensor) -> dict[str, Tensor]:
        """Logits of every class, (members, rows, k)."""
        weight = self.direction * (self.length / self.direction.norm(dim=1, keepdim=True))
        return {"classes": repeatable_product(z, weight, self.bias)}


def _draw_glorot(weight: Tensor, generator: torch.Generator) -> None:
    weight.normal_(0, (2 / sum(weight.shape)) ** 0.5, generator=generator)
