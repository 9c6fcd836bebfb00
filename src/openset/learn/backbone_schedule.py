"""How a pretrained backbone is fine-tuned: frozen layers, a learning rate for each layer, and a warm-up."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor, nn

from openset._utils.params import check_integer, check_number
from openset._utils.text import counted
from openset.errors import FitWarning
from openset.learn.bodies import BackboneBody
from openset.learn.network import Network


@dataclass(frozen=True)
class BackboneSchedule:
    """Settings of fine-tuning. The defaults train the whole backbone like the heads."""

    freeze: int = 0
    """The number of lowest layers that stay as they are, their normalisation too; -1 for all of them."""
    rate: float = 1.0
    """The learning rate of the highest layer, as a factor of that of the heads."""
    decay: float = 1.0
    """The factor from one layer to the one below it."""
    warmup: int = 0
    """The number of steps in which all learning rates rise from nearly zero."""

    def __post_init__(self) -> None:
        check_integer("learning_rate freeze", self.freeze, low=-1)
        check_number("learning_rate rate", self.rate, open_low=True)
        check_number("learning_rate decay", self.decay, high=1, open_low=True)
        check_integer("learning_rate warmup", self.warmup, low=0)

    def check_length(self, n_steps: int) -> None:
        """Warn if training ends before all learning rates have risen."""
        if self.warmup >= n_steps:
            message = (
                f"learning_rate warmup={self.warmup} is not shorter than the training of {n_steps} steps, so the "
                "learning rates hardly reach their values: give a shorter warm-up, or more max_steps."
            )
            warnings.warn(message, FitWarning, stacklevel=2)

    def factor(self, step: int) -> float:
        """The factor of all learning rates at a step, which is counted from 1.

        >>> [BackboneSchedule(warmup=4).factor(step) for step in (1, 4, 5)]
        [0.25, 1.0, 1.0]
        """
        return min(1.0, step / self.warmup) if self.warmup else 1.0


def split_learning_rate(given: Any) -> tuple[float, BackboneSchedule | None]:
    """The learning rate of the heads, and the schedule of the backbone if ``learning_rate=`` is a mapping.

    >>> split_learning_rate({"heads": 0.001, "freeze": 2})
    (0.001, BackboneSchedule(freeze=2, rate=1.0, decay=1.0, warmup=0))
    """
    if not isinstance(given, Mapping):
        check_number("learning_rate", given, open_low=True)
        return float(given), None
    names = [field.name for field in fields(BackboneSchedule)]
    if "heads" not in given or not set(given) <= {"heads", *names}:
        raise ValueError(
            f"learning_rate={given!r} is not valid: expected a number, or a mapping of heads and some of "
            f'{", ".join(names)}, such as {{"heads": 0.001, "freeze": 2, "rate": 0.1, "warmup": 100}}.'
        )
    check_number("learning_rate heads", given["heads"], open_low=True)
    return float(given["heads"]), BackboneSchedule(**{n: given[n] for n in names if n in given})


def layers_of(module: nn.Module) -> list[nn.Module]:
    """The layers of a backbone from the lowest to the highest: its children, and the items of lists among them.

    >>> from openset.learn.backbones import resnet18
    >>> [type(layer).__name__ for layer in layers_of(resnet18(width=2))][:4]
    ['Conv2d', 'BatchNorm2d', 'Block', 'Block']
    """
    found: list[nn.Module] = []
    for child in module.children():
        inner = list(child.children())
        if isinstance(child, nn.Sequential | nn.ModuleList):
            found += inner
        elif len(inner) == 1 and isinstance(inner[0], nn.Sequential | nn.ModuleList):
            found += list(inner[0].children())  # such as the encoder of a transformer
        else:
            found.append(child)
    if len(found) == 1 and any(True for _ in found[0].children()):
        return layers_of(found[0])
    return found or [module]


def apply_schedule(network: Network, schedule: BackboneSchedule, learning_rate: float) -> list[dict[str, Any]]:
    """Freeze what is to be frozen, and return the optimiser's groups: parameters with their learning rate."""
    rates: dict[float, list[Tensor]] = {}
    scheduled: set[int] = set()
    for body in network.bodies.values():
        if not isinstance(body, BackboneBody):
            continue
        for module in body.copies:
            layers = layers_of(module)
            n_frozen = len(layers) if schedule.freeze < 0 else schedule.freeze
            if n_frozen > len(layers):
                raise ValueError(
                    f"learning_rate freeze={n_frozen} is not valid: the backbone has "
                    f"{counted(len(layers), 'layer')}. Give fewer, or -1 to freeze all."
                )
            frozen = [module] if n_frozen == len(layers) else layers[:n_frozen]
            for layer in frozen:
                layer.requires_grad_(False)
                body.frozen.append(layer)
            for height, layer in enumerate(reversed(layers)):
                rate = learning_rate * schedule.rate * schedule.decay**height
                own = [p for p in layer.parameters() if p.requires_grad and id(p) not in scheduled]
                rates.setdefault(rate, []).extend(own)
                scheduled.update(map(id, own))
            rest = [p for p in module.parameters() if p.requires_grad and id(p) not in scheduled]
            rates.setdefault(learning_rate * schedule.rate, []).extend(rest)
            scheduled.update(map(id, rest))
    heads = [p for p in network.parameters() if p.requires_grad and id(p) not in scheduled]
    groups = [{"params": heads, "lr": learning_rate}]
    groups += [{"params": parameters, "lr": rate} for rate, parameters in rates.items() if parameters]
    return groups
