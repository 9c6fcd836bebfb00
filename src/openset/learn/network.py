"""One or more bodies with named heads, for all members of an ensemble at once.

Weights are shaped members × in × out, so that every member trains in the same batched products. A body is
dropout → linear → ReLU → dropout on features, or one copy of the user's backbone for each member. Heads are
linear, or of another kind in ``HEAD_KINDS`` with parameters of its own, which train, save and restore alike;
so are bodies on features and ``BODY_KINDS``. Rows may be maps of cells, (cells, features), and backbones may
return maps: a row is then the mean of its cells.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from openset.learn.architecture import Architecture, HeadWidths
from openset.learn.backbones import as_cells
from openset.learn.bottleneck import BottleneckBody, WeightNormHeads
from openset.learn.domains import CellDiscriminators
from openset.learn.kernels import BodyFunction, HeadsFunction, Workspace, repeatable_product
from openset.learn.primal_dual import ParameterGroup
from openset.learn.reciprocal import ReciprocalHeads
from openset.learn.seeds import (
    StreamState,
    child_seed,
    isolated_random_state,
    restore_stream,
    stream_state,
    torch_seed,
)


class DropoutMasks:
    """Keep-masks from one random stream per member, so that a member is the same alone or in company.

    Eight random bits decide an element, so a rate is rounded to the next 1/256 (0.2 becomes 0.199). Members may
    have ``rates`` of their own, in place of the network's.
    """

    def __init__(self, seeds: Sequence[np.random.SeedSequence], rates: Sequence[float] | None = None) -> None:
        self._streams = [np.random.SFC64(seed) for seed in seeds]
        self._rates = None if rates is None or len(set(rates)) == 1 else tuple(rates)
        self._scales = torch.tensor([_scale_of(rate) for rate in self._rates or ()]).view(-1, 1, 1)

    def state(self) -> list[StreamState]:
        """Where each member's stream stands."""
        return [stream_state(stream) for stream in self._streams]

    def restore(self, state: Sequence[StreamState]) -> None:
        """Go on from there."""
        for stream, stored in zip(self._streams, state, strict=True):
            restore_stream(stream, stored)

    def draw_seed(self, member: int) -> int:
        """A seed for torch from a member's stream."""
        return int(self._streams[member].random_raw()) >> 1

    def scale(self, rate: float) -> float | Tensor:
        """1 / (1 − rate), for the rate as rounded; of every member, (members, 1, 1), where they differ."""
        return _scale_of(rate) if self._rates is None else self._scales

    def fill(self, mask: Tensor, rate: float) -> Tensor:
        """Fill a mask (members, ...) with 0, at the given rate, and 1."""
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
    """A linear layer's weights for every member."""

    def __init__(self, members: int, width_in: int, width_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, width_in, width_out))
        self.bias = nn.Parameter(torch.empty(members, 1, width_out))

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """U(±1/√in), torch's own rule for a linear layer."""
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
        """Rows (members, rows, features) to representations (members, rows, hidden)."""
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


