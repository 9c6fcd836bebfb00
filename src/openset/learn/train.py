"""The training loop that every gradient-trained method shares.

A method brings an :class:`Objective`: its loss on a batch, and a judgement of held-out outputs at every
evaluation point. The loop owns batches, the step, checkpoints, history, stopping and progress.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from openset.learn.architecture import Architecture
from openset.learn.convergence import Convergence
from openset.learn.network import DropoutMasks, Network, output_shape
from openset.learn.primal_dual import Multipliers, PrimalDual, Terms, make_optimizer
from openset.learn.rows import Batch, Batches, Rows, RowStream, ScaledRows, head_outputs

if TYPE_CHECKING:
    from collections.abc import Iterator

PAPER_EPOCHS = 200
KEEP_LATEST = math.inf
"""The key of a method that makes no choice: every evaluation point replaces the one before."""


@dataclass(frozen=True)
class HeldOut:
    """Head outputs of one member on rows that it does not train on."""

    source: Mapping[str, NDArray[np.float32]]
    y: NDArray[np.intp]
    target: Mapping[str, NDArray[np.float32]]
    multipliers: NDArray[np.float64]
    member: int
    step: int
    max_steps: int


@dataclass(frozen=True)
class Judgement:
    """How good a network is at one evaluation point; the loop keeps the one with the highest key."""

    key: float
    metrics: Mapping[str, float]
    head: int = 0
    heads: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Columns of the head table, one entry a head."""


ScoreTarget = Callable[..., Mapping[str, NDArray[np.float32]]]


class Objective(Protocol):
    """What a method adds to the loop.

    An objective whose heads are not linear also has ``kinds``: for such a body the name of their kind; one whose
    bodies on features are not the usual ones has ``body_kinds``.
    """

    @property
    def bodies(self) -> Mapping[str, Mapping[str, int]]:
        """Bodies with their heads and widths."""
        ...

    @property
    def n_constraints(self) -> int:
        """How many constraints each member has."""
        ...

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """The differentiable loss and defects on one batch."""
        ...

    def judge(self, held_out: HeldOut) -> Judgement:
        """A judgement of held-out outputs, in numpy."""
        ...


@runtime_checkable
class AdaptiveObjective(Objective, Protocol):
    """An objective whose loss depends on what the network says so far: priors, kept rows, pseudo-labels."""

    @property
    def warm_up(self) -> float:
        """The share of all steps after which there is an evaluation point beside the regular ones; 0 for none."""
        ...

    def adapt(self, held_out: HeldOut, target_rows: Rows, score_target: ScoreTarget) -> bool:
        """Called for every member at every evaluation point, before it is judged.

        ``target_rows`` are those that the member trains on; ``score_target()`` gives their head outputs, and with
        ``representation=True`` each body's φ(x) under its name. True says that the loss means something else
        from now on, so that earlier losses do not count as settled.
        """
        ...


@dataclass(frozen=True)
class MemberPlan:
    """One member's seed and its rows of source and target, for training and held out."""

    seed: np.random.SeedSequence
    source_train: Rows
    source_held: Rows
    target_train: Rows
    target_held: Rows


@dataclass(frozen=True)
class Settings:
    """How to train; the names are those of the estimator's parameters."""

    hidden: int
    dropout: float
    optimizer: str
    learning_rate: float
    momentum: float
    l2: float
    clip: float | None
    batch_size: int
    max_steps: int | None
    evaluate_every: int | None
    tol: float
    device: str
    dual_optimizer: str = "adam"
    dual_learning_rate: float = 0.02


@dataclass(frozen=True)
class Choice:
    """The evaluation point and head that a member kept."""

    step: int
    head: int
    key: float


@dataclass(frozen=True)
class Trained:
    """Everything that training leaves behind, in numpy."""

    architecture: Architecture
    weights: dict[str, NDArray[Any]]
    choices: list[Choice]
    history: list[dict[str, float]]
    heads: dict[str, NDArray[Any]]
    stop_reason: str
    n_steps: int


