"""The training loop that every gradient-trained method shares.

A method defines an :class:`~openset.learn.objective.Objective`: its loss on a batch, and its judgement of
validation rows at every evaluation point. The loop does the rest: batches, steps, the best network, history,
stopping, progress, and the checkpoint on disk. A killed fit is resumed from it and ends with the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from openset.learn.architecture import Architecture
from openset.learn.augment import AUGMENTATIONS
from openset.learn.backbone_schedule import BackboneSchedule, apply_schedule
from openset.learn.backbones import maker_of, output_shape, template_of
from openset.learn.batches import Batches, Rows, RowStream, ScaledRows, head_outputs
from openset.learn.bodies import DropoutMasks
from openset.learn.checkpoint import Checkpoint, fingerprint_of
from openset.learn.ledger import Choice, Ledger
from openset.learn.memory import current_memory
from openset.learn.network import Network
from openset.learn.objective import Objective, Validation
from openset.learn.primal_dual import (
    Multipliers,
    PlacedWeights,
    PrimalDual,
    Terms,
    make_optimizer,
    optimizer_state,
    restore_optimizer,
)
from openset.learn.seeds import child_seed, isolated_random_state

PAPER_EPOCHS = 200


@dataclass(frozen=True)
class MemberPlan:
    """One member's seed and its rows of source and target, for training and for validation."""

    seed: np.random.SeedSequence
    source_train: Rows
    source_validation: Rows
    target_train: Rows
    target_validation: Rows
    multiplier_bound: float = math.inf
    """Largest value of its multipliers."""
    dropout: float = 0.0


@dataclass(frozen=True)
class Among:
    """All members of a fit, and the first of those that are trained here: they end as if all were."""

    plans: Sequence[MemberPlan]
    first: int = 0


@dataclass(frozen=True)
class Settings:
    """Settings of training, with the names of the estimator's parameters."""

    hidden: int
    learning_rate: float
    l2: float
    clip: float | None
    batch_size: int
    max_steps: int | None
    evaluate_every: int | None
    device: str
    optimizer: str = "adam"
    momentum: float = 0.9
    tol: float = 1e-3
    dual_optimizer: str = "adam"
    dual_learning_rate: float = 0.02
    augment: str | None = None
    backbone_schedule: BackboneSchedule | None = None


@dataclass(frozen=True)
class Trained:
    """The result of training, in numpy."""

    architecture: Architecture
    weights: dict[str, NDArray[Any]]
    choices: list[Choice]
    history: list[dict[str, float]]
    heads: dict[str, NDArray[Any]]
    stop_reason: str
    n_steps: int

    def only(self, first: int, count: int) -> Trained:
        """Return the result of some members with the whole table of heads; not for backbones."""
        if len(self.choices) == count:
            return self
        members = slice(first, first + count)
        return replace(
            self,
            architecture=replace(self.architecture, members=count),
            weights={name: np.array(array[members]) for name, array in self.weights.items()},
            choices=self.choices[members],
            history=[entry for entry in self.history if first <= entry["member"] < first + count],
        )


@dataclass(frozen=True)
class Progress:
    """The progress of a run, at its start and after each evaluation point."""

    step: int
    max_steps: int
    metrics: Mapping[str, float]
    """Metrics of the evaluation point; empty at the start."""