class BackboneBody(nn.Module):
    """A copy of any module for each member; rows in, one vector or one map a row out.

    The module brings its own dropout and normalisation. Whatever it draws in training comes from torch's global
    generator, seeded for each member from that member's stream.
    """

    def __init__(self, backbone: nn.Module, members: int) -> None:
        super().__init__()
        self.copies = nn.ModuleList(copy.deepcopy(backbone) for _ in range(members))

    def forward(self, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        """Rows (members, rows, ...) to (members, rows, hidden), of maps to (members, rows, cells, hidden)."""
        self.train(masks is not None)
        outputs = []
        for member, (module, rows) in enumerate(zip(self.copies, x, strict=True)):
            if masks is not None:
                torch.manual_seed(masks.draw_seed(member))
            outputs.append(as_cells(module(rows)))
        return torch.stack(outputs)


class Heads(Linear):
    """All linear heads of one body as a single product, split by name."""

    def __init__(self, widths: HeadWidths, hidden: int, members: int, workspace: Workspace) -> None:
        super().__init__(members, hidden, sum(widths.values()))
        self._workspace, self._gradients = workspace, dict[int, Tensor]()
        self.widths = dict(widths)

    def forward(self, z: Tensor) -> dict[str, Tensor]:
        """Logits of each head, (members, rows, width)."""
        if torch.is_grad_enabled():
            logits = HeadsFunction.apply(  # type: ignore[no-untyped-call]
                self.weight, self.bias, z, self._workspace, self._gradients
            )
        else:
            logits = repeatable_product(z, self.weight, self.bias)
        return dict(zip(self.widths, logits.split(list(self.widths.values()), dim=-1), strict=True))


class CellHeads(Heads):
    """Linear heads, and beside them two discriminators that tell which domain a cell comes from (ANNA)."""

    def __init__(self, widths: HeadWidths, hidden: int, members: int, workspace: Workspace) -> None:
        super().__init__(widths, hidden, members, workspace)
        self.domains = CellDiscriminators(hidden, members)

    def initialise(self, member: int, generator: torch.Generator) -> None:
        """Draw one member's heads and discriminators."""
        super().initialise(member, generator)
        self.domains.initialise(member, generator)


BODY_KINDS: dict[str, type[FeatureBody | BottleneckBody]] = {
    "relu": FeatureBody,
    "bottleneck": BottleneckBody,
}
"""What bodies on features can be: (members, rows, features) to (members, rows, hidden). A backbone takes their
place, whatever the kind."""

HEAD_KINDS: dict[str, type[Heads | ReciprocalHeads | WeightNormHeads]] = {
    "linear": Heads,
    "reciprocal": ReciprocalHeads,
    "weight_norm": WeightNormHeads,
    "cells": CellHeads,
}
"""What heads can be. A kind maps (members, rows, hidden) to named outputs (members, rows, width); all parameters
and buffers of a kind have the members axis first, and ``initialise`` draws one member's."""


class Network(nn.Module):
    """Bodies with named heads; ``network(x, "shared")["classes"]`` are logits (members, rows, width)."""

    def __init__(self, architecture: Architecture, backbone: nn.Module | None = None) -> None:
        super().__init__()
        self.architecture = architecture
        self.workspace = Workspace()
        a = architecture
        self.bodies = nn.ModuleDict(
            {
                name: BODY_KINDS[a.body_kinds.get(name, "relu")](a, self.workspace)
                if backbone is None
                else BackboneBody(backbone, a.members)
                for name in a.bodies
            }
        )
        self.heads = nn.ModuleDict(
            {
                name: HEAD_KINDS[a.kinds.get(name, "linear")](widths, a.hidden, a.members, self.workspace)
                for name, widths in a.bodies.items()
            }
        )

    def forward(self, x: Tensor, body: str, masks: DropoutMasks | None = None) -> dict[str, Tensor]:
        """All heads of one body. Training passes ``masks``; without, there is no dropout and no gradient."""
        heads: dict[str, Tensor] = self.heads[body](self.represent(x, body, masks))
        return heads

    def represent(self, x: Tensor, body: str, masks: DropoutMasks | None = None) -> Tensor:
        """The body's representation φ(x), (members, rows, hidden); of a map, that of its mean cell."""
        layer = self.bodies[body]
        if isinstance(layer, BackboneBody):
            z: Tensor = layer(x, masks)
            return z if z.ndim == 3 else z.mean(dim=2)
        h: Tensor = layer(x if x.ndim == 3 else x.mean(dim=2), masks)
        return h

    def represent_with_cells(
        self, x: Tensor, body: str, masks: DropoutMasks | None = None
    ) -> tuple[Tensor, Tensor]:
        """φ(x) of maps, (members, rows, hidden), and φ of their cells, (members, rows, cells, hidden)."""
        layer = self.bodies[body]
        if isinstance(layer, BackboneBody):
            cells: Tensor = layer(x, masks)
            return cells.mean(dim=2), cells
        cells = layer(x.flatten(1, 2), masks).unflatten(1, x.shape[1:3])
        return self.represent(x, body, masks), cells

    def initialise(
        self, seeds: Sequence[np.random.SeedSequence], make_backbone: Callable[[], nn.Module] | None = None
    ) -> Network:
        """Draw each member's weights from its own seed; backbones are made anew, or stay as they were given."""
        for member, seed in enumerate(seeds):
            generator = torch.Generator().manual_seed(torch_seed(seed))
            with torch.no_grad():
                for layer in self._own_layers():
                    layer.initialise(member, generator)
            if make_backbone is not None:
                with isolated_random_state(child_seed(seed, 0)):
                    for body in self.bodies.values():
                        if isinstance(body, BackboneBody):
                            body.copies[member] = make_backbone()
        return self

    def _own_layers(self) -> Iterator[FeatureBody | BottleneckBody | Heads | ReciprocalHeads | WeightNormHeads]:
        own = (*BODY_KINDS.values(), *HEAD_KINDS.values())
        for name in self.architecture.bodies:
            for layer in (self.bodies[name], self.heads[name]):
                if isinstance(layer, own):
                    yield layer

    def parameter_groups(self) -> list[ParameterGroup]:
        """For each body its parameters and those of its heads."""
        groups = []
        for name in self.architecture.bodies:
            body, heads = self.bodies[name], self.heads[name]
            if isinstance(body, BackboneBody):
                own = [list(module.parameters()) for module in body.copies]
                groups.append(ParameterGroup(list(heads.parameters()), own))
            else:
                groups.append(ParameterGroup([*body.parameters(), *heads.parameters()]))
        return groups

    def member_state(self, member: int) -> dict[str, Tensor]:
        """Views of everything that belongs to one member, buffers included, as a network of one names it."""
        state = {}
        for name, tensor in self.state_dict().items():
            owner, name_alone = _backbone_owner(name)
            if owner is None:
                state[name] = tensor[member : member + 1]
            elif owner == member:
                state[name_alone] = tensor
        return state

    def member(self, member: int) -> Network:
        """One member as a network of its own that shares the weights, for scoring."""
        alone = replace(self.architecture, members=1)
        backbone = next((b.copies[0] for b in self.bodies.values() if isinstance(b, BackboneBody)), None)
        return _assembled(alone, self.member_state(member), backbone)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The whole state as numpy arrays, for the estimator to keep and to save."""
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.state_dict().items()}

    @classmethod
    def from_arrays(
        cls,
        architecture: Architecture,
        arrays: Mapping[str, NDArray[np.generic]],
        backbone: nn.Module | None = None,
        device: str | torch.device = "cpu",
    ) -> Network:
        """A network around given weights, without copying them on the CPU."""
        tensors = {
            # torch wants writable memory; arrays mapped read-only (joblib) are copied
            name: torch.from_numpy(array if array.flags.writeable else array.copy())
            for name, array in arrays.items()
        }
        return _assembled(architecture, tensors, backbone).to(device)


def _assembled(architecture: Architecture, tensors: Mapping[str, Tensor], backbone: nn.Module | None) -> Network:
    """A network for scoring around given tensors."""
    with torch.device("meta"):
        network = Network(architecture, backbone)
    network.load_state_dict(tensors, assign=True)
    return network.eval().requires_grad_(False)


def _backbone_owner(name: str) -> tuple[int | None, str]:
    """The member that a backbone's entry belongs to and its name in a network of one; None if stacked."""
    parts = name.split(".")
    if parts[0] == "bodies" and parts[2] == "copies":
        return int(parts[3]), ".".join([*parts[:3], "0", *parts[4:]])
    return None, name
