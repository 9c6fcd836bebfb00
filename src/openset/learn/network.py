"""A network of one or more bodies with named heads, for all members at once.

The kinds of bodies and heads are in :mod:`openset.learn.bodies` and :mod:`openset.learn.heads`. Rows may be maps
of cells, (cells, features), and backbones may return maps; the mean of the cells is then used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from openset.learn.architecture import Architecture
from openset.learn.bodies import BODY_KINDS, BackboneBody, BodyLayer, DropoutMasks
from openset.learn.heads import HEAD_KINDS, HeadLayer
from openset.learn.kernels import Workspace
from openset.learn.primal_dual import ParameterGroup
from openset.learn.seeds import child_seed, isolated_random_state, torch_seed

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value


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
        """Return outputs of all heads of one body. In training pass ``masks``; without, there is no dropout."""
        heads: dict[str, Tensor] = self.heads[body](self.represent(x, body, masks))
        return heads

    def represent(self, x: Tensor, body: str, masks: DropoutMasks | None = None) -> Tensor:
        """Return the body's representation φ(x), (members, rows, hidden); for a map, that of its mean cell."""
        layer = self.bodies[body]
        if isinstance(layer, BackboneBody):
            z: Tensor = layer(x, masks)
            return z if z.ndim == 3 else z.mean(dim=2)
        h: Tensor = layer(x if x.ndim == 3 else x.mean(dim=2), masks)
        return h

    def represent_with_cells(
        self, x: Tensor, body: str, masks: DropoutMasks | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return φ(x) of maps, (members, rows, hidden), and φ of their cells, (members, rows, cells, hidden)."""
        layer = self.bodies[body]
        if isinstance(layer, BackboneBody):
            cells: Tensor = layer(x, masks)
            return cells.mean(dim=2), cells
        cells = layer(x.flatten(1, 2), masks).unflatten(1, x.shape[1:3])
        return self.represent(x, body, masks), cells

    def initialise(
        self, seeds: Sequence[np.random.SeedSequence], make_backbone: Callable[[], nn.Module] | None = None
    ) -> Network:
        """Draw each member's weights from its seed; ``make_backbone`` makes each member a new backbone."""
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

    def _own_layers(self) -> Iterator[BodyLayer | HeadLayer]:
        own = (*BODY_KINDS.values(), *HEAD_KINDS.values())
        for name in self.architecture.bodies:
            for layer in (self.bodies[name], self.heads[name]):
                if isinstance(layer, own):
                    yield layer

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return, for each body, its parameters and those of its heads."""
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
        """Return views of one member's weights and buffers, with the names of a network of one member."""
        state = {}
        for name, tensor in self.state_dict().items():
            owner, name_alone = _backbone_owner(name)
            if owner is None:
                state[name] = tensor[member : member + 1]
            elif owner == member:
                state[name_alone] = tensor
        return state

    def member(self, member: int) -> Network:
        """Return one member as a network that shares the weights, for scoring."""
        alone = replace(self.architecture, members=1)
        backbone = next((b.copies[0] for b in self.bodies.values() if isinstance(b, BackboneBody)), None)
        return _assembled(alone, self.member_state(member), backbone)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return weights and buffers as numpy arrays."""
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.state_dict().items()}

    @classmethod
    def from_arrays(
        cls,
        architecture: Architecture,
        arrays: Mapping[str, NDArray[np.generic]],
        backbone: nn.Module | None = None,
        device: str | torch.device = "cpu",
    ) -> Network:
        """Return a network with the given weights, without copying them on the CPU."""
        tensors = {
            # torch needs writable memory; arrays that are read-only (joblib) are copied
            name: torch.from_numpy(array if array.flags.writeable else array.copy())
            for name, array in arrays.items()
        }
        return _assembled(architecture, tensors, backbone).to(device)


def onnx_outputs(x: Value, architecture: Architecture, weights: Mapping[str, NDArray[Any]]) -> dict[str, Value]:
    """Return every head's outputs for scaled rows as ONNX nodes, (members, rows, width)."""
    found: dict[str, Value] = {}
    for name, z in onnx_layers(x, architecture, weights).items():
        head = _under(weights, f"heads.{name}.")
        found |= HEAD_KINDS[architecture.kinds.get(name, "linear")].onnx(z, head, architecture.bodies[name])
    return found


def onnx_layers(x: Value, architecture: Architecture, weights: Mapping[str, NDArray[Any]]) -> dict[str, Value]:
    """Return every body's output for scaled rows as ONNX nodes, (members, rows, hidden)."""
    return {
        name: BODY_KINDS[architecture.body_kinds.get(name, "relu")].onnx(x, _under(weights, f"bodies.{name}."))
        for name in architecture.bodies
    }


def _under(weights: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in weights.items() if name.startswith(prefix)}


def _assembled(architecture: Architecture, tensors: Mapping[str, Tensor], backbone: nn.Module | None) -> Network:
    """Return a network for scoring with the given tensors."""
    with torch.device("meta"):
        network = Network(architecture, backbone)
    network.load_state_dict(tensors, assign=True)
    return network.eval().requires_grad_(False)


def _backbone_owner(name: str) -> tuple[int | None, str]:
    """Return the member of a backbone's entry, and its name in a network of one member; None for others."""
    parts = name.split(".")
    if parts[0] == "bodies" and parts[2] == "copies":
        return int(parts[3]), ".".join([*parts[:3], "0", *parts[4:]])
    return None, name
