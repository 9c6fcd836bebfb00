"""The primal–dual step: zero the gradients, descend on weights and ascend on multipliers.

The problem is to minimise ``objective`` subject to ``violation <= 0``, for every member separately. The primal
step may use a differentiable proxy of the violation, while the multipliers follow the true one (Cotter et al.
2019). Without constraints the step is plain gradient descent, so every method trains with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Terms:
    """One evaluation of a problem: the loss, and the violation of each constraint."""

    objective: Tensor
    """(members,)"""
    proxy_violation: Tensor | None = None
    """(members, constraints), differentiable; positive where a constraint is violated"""
    violation: Tensor | None = None
    """(members, constraints), for the multipliers; None to use the proxy"""


def make_optimizer(
    kind: str,
    parameters: Sequence[Tensor] | Sequence[dict[str, Any]],
    learning_rate: float,
    momentum: float = 0.0,
) -> torch.optim.Optimizer:
    """Return Adam or SGD, as one fused kernel.

    SGD starts with momentum zero for every parameter. By itself it starts at a parameter's first gradient, and
    the fused kernel fails where that comes later than another's, as with losses that a warm-up leaves out.
    """
    if kind == "adam":
        return torch.optim.Adam(parameters, lr=learning_rate, fused=True)
    optimizer = torch.optim.SGD(parameters, lr=learning_rate, momentum=momentum, fused=True)
    if momentum:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return an optimiser's moments, for each parameter by its number."""
    return {
        str(number): {name: value.cpu().numpy() for name, value in entry.items() if value is not None}
        for number, entry in optimizer.state_dict()["state"].items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Restore what :func:`optimizer_state` returned."""
    entries = {
        int(number): {name: torch.from_numpy(value).clone() for name, value in entry.items()}
        for number, entry in state.items()
    }
    optimizer.load_state_dict({**optimizer.state_dict(), "state": entries})


class Multipliers:
    """One non-negative multiplier for each member and constraint, which grows while its constraint is violated.

    ``bounds`` has the largest value for each member; ``place`` is that of the members that are trained here, if
    others are trained elsewhere. A constraint that is hard to meet then becomes a penalty of
    that weight, and no multiplier grows without limit.

    Adam is implemented here, because for a dozen numbers calling an optimiser class costs more than the step.
    """

    _DECAY = (0.9, 0.999)
    _EPSILON = 1e-8

    def __init__(
        self,
        bounds: Sequence[float],
        constraints: int,
        optimizer: str,
        learning_rate: float,
        device: str = "cpu",
        place: slice | None = None,
    ) -> None:
        # float64, because thousands of small steps must add up exactly
        self._bounds = torch.tensor(bounds, dtype=torch.float64, device=device)[:, None]
        self._all = self._bounds.clamp(max=1).repeat(1, constraints)
        self._place = slice(None) if place is None else place
        self.values = self._all[self._place]
        """(members, constraints), starting at 1 or at the member's bound, whichever is smaller"""
        self._adam = optimizer == "adam"
        self._rate = learning_rate
        self._mean, self._square = torch.zeros_like(self._all), torch.zeros_like(self._all)
        self._steps = 0

    def state(self) -> dict[str, Any]:
        """Return multipliers, Adam's moments and its number of steps."""
        tensors = (self._all, self._mean, self._square)
        return {"tensors": [tensor.cpu().numpy() for tensor in tensors], "steps": self._steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state()`` returned."""
        for tensor, stored in zip((self._all, self._mean, self._square), state["tensors"], strict=True):
            tensor.copy_(torch.from_numpy(stored))
        self._steps = state["steps"]

    def ascend(self, violation: Tensor) -> None:
        """Ascend on the violation, then project to 0 ≤ λ ≤ bound."""
        violation = violation.detach().to(self.values.dtype)
        if len(violation) < len(self._all):
            own, violation = violation, torch.zeros_like(self._all)
            violation[self._place] = own
        if self._adam:
            first, second = self._DECAY
            self._steps += 1
            self._mean.lerp_(violation, 1 - first)
            self._square.lerp_(violation * violation, 1 - second)
            size = (self._square / (1 - second**self._steps)).sqrt_().add_(self._EPSILON)
            self._all.addcdiv_(self._mean, size, value=self._rate / (1 - first**self._steps))
        else:
            self._all.add_(violation, alpha=self._rate)
        torch.minimum(self._all.clamp_(min=0), self._bounds, out=self._all)


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters whose gradients are clipped together: those of a body and its heads."""

    stacked: Sequence[nn.Parameter]
    """Parameters with the members axis first."""
    own: Sequence[Sequence[nn.Parameter]] = ()
    """For each member, parameters without a members axis (backbones)."""

    def __iter__(self) -> Iterator[nn.Parameter]:
        yield from self.stacked
        for parameters in self.own:
            yield from parameters


class PlacedWeights:
    """The weights of some members at their place among those of all members, which are 0.

    The rounding of fused and vectorised kernels depends on where a number lies in its tensor. So members that
    are trained without the others are stepped at their place, and get the very weights that they get with them.
    """

    def __init__(self, groups: Sequence[ParameterGroup], place: slice, total: int) -> None:
        self._place, self._pairs = place, list[tuple[nn.Parameter, nn.Parameter]]()
        self.groups = [ParameterGroup([self._placed(own, total) for own in group.stacked]) for group in groups]

    def _placed(self, own: nn.Parameter, total: int) -> nn.Parameter:
        whole = nn.Parameter(torch.zeros(total, *own.shape[1:], device=own.device))
        whole.data[self._place] = own.detach()
        own.data = whole.data[self._place]  # one memory: a step changes both
        self._pairs.append((own, whole))
        return whole

    def take_gradients(self) -> None:
        """Put the gradients of the members' own weights at their place; those of the others are 0."""
        for own, whole in self._pairs:
            assert own.grad is not None
            whole.grad = torch.zeros_like(whole)
            whole.grad[self._place] = own.grad
            own.grad = None


class PrimalDual:
    """Simultaneous gradient descent on weights and ascent on multipliers.

    L2 adds the gradient of ``l2 · Σ p²`` over all parameters. The gradient norm is clipped for each member and
    each group separately, so that members and bodies do not influence each other.
    """

    def __init__(
        self,
        groups: Sequence[ParameterGroup],
        optimizer: torch.optim.Optimizer,
        multipliers: Multipliers | None = None,
        *,
        l2: float = 0.0,
        clip: float | None = None,
        placed: PlacedWeights | None = None,
    ) -> None:
        self._groups, self._placed = list(groups), placed
        self.optimizer, self.multipliers = optimizer, multipliers
        self._l2, self._clip = l2, clip

    def step(self, evaluate: Callable[[], Terms]) -> Terms:
        """Zero the gradients, evaluate once, and update weights and multipliers from that evaluation."""
        self.optimizer.zero_grad(set_to_none=True)
        terms = evaluate()
        lagrangian = terms.objective.sum()
        if self.multipliers is not None and terms.proxy_violation is not None:
            weight = self.multipliers.values.to(terms.proxy_violation.dtype)
            lagrangian = lagrangian + (weight * terms.proxy_violation).sum()
        lagrangian.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            if self._placed is not None:
                self._placed.take_gradients()
            for group in self._groups:
                self._add_l2(group)
                self._clip_per_member(group)
        self.optimizer.step()
        if self.multipliers is not None:
            violation = terms.proxy_violation if terms.violation is None else terms.violation
            if violation is not None:
                self.multipliers.ascend(violation)
        return terms

    def _add_l2(self, group: ParameterGroup) -> None:
        if self._l2 > 0:
            for parameter in group:
                if parameter.grad is not None:
                    parameter.grad.add_(parameter, alpha=2 * self._l2)

    def _clip_per_member(self, group: ParameterGroup) -> None:
        stacked = [p.grad for p in group.stacked if p.grad is not None]
        own = [[p.grad for p in parameters if p.grad is not None] for parameters in group.own]
        if self._clip is None or not stacked:
            return
        norms = [torch.linalg.vector_norm(g.flatten(1), dim=1) for g in stacked]
        if any(own):
            norms.append(torch.stack([torch.nn.utils.get_total_norm(gradients) for gradients in own]))
        total = torch.linalg.vector_norm(torch.stack(norms), dim=0)
        factor = (self._clip / (total + 1e-6)).clamp(max=1)
        if bool((factor < 1).any()):
            for gradient in stacked:
                gradient.mul_(factor.view(-1, *[1] * (gradient.ndim - 1)))
            for member, gradients in enumerate(own):
                for gradient in gradients:
                    gradient.mul_(factor[member])
