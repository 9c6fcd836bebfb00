"""The training loop that every gradient-trained method shares.

A method brings an :class:`Objective`: its loss on a batch, and a judgement of held-out outputs at every
evaluation point. The loop owns batches, the step, the best network, history, stopping, progress and the
checkpoint on disk, from which a killed run goes on and ends with the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from openset.learn.architecture import Architecture
from openset.learn.augment import AUGMENTATIONS
from openset.learn.backbones import maker_of, output_shape, template_of
from openset.learn.batches import Batch, Batches, Rows, RowStream, ScaledRows, head_outputs
from openset.learn.checkpoint import Checkpoint, fingerprint_of
from openset.learn.judgement import KEEP_LATEST, Choice, HeldOut, Judgement
from openset.learn.ledger import Ledger
from openset.learn.memory import current_memory
from openset.learn.network import DropoutMasks, Network
from openset.learn.primal_dual import (
    Multipliers,
    PrimalDual,
    Terms,
    make_optimizer,
    optimizer_state,
    restore_optimizer,
)
from openset.learn.seeds import child_seed, isolated_random_state

__all__ = [
    "KEEP_LATEST",
    "AdaptiveObjective",
    "Choice",
    "HeldOut",
    "Judgement",
    "MemberPlan",
    "Objective",
    "PooledObjective",
    "Progress",
    "ResumableObjective",
    "ScoreTarget",
    "Settings",
    "Trained",
    "child_seed",
    "paper_epoch",
    "train",
]

PAPER_EPOCHS = 200

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


@runtime_checkable
class PooledObjective(Objective, Protocol):
    """An objective that judges all members together, on the held-out rows of them all."""

    @property
    def patience(self) -> int:
        """Evaluation points without a better judgement after which training ends."""
        ...

    def judge_together(self, held_out: Sequence[HeldOut]) -> list[Judgement]:
        """A judgement of every member; members with one key are kept from one and the same step."""
        ...


@runtime_checkable
class ResumableObjective(Protocol):
    """An objective that can store what it adapted, which an adaptive one must to be trained with a checkpoint."""

    def state(self) -> Mapping[str, Any]:
        """All that ``adapt`` has changed: numbers, arrays, lists and dictionaries of them."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        ...


@dataclass(frozen=True)
class MemberPlan:
    """One member's seed and its rows of source and target, for training and held out."""

    seed: np.random.SeedSequence
    source_train: Rows
    source_held: Rows
    target_train: Rows
    target_held: Rows
    multiplier_bound: float = math.inf
    """What its multipliers may not exceed."""
    dropout: float = 0.0