def paper_epoch(n_source: int, n_target: int | None, batch_size: int) -> int:
    """Return the number of steps in one of the paper's epochs: batches of the smaller domain."""
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
    backbone: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    identity: str = "",
) -> Trained:
    """Train all members together and return each member's best network.

    With a ``checkpoint`` folder the state is stored there at evaluation points. A run with the same data,
    settings and ``identity`` (the method and its parameters) restores it. The last state stays there until
    :func:`~openset.learn.checkpoint.remove_checkpoint` is called after the fit. Within a
    :class:`~openset.learn.memory.TrainingMemory` the same run is not repeated.
    """
    with isolated_random_state(plans[0].seed):
        run = _Run(objective, plans, source, y, target, settings, backbone)
        if checkpoint is not None:
            return run.run(on_progress, run.open_checkpoint(checkpoint, identity))
        memory = current_memory()
        if memory is not None:
            return memory.trained_once(run.fingerprint(identity), lambda: run.run(on_progress, None))
        return run.run(on_progress, None)


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
        backbone: Any,
        among: Among | None = None,
    ) -> None:
        self.objective, self.plans, self.settings = objective, plans, settings
        self.among = Among(plans) if among is None else among
        self.data, self.y = (source, y, target), y
        self.source, self.target = source.scaled_once(), None if target is None else target.scaled_once()
        n_source = max(len(plan.source_train) for plan in self.among.plans)
        n_target = max(len(plan.target_train) for plan in self.among.plans)
        epoch = paper_epoch(n_source, n_target, settings.batch_size)
        self.max_steps = settings.max_steps or PAPER_EPOCHS * epoch
        self.evaluate_every = min(settings.evaluate_every or epoch, self.max_steps)
        self.warm_up = math.ceil(objective.warm_up * self.max_steps)

        seeds = [[child_seed(plan.seed, i) for i in range(5)] for plan in plans]
        self._build_network(backbone, [s[0] for s in seeds])
        self.ledger = Ledger(len(plans), objective.n_constraints, settings.tol)
        differ = len({plan.dropout for plan in self.among.plans}) > 1
        self.masks = DropoutMasks([s[1] for s in seeds], [plan.dropout for plan in plans] if differ else None)
        self.batches = Batches(
            self.source,
            y,
            self.target,
            [RowStream(p.source_train, s[2]) for p, s in zip(plans, seeds, strict=True)],
            [RowStream(p.target_train, s[3]) for p, s in zip(plans, seeds, strict=True)] if target else [],
            min(settings.batch_size, max(n_source, n_target)),
            settings.device,
            [] if settings.augment is None else [AUGMENTATIONS[settings.augment](s[4]) for s in seeds],
        )
        self._build_stepper()

    def _build_network(self, backbone: Any, seeds: Sequence[np.random.SeedSequence]) -> None:
        """Build the network to train, and a second one for each member's best weights."""
        objective, source = self.objective, self.data[0]
        template = template_of(backbone)
        self.architecture = Architecture(
            bodies=objective.bodies,
            n_features=source.array.shape[-1],
            hidden=self.settings.hidden if template is None else output_shape(template, source.row_shape)[-1],
            dropout=max(plan.dropout for plan in self.among.plans),
            members=len(self.plans),
            kinds=objective.head_kinds,
            body_kinds=objective.body_kinds,
        )
        network = Network(self.architecture, template).initialise(seeds, maker_of(backbone))
        self.network = network.to(self.settings.device)
        self.best = Network(self.architecture, template).to(self.settings.device)

    def _build_stepper(self) -> None:
        settings, n_constraints = self.settings, self.objective.n_constraints
        first, total = self.among.first, len(self.among.plans)
        place = slice(first, first + len(self.plans))
        bounds = [plan.multiplier_bound for plan in self.among.plans]
        self.multipliers = (
            Multipliers(
                bounds,
                n_constraints,
                settings.dual_optimizer,
                settings.dual_learning_rate,
                settings.device,
                place,
            )
            if n_constraints
            else None
        )
        groups = self.network.parameter_groups()
        placed = None if total == len(self.plans) else PlacedWeights(groups, place, total)
        weights: list[Any] = list(self.network.parameters())
        if placed is not None:
            groups = placed.groups
            weights = [parameter for group in groups for parameter in group]
        self.schedule = settings.backbone_schedule
        if self.schedule is not None:  # of a backbone, whose groups are never trained apart
            self.schedule.check_length(self.max_steps)
            weights = apply_schedule(self.network, self.schedule, settings.learning_rate)
        self.rates = [group["lr"] for group in weights] if self.schedule is not None else []
        self.stepper = PrimalDual(
            groups,
            make_optimizer(settings.optimizer, weights, settings.learning_rate, settings.momentum),
            self.multipliers,
            l2=settings.l2,
            clip=settings.clip,
            placed=placed,
        )

    def run(self, on_progress: Callable[[Progress], None] | None, checkpoint: Checkpoint | None) -> Trained:
        """Train to the end, starting from the stored state if there is one."""
        ledger = self.ledger
        if checkpoint is not None:
            stored = checkpoint.load()
            if stored is not None:
                self.restore(stored)
        if on_progress is not None:
            on_progress(Progress(ledger.step, self.max_steps, {}))
        while not self.is_over():
            self.advance()
            if checkpoint is not None:
                checkpoint.save(self.state, last=self.is_over())
            if on_progress is not None:
                on_progress(Progress(ledger.step, self.max_steps, ledger.history[-1]))
        return self.trained()

    def advance(self) -> None:
        """Train to the next evaluation point, and judge every member there."""
        ledger = self.ledger
        while True:
            ledger.step += 1
            ledger.interval.add(self.step())
            if not ledger.step % self.evaluate_every or ledger.step in (self.warm_up, self.max_steps):
                break
        self.evaluate()

    def trained(self) -> Trained:
        """Return what was trained so far: each member's best network."""
        ledger = self.ledger
        return Trained(
            architecture=self.architecture,
            weights=self.best.arrays(),
            choices=ledger.choices,
            history=ledger.history,
            heads=ledger.heads(),
            stop_reason="converged" if all(ledger.stopped) else "max_steps",
            n_steps=ledger.step,
        )

    def is_over(self) -> bool:
        """Return whether all steps are done, or every member has stopped."""
        return self.ledger.step >= self.max_steps or all(self.ledger.stopped)

    def step(self) -> Terms:
        """Take one primal–dual step on a new batch."""
        batch = self.batches.next()
        self.network.workspace.reset()
        if self.schedule is not None:
            factor = self.schedule.factor(self.ledger.step)
            for group, rate in zip(self.stepper.optimizer.param_groups, self.rates, strict=True):
                group["lr"] = rate * factor
        return self.stepper.step(lambda: self.objective.terms(self.network, batch, self.masks))

    def evaluate(self) -> None:
        """Judge every member that is still training, and keep its network if it is the best so far."""
        ledger, objective = self.ledger, self.objective
        loss, violations = ledger.interval.take()
        multipliers = self._multiplier_values()
        training = [member for member in range(len(self.plans)) if not ledger.stopped[member]]
        validation = [self._validation(member, multipliers[member]) for member in training]
        for of_member in validation:
            if objective.adapts and self.target is not None and self._adapt(of_member, self.target):
                ledger.restart_watch(of_member.member)
        for member, judgement in zip(training, objective.judge(validation), strict=True):
            if ledger.record(member, judgement, loss[member], violations[member], multipliers[member]):
                _copy_member(self.network, self.best, member)
        if objective.patience is not None:
            ledger.stop_together(objective.patience * self.evaluate_every)

    def _adapt(self, validation: Validation, target: ScaledRows) -> bool:
        rows = self.plans[validation.member].target_train
        alone = self.network.member(validation.member)
        return self.objective.adapt(
            validation, rows, lambda **kw: _first(head_outputs(alone, target, rows, **kw))
        )

    def _validation(self, member: int, multipliers: NDArray[np.float64]) -> Validation:
        plan, alone = self.plans[member], self.network.member(member)
        source = _first(head_outputs(alone, self.source, plan.source_validation))
        target = {} if self.target is None else _first(head_outputs(alone, self.target, plan.target_validation))
        y = self.y[plan.source_validation]
        return Validation(source, y, target, multipliers, member, self.ledger.step, self.max_steps)

    def _multiplier_values(self) -> NDArray[np.float64]:
        if self.multipliers is None:
            return np.zeros((len(self.plans), 0))
        return self.multipliers.values.cpu().numpy().copy()

    # ------------------------------------------------------------------ the checkpoint

    def open_checkpoint(self, folder: str | PathLike[str], identity: str) -> Checkpoint:
        """Return a checkpoint for this run; call it before the first step."""
        self.objective.check_can_be_stored()
        return Checkpoint(folder, self.fingerprint(identity))

    def fingerprint(self, identity: str) -> dict[str, str]:
        """Return hashes of everything that decides the result; call it before the first step."""
        settings = f"{identity} {self.settings} {self.architecture}"
        return fingerprint_of(settings, *self.data, self.plans, self.network.arrays())

    def state(self) -> dict[str, Any]:
        """Return everything that the rest of the run depends on, as plain data."""
        return {
            "ledger": self.ledger.state(),
            "network": self.network.arrays(),
            "best": self.best.arrays(),
            "optimizer": optimizer_state(self.stepper.optimizer),
            "multipliers": None if self.multipliers is None else self.multipliers.state(),
            "objective": self.objective.state(),
            "masks": self.masks.state(),
            "batches": self.batches.state(),
            "torch": torch.get_rng_state().numpy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state()`` returned."""
        self.ledger.restore(state["ledger"])
        for network, arrays in ((self.network, state["network"]), (self.best, state["best"])):
            network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        restore_optimizer(self.stepper.optimizer, state["optimizer"])
        if self.multipliers is not None:
            self.multipliers.restore(state["multipliers"])
        self.objective.restore(state["objective"])
        self.masks.restore(state["masks"])
        self.batches.restore(state["batches"])
        torch.set_rng_state(torch.from_numpy(state["torch"]))


def _first(outputs: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    return {head: values[0] for head, values in outputs.items()}


def _copy_member(source: Network, destination: Network, member: int) -> None:
    into = destination.member_state(member)
    for name, tensor in source.member_state(member).items():
        into[name].copy_(tensor)
