"""Heads of reciprocal points: a row belongs to the class whose point it is farthest from (ARPL)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from openset.learn.architecture import HeadWidths
from openset.learn.kernels import Workspace, repeatable_product

_POINT_SCALE = 0.1


def reciprocal_outputs(z: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Logits ‖z − P_k‖²/m − z·P_k and distances ‖z − P_k‖²/m, each (members, rows, k).

    ``z`` is (members, rows, m) and ``points`` (members, k, m).
    """
    width = z.shape[-1]
    weight = points.transpose(1, 2)
    product = repeatable_product(z, weight, torch.zeros_like(weight[:, :1]))
    distance = (z.square().sum(-1, keepdim=True) - 2 * product + points.square().sum(-1).unsqueeze(1)) / width
    return distance - product, distance


class ReciprocalHeads(nn.Module):
    """One point a class and one radius, for every member; outputs "classes" (logits) and "distances".

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
        """Logits and distances of every class, (members, rows, k)."""
        logits, distances = reciprocal_outputs(z, self.points)
        return {"classes": logits, "distances": distances}