@dataclass(frozen=True)
class Settings:
    """How to train; the names are those of the estimator's parameters."""

    hidden: int
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
    augment: str | None = None


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

    def only(self, first: int, count: int) -> Trained:
        """The outcome for some members; the table of heads stays whole. Not with a backbone."""
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
    """What a progress display may want to know: where a run starts, and then after each evaluation point."""

    step: int
    max_steps: int
    metrics: Mapping[str, float]
    """Of the evaluation point; empty at the start."""


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
    backbone: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    identity: str = "",
) -> Trained:
    """Train all members together and return each one's best network.

    With a ``checkpoint`` folder the state is stored there at evaluation points, and a run of the same data,
    settings and ``identity`` (what else decides the outcome: the method and its parameters) goes on from it. The
    last state stays there, for :func:`~openset.learn.checkpoint.remove_checkpoint` once the fit has ended. Within
    a :class:`~openset.learn.memory.TrainingMemory` such a run is not repeated.
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
    ) -> None:
        self.objective, self.plans, self.settings = objective, plans, settings
        self.data, self.y = (source, y, target), y
        self.source, self.target = source.scaled_once(), None if target is None else target.scaled_once()
        template = template_of(backbone)
        n_source = max(len(plan.source_train) for plan in plans)
        n_target = max(len(plan.target_train) for plan in plans)
        batch_size = min(settings.batch_size, max(n_source, n_target))
        epoch = paper_epoch(n_source, n_target, settings.batch_size)
        self.max_steps = settings.max_steps or PAPER_EPOCHS * epoch
        self.evaluate_every = min(settings.evaluate_every or epoch, self.max_steps)
        warm_up = objective.warm_up if isinstance(objective, AdaptiveObjective) else 0.0
        self.warm_up = math.ceil(warm_up * self.max_steps)

        seeds = [[child_seed(plan.seed, i) for i in range(5)] for plan in plans]
        hidden = settings.hidden if template is None else output_shape(template, source.row_shape)[-1]
        rates = [plan.dropout for plan in plans]
        self.architecture = Architecture(
            bodies=objective.bodies,
            n_features=source.array.shape[-1],
            hidden=hidden,
            dropout=max(rates),
            members=len(plans),
            kinds=getattr(objective, "kinds", {}),
            body_kinds=getattr(objective, "body_kinds", {}),
        )
        network = Network(self.architecture, template).initialise([s[0] for s in seeds], maker_of(backbone))
        self.network = network.to(settings.device)
        self.best = Network(self.architecture, template).to(settings.device)
        self.ledger = Ledger(len(plans), objective.n_constraints, settings.tol)
        self.masks = DropoutMasks([s[1] for s in seeds], rates)
        self.batches = Batches(
            self.source,
            y,
            self.target,
            [RowStream(p.source_train, s[2]) for p, s in zip(plans, seeds, strict=True)],
            [RowStream(p.target_train, s[3]) for p, s in zip(plans, seeds, strict=True)] if target else [],
            batch_size,
            settings.device,
            [] if settings.augment is None else [AUGMENTATIONS[settings.augment](s[4]) for s in seeds],
        )
        self.multipliers = (
            Multipliers(
                [plan.multiplier_bound for plan in plans],
                objective.n_constraints,
                settings.dual_optimizer,
                settings.dual_learning_rate,
                settings.device,
            )
            if objective.n_constraints
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

    def run(self, on_progress: Callable[[Progress], None] | None, checkpoint: Checkpoint | None) -> Trained:
        ledger = self.ledger
        if checkpoint is not None:
            stored = checkpoint.load()
            if stored is not None:
                self.restore(stored)
        if on_progress is not None:
            on_progress(Progress(ledger.step, self.max_steps, {}))
        while not self.is_over():
            ledger.step += 1
            ledger.interval.add(self.step())
            if ledger.step % self.evaluate_every and ledger.step not in (self.warm_up, self.max_steps):
                continue
            self.evaluate()
            if checkpoint is not None:
                checkpoint.save(self.state, last=self.is_over())
            if on_progress is not None:
                on_progress(Progress(ledger.step, self.max_steps, ledger.history[-1]))
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
        return self.ledger.step >= self.max_steps or all(self.ledger.stopped)

    def evaluate(self) -> None:
        """Judge every member that still trains, and keep its network if it is its best."""
        ledger = self.ledger
        loss, defects = ledger.interval.take()
        multipliers = self._multiplier_values()
        training = [member for member in range(len(self.plans)) if not ledger.stopped[member]]
        held_out = [self._held_out(member, ledger.step, multipliers[member]) for member in training]
        for member, outputs in zip(training, held_out, strict=True):
            if self._adapt(outputs):
                ledger.start_watch_anew(member)
        for member, judgement in zip(training, self._judge(held_out), strict=True):
            if ledger.record(member, judgement, loss[member], defects[member], multipliers[member]):
                _copy_member(self.network, self.best, member)
        if isinstance(self.objective, PooledObjective):
            ledger.stop_together(self.objective.patience * self.evaluate_every)

    def _judge(self, held_out: Sequence[HeldOut]) -> list[Judgement]:
        if isinstance(self.objective, PooledObjective):
            return self.objective.judge_together(held_out)
        return [self.objective.judge(outputs) for outputs in held_out]

    # ------------------------------------------------------------------ the checkpoint

    def open_checkpoint(self, folder: str | PathLike[str], identity: str) -> Checkpoint:
        """A checkpoint bound to this run; to be opened before the first step."""
        objective = self.objective
        if isinstance(objective, AdaptiveObjective) and not isinstance(objective, ResumableObjective):
            raise ValueError(
                f"{type(objective).__name__} adapts in training but cannot store what it adapted, so that it "
                "could not be resumed exactly: fit without checkpoint."
            )
        return Checkpoint(folder, self.fingerprint(identity))

    def fingerprint(self, identity: str) -> dict[str, str]:
        """All that the outcome depends on; to be asked for before the first step."""
        settings = f"{identity} {self.settings} {self.architecture}"
        return fingerprint_of(settings, *self.data, self.plans, self.network.arrays())

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on, as plain data."""
        return {
            "ledger": self.ledger.state(),
            "network": self.network.arrays(),
            "best": self.best.arrays(),
            "optimizer": optimizer_state(self.stepper.optimizer),
            "multipliers": None if self.multipliers is None else self.multipliers.state(),
            "objective": self.objective.state() if isinstance(self.objective, ResumableObjective) else None,
            "masks": self.masks.state(),
            "batches": self.batches.state(),
            "torch": torch.get_rng_state().numpy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.ledger.restore(state["ledger"])
        for network, arrays in ((self.network, state["network"]), (self.best, state["best"])):
            network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        restore_optimizer(self.stepper.optimizer, state["optimizer"])
        if self.multipliers is not None:
            self.multipliers.restore(state["multipliers"])
        if isinstance(self.objective, ResumableObjective):
            self.objective.restore(state["objective"])
        self.masks.restore(state["masks"])
        self.batches.restore(state["batches"])
        torch.set_rng_state(torch.from_numpy(state["torch"]))

    # ------------------------------------------------------------------ one step, and what is held out

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


def _first(outputs: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    return {head: values[0] for head, values in outputs.items()}


def _copy_member(source: Network, destination: Network, member: int) -> None:
    into = destination.member_state(member)
    for name, tensor in source.member_state(member).items():
        into[name].copy_(tensor)
