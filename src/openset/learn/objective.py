"""What a method adds to the training loop: a loss on a batch, and a judgement of validation rows.

The loop is :func:`openset.learn.train.train`. It shows an objective the head outputs of every member on its
validation rows (:class:`Validation`), and keeps the network with the highest :class:`Judgement`.
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
"""The key of a method that makes no choice: every evaluation point replaces the one before."""

ScoreTarget = Callable[..., Mapping[str, NDArray[np.float32]]]
"""Returns the head outputs of a member's target training rows; with ``representation=True`` each body's φ(x)
too."""


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
    """How good a network is at one evaluation point; the loop keeps the one with the highest key."""

    key: float
    metrics: Mapping[str, float]
    head: int = 0
    heads: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Columns of the table of heads, one entry for each head."""


class Objective(ABC):
    """One method's loss and judgement. A subclass needs ``bodies``, ``terms`` and ``judge_member``."""

    bodies: Mapping[str, Mapping[str, int]]
    """Bodies, with the heads of each and their widths."""
    head_kinds: Mapping[str, str] = {}
    """For a body whose heads are not linear, the name of their kind in ``openset.learn.heads.HEAD_KINDS``."""
    body_kinds: Mapping[str, str] = {}
    """For a body on features that is not the usual one, the name of its kind in
    ``openset.learn.bodies.BODY_KINDS``."""
    n_constraints: int = 0
    """How many constraints each member has."""
    warm_up: float = 0.0
    """The share of all steps after which there is one more evaluation point; 0 for none."""
    adapts: ClassVar[bool] = False
    """Whether the loss depends on what the network says so far (priors, kept rows, pseudo-labels)."""
    patience: int | None = None
    """Members stop together after so many evaluation points without a better choice; None: each by itself."""

    @abstractmethod
    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """The differentiable loss and the violations of the constraints on one batch."""

    @abstractmethod
    def judge_member(self, validation: Validation) -> Judgement:
        """A judgement of one member, in numpy."""

    def judge(self, validation: Sequence[Validation]) -> list[Judgement]:
        """A judgement of every member; members with one key keep one and the same step."""
        return [self.judge_member(of_member) for of_member in validation]

    def adapt(self, validation: Validation, target_rows: Rows, score_target: ScoreTarget) -> bool:
        """Learn from one member before it is judged; only called where ``adapts`` is True.

        ``target_rows`` are the rows that the member trains on, ``score_target()`` returns their head outputs.
        True means that the loss has a new meaning from now on, so that earlier losses do not count as settled.
        """
        return False

    def state(self) -> Mapping[str, Any]:
        """All that ``adapt`` has changed: numbers, arrays, lists and dictionaries of them, for a checkpoint."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027  nothing to restore without state()
        """Restore what ``state()`` returned."""

    def check_can_be_stored(self) -> None:
        """Raise unless a checkpoint can hold all that ``adapt`` changes."""
        if self.adapts and type(self).state is Objective.state:
            raise ValueError(
                f"{type(self).__name__} adapts in training but has no state() for a checkpoint, so a fit could "
                "not be resumed exactly: fit without checkpoint."
            )
