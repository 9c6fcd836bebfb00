"""A method's part of the training loop: a loss on a batch, and a judgement of validation rows.

The loop is :func:`openset.learn.train.train`. It passes the head outputs of every member on its validation rows
(:class:`Validation`) to the objective, and keeps the network with the highest :class:`Judgement`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from openset.learn.batches import Batch, Rows
    from openset.learn.bodies import DropoutMasks
    from openset.learn.network import Network
    from openset.learn.primal_dual import Terms

KEEP_LATEST = math.inf
"""The key of a method that does not choose: every evaluation point replaces the last one."""

ScoreTarget = Callable[..., Mapping[str, NDArray[np.float32]]]
"""Returns the head outputs of a member's target training rows, and φ(x) of each body with
``representation=True``."""


@dataclass(frozen=True)
class Validation:
    """Head outputs of one member on its validation rows, at one evaluation point."""

    source: Mapping[str, NDArray[np.float32]]
    y: NDArray[np.intp]
    target: Mapping[str, NDArray[np.float32]]
    multipliers: NDArray[np.float64]
    member: int
    step: int
    max_steps: int


@dataclass(frozen=True)
class Judgement:
    """The quality of a network at one evaluation point; the loop keeps the network with the highest key."""

    key: float
    metrics: Mapping[str, float]
    head: int = 0
    heads: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Columns of the table of heads, with one value for each head."""


class Objective(ABC):
    """A method's loss and judgement. A subclass needs ``bodies``, ``terms`` and ``judge_member``."""

    bodies: Mapping[str, Mapping[str, int]]
    """The heads of each body and their widths."""
    head_kinds: Mapping[str, str] = {}
    """The kind of heads of a body, a key of ``openset.learn.heads.HEAD_KINDS``; linear if absent."""
    body_kinds: Mapping[str, str] = {}
    """The kind of a body on features, a key of ``openset.learn.bodies.BODY_KINDS``; "relu" if absent."""
    n_constraints: int = 0
    """Number of constraints of each member."""
    warm_up: float = 0.0
    """Share of all steps after which there is an additional evaluation point; 0 for none."""
    adapts: ClassVar[bool] = False
    """Whether the loss depends on earlier outputs of the network (priors, kept rows, pseudo-labels)."""
    patience: int | None = None
    """Members stop together after this many evaluation points without a better choice; None: each separately."""

    @abstractmethod
    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return the differentiable loss and the violations of the constraints on one batch."""

    @abstractmethod
    def judge_member(self, validation: Validation) -> Judgement:
        """Return a judgement of one member, in numpy."""

    def judge(self, validation: Sequence[Validation]) -> list[Judgement]:
        """Return a judgement of every member; members with equal keys keep the same step."""
        return [self.judge_member(of_member) for of_member in validation]

    def by_group(self) -> list[tuple[int, Objective]]:
        """Return groups of members that could be trained apart: how many, and their objective; one is all."""
        return []

    def adapt(self, validation: Validation, target_rows: Rows, score_target: ScoreTarget) -> bool:
        """Update the objective from one member's outputs before it is judged; called only if ``adapts`` is True.

        ``target_rows`` are the rows that the member trains on; ``score_target()`` returns their head outputs.
        Return True if the loss has a new meaning from now on, so that earlier losses do not count as settled.
        """
        return False

    def state(self) -> Mapping[str, Any]:
        """Return all that ``adapt`` has changed, as numbers, arrays, lists and dictionaries, for a checkpoint."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027  nothing to restore without state()
        """Restore what ``state()`` returned."""

    def check_can_be_stored(self) -> None:
        """Raise unless a checkpoint can store what ``adapt`` changes."""
        if self.adapts and type(self).state is Objective.state:
            raise ValueError(
                f"{type(self).__name__} adapts in training but has no state() for a checkpoint, so a fit could "
                "not be resumed exactly: fit without checkpoint."
            )