@dataclass(frozen=True)
class Progress:
    """What a progress display may want to know after each evaluation point."""

    step: int
    max_steps: int
    metrics: Mapping[str, float]


def paper_epoch(n_source: int, n_target: int | None, batch_size: int) -> int:
    """Steps in one of the paper's epochs: batches of the smaller domain."""
    rows = n_source if not n_target else min(n_source, n_target)
    return max(1, math.ceil(rows / batch_size))


def train(
    objective: Objective,
    plans: Sequence[MemberPlan],
    source: ScaledRows,
    y: NDArray[np.intp],
    target: ScaledRows | None,
    settings: Settings,
    *,
    backbone: torch.nn.Module | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Trained:
    """Train all members together and return each one's best network."""
    with isolated_random_state(plans[0].seed):
        return _Run(objective, plans, source, y, target, settings, backbone).run(on_progress)


class _Run:
    """The state of one training run."""

    def __init__(
        self,
        objective: Objective,
        plans: Sequence[MemberPlan],
        source: ScaledRows,
        y: NDArray[np.intp],
        target: ScaledRows | None,
        settings: Settings,
        backbone: torch.nn.Module | None,
    ) -> None:
        self.objective, self.plans, self.settings = objective, plans, settings
        self.source, self.y, self.target, self.backbone = source, y, target, backbone
        n_source = max(len(plan.source_train) for plan in plans)
        n_target = max(len(plan.target_train) for plan in plans)
        batch_size = min(settings.batch_size, max(n_source, n_target))
        epoch = paper_epoch(n_source, n_target, settings.batch_size)
        self.max_steps = settings.max_steps or PAPER_EPOCHS * epoch
        self.evaluate_every = min(settings.evaluate_every or epoch, self.max_steps)
        warm_up = objective.warm_up if isinstance(objective, AdaptiveObjective) else 0.0
        self.warm_up = math.ceil(warm_up * self.max_steps)

        seeds = [[child_seed(plan.seed, i) for i in range(4)] for plan in plans]
        hidden = settings.hidden if backbone is None else output_shape(backbone, source.array.shape[1:])[-1]
        self.architecture = Architecture(
            bodies=objective.bodies,
            n_features=source.array.shape[-1],
            hidden=hidden,
            dropout=settings.dropout,
            members=len(plans),
            kinds=getattr(objective, "kinds", {}),
            body_kinds=getattr(objective, "body_kinds", {}),
        )
        network = Network(self.architecture, backbone).initialise([s[0] for s in seeds])
        self.network = network.to(settings.device)
        self.masks = DropoutMasks([s[1] for s in seeds])
        self.batches = Batches(
            source,
            y,
            target,
            [RowStream(p.source_train, s[2]) for p, s in zip(plans, seeds, strict=True)],
            [RowStream(p.target_train, s[3]) for p, s in zip(plans, seeds, strict=True)] if target else [],
            batch_size,
            settings.device,
        )
        members, constraints = len(plans), objective.n_constraints
        self.multipliers = (
            Multipliers(
                members, constraints, settings.dual_optimizer, settings.dual_learning_rate, settings.device
            )
            if constraints
            else None
        )
        self.stepper = PrimalDual(
            self.network.parameter_groups(),
            make_optimizer(
                settings.optimizer,
                list(self.network.parameters()),
                settings.learning_rate,
                settings.momentum,
            ),
            self.multipliers,
            l2=settings.l2,
            clip=settings.clip,
        )

    def run(self, on_progress: Callable[[Progress], None] | None) -> Trained:
        members = len(self.plans)
        best = Network(self.architecture, self.backbone).to(self.settings.device)
        choices = [Choice(0, 0, -math.inf)] * members
        stopped: list[str | None] = [None] * members
        watches = [Convergence(self.settings.tol) for _ in range(members)]
        history: list[dict[str, float]] = []
        tables: list[dict[str, NDArray[Any]]] = []
        interval = _IntervalMeans(members, self.objective.n_constraints)
        step = 0
        while step < self.max_steps and not all(stopped):
            step += 1
            interval.add(self.step())
            if step % self.evaluate_every and step not in (self.warm_up, self.max_steps):
                continue
            loss, defects = interval.take()
            multipliers = self._multiplier_values()
            for member in range(members):
                if stopped[member]:
                    continue
                held_out = self._held_out(member, step, multipliers[member])
                if self._adapt(held_out):
                    watches[member] = Convergence(self.settings.tol)
                judgement = self.objective.judge(held_out)
                first = choices[member].step == 0
                if first or judgement.key > choices[member].key or judgement.key == KEEP_LATEST:
                    choices[member] = Choice(step, judgement.head, judgement.key)
                    _copy_member(self.network, best, member)
                history.append({"step": step, "member": member, "loss": float(loss[member]), **judgement.metrics})
                if judgement.heads:
                    tables.append(_head_rows(step, member, judgement.heads))
                if watches[member].update(loss[member], defects[member], multipliers[member]):
                    stopped[member] = "converged"
            if on_progress is not None:
                on_progress(Progress(step, self.max_steps, history[-1]))
        return Trained(
            architecture=self.architecture,
            weights=best.arrays(),
            choices=choices,
            history=history,
            heads=_concatenate(tables),
            stop_reason="converged" if all(stopped) else "max_steps",
            n_steps=step,
        )

    def step(self) -> Terms:
        """One batch for every member, and one primal–dual step on it."""
        batch = self.batches.next()
        self.network.workspace.reset()
        return self.stepper.step(lambda: self.objective.terms(self.network, batch, self.masks))

    def _adapt(self, held_out: HeldOut) -> bool:
        if not isinstance(self.objective, AdaptiveObjective) or self.target is None:
            return False
        target, rows = self.target, self.plans[held_out.member].target_train
        alone = self.network.member(held_out.member)
        return self.objective.adapt(held_out, rows, lambda **kw: _first(head_outputs(alone, target, rows, **kw)))

    def _held_out(self, member: int, step: int, multipliers: NDArray[np.float64]) -> HeldOut:
        plan = self.plans[member]
        alone = self.network.member(member)
        source = _first(head_outputs(alone, self.source, plan.source_held))
        target = _first(head_outputs(alone, self.target, plan.target_held)) if self.target is not None else {}
        return HeldOut(source, self.y[plan.source_held], target, multipliers, member, step, self.max_steps)

    def _multiplier_values(self) -> NDArray[np.float64]:
        if self.multipliers is None:
            return np.zeros((len(self.plans), 0))
        return self.multipliers.values.cpu().numpy().copy()


class _IntervalMeans:
    """Means of loss and defects since the last evaluation point."""

    def __init__(self, members: int, constraints: int) -> None:
        self._loss = torch.zeros(members, dtype=torch.float64)
        self._defect = torch.zeros(members, constraints, dtype=torch.float64)
        self._steps = 0

    def add(self, terms: Terms) -> None:
        self._steps += 1
        self._loss += terms.objective.detach().cpu()
        defect = terms.proxy_defect if terms.defect is None else terms.defect
        if defect is not None:
            self._defect += defect.detach().cpu()

    def take(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        means = (self._loss / self._steps).numpy(), (self._defect / self._steps).numpy()
        self._loss.zero_()
        self._defect.zero_()
        self._steps = 0
        return means


@contextmanager
def isolated_random_state(seed: np.random.SeedSequence) -> Iterator[None]:
    """Seed torch's global generator for backbones that use it, and leave it as it was afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(int(seed.generate_state(1)[0]))
        yield


def child_seed(seed: np.random.SeedSequence, index: int) -> np.random.SeedSequence:
    """The index-th child of a seed, the same however often it is asked for."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index))


def _first(outputs: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    return {head: values[0] for head, values in outputs.items()}


def _copy_member(source: Network, destination: Network, member: int) -> None:
    into = destination.member_state(member)
    for name, tensor in source.member_state(member).items():
        into[name].copy_(tensor)


def _head_rows(step: int, member: int, heads: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    width = len(next(iter(heads.values())))
    return {
        "member": np.full(width, member),
        "step": np.full(width, step),
        "head": np.arange(width),
        **heads,
    }


def _concatenate(tables: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]} if tables else {}
