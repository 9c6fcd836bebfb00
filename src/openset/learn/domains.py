"""Two small networks that tell, cell by cell, which domain a map comes from: ANNA's adversaries."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

DISCRIMINATORS = ("known", "unknown")
_SLOPE = 0.2
"""Of the leaky ReLU for negative values, as the authors have it."""


class CellDiscriminators(nn.Module):
    """For each of "known" and "unknown" three linear layers with leaky ReLU between, for every member."""

    def __init__(self, hidden: int, members: int) -> None:
        super().__init__()
        narrow = max(1, hidden // 2)  # the authors' ratio
        widths = ((hidden, narrow), (narrow, narrow), (narrow, 1))
        shape = (members, len(DISCRIMINATORS))
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(*shape, *width)) for width in widths)
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(*shape, 1, out)) for _, out in widths)

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """U(±1/√in) for one member, torch's own rule for a linear layer."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = weight.shape[2] ** -0.5
            weight[member].uniform_(-bound, bound, generator=generator)
            bias[member].uniform_(-bound, bound, generator=generator)

    def forward(self, z: Tensor) -> Tensor:
        """Cells (members, cells, hidden) to logits of "source", (members, 2, cells)."""
        h = z.unsqueeze(1)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = (h if layer == 0 else F.leaky_relu(h, _SLOPE)) @ weight + bias
        return h.squeeze(-1)
