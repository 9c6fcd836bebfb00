"""Bodies: rows to representations, for all members at once; each also as ONNX nodes.

Weights have shape members × in × out, so that all members train in the same batched products. A body is
dropout → linear → ReLU → dropout on features, a bottleneck with batch normalisation (SHOT), or one copy of the
user's backbone for each member.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from openset.learn.architecture import Architecture
from openset.learn.backbones import as_cells
from openset.learn.kernels import BodyFunction, Workspace, repeatable_product
from openset.learn.seeds import StreamState, restore_stream, stream_state

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value

Weights = Mapping[str, NDArray[Any]]
"""The arrays of one layer by name, as in ``weights_`` of an estimator."""

_MOMENTUM, _EPSILON = 0.1, 1e-5
"""Constants of batch normalisation."""


class DropoutMasks:
    """Dropout masks from one random stream per member, so that a member trains the same alone or with others.

    Eight random bits decide an element, so a rate is rounded to a multiple of 1/256 (0.2 becomes 0.199).
    ``rates`` gives each member its own rate, instead of the network's; its factor is then one of the rows.
    """

    def __init__(self, seeds: Sequence[np.random.SeedSequence], rates: Sequence[float] | None = None) -> None:
        self._streams = [np.random.SFC64(seed) for seed in seeds]
        self._rates = None if rates is None else tuple(rates)
        self._scales = torch.tensor([_scale_of(rate) for rate in self._rates or ()]).view(-1, 1, 1)

    def state(self) -> list[StreamState]:
        """Return the state of each member's stream."""
        return [stream_state(stream) for stream in self._streams]

    def restore(self, state: Sequence[StreamState]) -> None:
        """Restore what ``state()`` returned."""
        for stream, stored in zip(self._streams, state, strict=True):
            restore_stream(stream, stored)

    def draw_seed(self, member: int) -> int:
        """Return a seed for torch from a member's stream."""
        return int(self._streams[member].random_raw()) >> 1

    def scale(self, rate: float) -> float | Tensor:
        """Return 1 / (1 − rate) for the rounded rate; (members, 1, 1) if members' rates differ."""
        return _scale_of(rate) if self._rates is None else self._scales

    def fill(self, mask: Tensor, rate: float) -> Tensor:
        """Fill a mask (members, ...) with 0 at the given rate, and 1 elsewhere."""
        host = mask if mask.device.type == "cpu" else torch.empty_like(mask, device="cpu")
        rates = self._rates or (rate,) * len(self._streams)
        for stream, lane, own in zip(self._streams, host.flatten(1).numpy(), rates, strict=True):
            if own == 0:
                lane.fill(1)
                continue
            random_bytes = stream.random_raw(-(-lane.size // 8)).view(np.uint8)[: lane.size]
            np.greater_equal(random_bytes, round(own * 256), out=lane, casting="unsafe")
        return mask if host is mask else mask.copy_(host)


def _scale_of(rate: float) -> float:
    return 256 / (256 - round(rate * 256))


class Linear(nn.Module):
    """Weights of a linear layer for every member."""

    def __init__(self, members: int, width_in: int, width_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, width_in, width_out))
        self.bias = nn.Parameter(torch.empty(members, 1, width_out))

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """Draw from U(±1/√in), torch's rule for a linear layer."""
        bound = self.weight.shape[1] ** -0.5
        self.weight[member].uniform_(-bound, bound, generator=generator)
        self.bias[member].uniform_(-bound, bound, generator=generator)


class FeatureBody(Linear):
    """Dropout → linear → ReLU → dropout, for every member."""

    def __init__(self, architecture: Architecture, workspace: Workspace) -> None:
        super().__init__(architecture.members, architecture.n_features, architecture.hidden)
        self.dropout = architecture.dropout
        self._workspace, self._gradients = workspace, dict[int, Tensor]()

    def forward(self, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        """Map rows (members, rows, features) to representations (members, rows, hidden)."""
        if masks is None:
            return repeatable_product(x, self.weight, self.bias).relu()
        keep_x = keep_h = None
        if self.dropout > 0:
            take = self._workspace.take
            keep_x = masks.fill(take(tuple(x.shape), x), self.dropout)
            keep_h = masks.fill(take((*x.shape[:2], self.weight.shape[2]), x), self.dropout)
        scale = masks.scale(self.dropout)
        h: Tensor = BodyFunction.apply(  # type: ignore[no-untyped-call]
            self.weight, self.bias, x, keep_x, keep_h, scale, self._workspace, self._gradients
        )
        return h

    @staticmethod
    def onnx(x: Value, weights: Weights) -> Value:
        """Return the same as ONNX nodes, for scoring."""
        return (x @ weights["weight"] + weights["bias"]).map("Relu")


class BottleneckBody(nn.Module):
    """Dropout → linear → batch normalisation → dropout, for every member; no ReLU.

    Training normalises by the statistics of the batch and updates running statistics, which are buffers of each
    member. Scoring uses the running statistics, so that a row's result does not depend on the other rows. The
    linear layer has no bias: normalisation removes it, and its gradient would be rounding noise for Adam.
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
        """Draw weights by Glorot's normal rule; normalisation starts as the identity."""
        draw_glorot(self.weight[member], generator)
        for values in (self.scale, self.running_variance):
            values[member].fill_(1)
        for values in (self.shift, self.running_mean):
            values[member].zero_()

    def forward(self, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        """Map rows (members, rows, features) to representations (members, rows, hidden)."""
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

    @staticmethod
    def onnx(x: Value, weights: Weights) -> Value:
        """Return the same as ONNX nodes, for scoring."""
        factor = weights["scale"] / np.sqrt(weights["running_variance"] + np.float32(_EPSILON))
        return (x @ weights["weight"] - weights["running_mean"]) * factor + weights["shift"]


class BackboneBody(nn.Module):
    """One copy of a module for each member, which maps a row to a vector or to a map of cells.

    The module has its own dropout and normalisation. In training it draws from torch's global generator, which is
    seeded for each member from that member's stream.
    """

    def __init__(self, backbone: nn.Module, members: int) -> None:
        super().__init__()
        self.copies = nn.ModuleList(copy.deepcopy(backbone) for _ in range(members))
        self.frozen: list[nn.Module] = []
        """Layers that stay as they are in training, running statistics and dropout too."""

    def forward(self, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        """Map rows (members, rows, ...) to (members, rows, hidden), or to maps (members, rows, cells, hidden)."""
        self.train(masks is not None)
        for layer in self.frozen:
            layer.eval()
        outputs = []
        for member, (module, rows) in enumerate(zip(self.copies, x, strict=True)):
            if masks is not None:
                torch.manual_seed(masks.draw_seed(member))
            outputs.append(as_cells(module(rows)))
        return torch.stack(outputs)


def draw_glorot(weight: Tensor, generator: torch.Generator) -> None:
    """Fill a weight by Glorot's normal rule."""
    weight.normal_(0, (2 / sum(weight.shape)) ** 0.5, generator=generator)


BodyLayer = FeatureBody | BottleneckBody

BODY_KINDS: dict[str, type[BodyLayer]] = {
    "relu": FeatureBody,
    "bottleneck": BottleneckBody,
}
"""Kinds of bodies on features: (members, rows, features) to (members, rows, hidden). A backbone replaces them."""
