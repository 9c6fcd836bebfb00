"""Heads: representations to named outputs, for all members at once; each also as ONNX nodes.

Heads are linear, reciprocal points (ARPL), linear with normalised weights (SHOT), or linear with two additional
domain discriminators (ANNA).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from openset.learn.architecture import HeadWidths
from openset.learn.bodies import Linear, Weights, draw_glorot
from openset.learn.kernels import HeadsFunction, Workspace, repeatable_product

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value

_POINT_SCALE = 0.1
_DISCRIMINATORS = ("known", "unknown")
_SLOPE = 0.2
"""Slope of ANNA's leaky ReLU for negative values, as in its authors' code."""


class Heads(Linear):
    """All linear heads of one body, computed as one product and split by name."""

    def __init__(self, widths: HeadWidths, hidden: int, members: int, workspace: Workspace) -> None:
        super().__init__(members, hidden, sum(widths.values()))
        self._workspace, self._gradients = workspace, dict[int, Tensor]()
        self.widths = dict(widths)

    def forward(self, z: Tensor) -> dict[str, Tensor]:
        """Return the logits of each head, (members, rows, width)."""
        if torch.is_grad_enabled():
            logits = HeadsFunction.apply(  # type: ignore[no-untyped-call]
                self.weight, self.bias, z, self._workspace, self._gradients
            )
        else:
            logits = repeatable_product(z, self.weight, self.bias)
        return dict(zip(self.widths, logits.split(list(self.widths.values()), dim=-1), strict=True))

    @staticmethod
    def onnx(z: Value, weights: Weights, widths: HeadWidths) -> dict[str, Value]:
        """Return the same as ONNX nodes."""
        logits = z @ weights["weight"] + weights["bias"]
        ends = np.cumsum(list(widths.values()))
        return {
            name: logits.take(np.arange(end - width, end), axis=2)
            for (name, width), end in zip(widths.items(), ends, strict=True)
        }


def reciprocal_outputs(z: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits ‖z − P_k‖²/m − z·P_k and distances ‖z − P_k‖²/m, each (members, rows, k).

    ``z`` is (members, rows, m) and ``points`` (members, k, m).
    """
    width = z.shape[-1]
    weight = points.transpose(1, 2)
    product = repeatable_product(z, weight, torch.zeros_like(weight[:, :1]))
    distance = (z.square().sum(-1, keepdim=True) - 2 * product + points.square().sum(-1).unsqueeze(1)) / width
    return distance - product, distance


class ReciprocalHeads(nn.Module):
    """One point for each class and one radius, for every member; outputs "classes" (logits) and "distances".

    Points start at 0.1·N(0, 1), the radius at 0.
    """

    def __init__(self, widths: HeadWidths, hidden: int, members: int, workspace: Workspace) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.empty(members, widths["classes"], hidden))
        self.radius = nn.Parameter(torch.empty(members, 1))

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """Draw one member's points."""
        self.points[member].normal_(0, _POINT_SCALE, generator=generator)
        self.radius[member].zero_()

    def forward(self, z: Tensor) -> dict[str, Tensor]:
        """Return logits and distances of every class, (members, rows, k)."""
        logits, distances = reciprocal_outputs(z, self.points)
        return {"classes": logits, "distances": distances}

    @staticmethod
    def onnx(z: Value, weights: Weights, widths: HeadWidths) -> dict[str, Value]:
        """Return the same as ONNX nodes."""
        points = weights["points"]
        product = z @ points.transpose(0, 2, 1)
        lengths = np.square(points).sum(-1)[:, None, :]
        twice, width = np.float32(2), np.float32(points.shape[2])
        square = (z * z).over("Sum", 2, keep=True) - product * np.asarray(twice) + lengths
        distance = square / np.asarray(width)
        return {"classes": distance - product, "distances": distance}


class WeightNormHeads(nn.Module):
    """A linear head whose weights are directions of unit length times one learned length for each class."""

    def __init__(self, widths: HeadWidths, hidden: int, members: int, workspace: Workspace) -> None:
        super().__init__()
        n_classes = widths["classes"]
        self.direction = nn.Parameter(torch.empty(members, hidden, n_classes))
        self.length = nn.Parameter(torch.empty(members, 1, n_classes))
        self.bias = nn.Parameter(torch.empty(members, 1, n_classes))

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """Draw directions by Glorot's normal rule; lengths are those of the draws."""
        draw_glorot(self.direction[member], generator)
        self.length[member].copy_(self.direction[member].norm(dim=0, keepdim=True))
        self.bias[member].zero_()

    def forward(self, z: Tensor) -> dict[str, Tensor]:
        """Return the logits of every class, (members, rows, k)."""
        weight = self.direction * (self.length / self.direction.norm(dim=1, keepdim=True))
        return {"classes": repeatable_product(z, weight, self.bias)}

    @staticmethod
    def onnx(z: Value, weights: Weights, widths: HeadWidths) -> dict[str, Value]:
        """Return the same as ONNX nodes."""
        norm = np.linalg.norm(weights["direction"], axis=1, keepdims=True)
        return {"classes": z @ (weights["direction"] * (weights["length"] / norm)) + weights["bias"]}


class CellDiscriminators(nn.Module):
    """Two networks, "known" and "unknown", of three linear layers with leaky ReLU between, for every member."""

    def __init__(self, hidden: int, members: int) -> None:
        super().__init__()
        narrow = max(1, hidden // 2)  # the authors' ratio
        widths = ((hidden, narrow), (narrow, narrow), (narrow, 1))
        shape = (members, len(_DISCRIMINATORS))
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(*shape, *width)) for width in widths)
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(*shape, 1, out)) for _, out in widths)

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """Draw one member from U(±1/√in), torch's rule for a linear layer."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = weight.shape[2] ** -0.5
            weight[member].uniform_(-bound, bound, generator=generator)
            bias[member].uniform_(-bound, bound, generator=generator)

    def forward(self, z: Tensor) -> Tensor:
        """Map cells (members, cells, hidden) to logits of "source", (members, 2, cells)."""
        h = z.unsqueeze(1)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = (h if layer == 0 else F.leaky_relu(h, _SLOPE)) @ weight + bias
        return h.squeeze(-1)


class CellHeads(Heads):
    """Linear heads, and two discriminators of the domain of a cell (ANNA)."""

    def __init__(self, widths: HeadWidths, hidden: int, members: int, workspace: Workspace) -> None:
        super().__init__(widths, hidden, members, workspace)
        self.domains = CellDiscriminators(hidden, members)

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """Draw one member's heads and discriminators."""
        super().initialise(member, generator)
        self.domains.initialise(member, generator)


HeadLayer = Heads | ReciprocalHeads | WeightNormHeads

HEAD_KINDS: dict[str, type[HeadLayer]] = {
    "linear": Heads,
    "reciprocal": ReciprocalHeads,
    "weight_norm": WeightNormHeads,
    "cells": CellHeads,
}
"""Kinds of heads. A kind maps (members, rows, hidden) to named outputs (members, rows, width). All its parameters
and buffers have the members axis first, and ``initialise`` draws those of one member."""
