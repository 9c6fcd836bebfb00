"""CoLOR's constrained problem, and the two rules that choose among heads."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.losses import ConstrainedLoss, hard_rate
from openset.learn.network import Network
from openset.learn.objective import Judgement, Objective, Validation
from openset.learn.primal_dual import Terms
from openset.methods._known_classes import class_metrics
from openset.methods._presets import Group
from openset.methods.discriminator import joint_outputs
from openset.stats.selection import is_feasible, paper_key, penalised_recall


class PaperObjective(Objective):
    """The constrained problem of all heads, judged by the rule of Algorithm 1.

    ``groups`` has the settings of every group of ``members`` networks.
    """

    def __init__(
        self,
        bodies: dict[str, dict[str, int]],
        grid: NDArray[np.float64],
        groups: Sequence[Group],
        members: int,
        *,
        fpr: float,
        class_loss_weight: float = 1.0,
    ) -> None:
        self.bodies = bodies
        self.n_constraints = len(grid)
        self._grid, self._fpr, self._class_loss_weight = grid, fpr, class_loss_weight
        self._groups, self._members = tuple(groups), members
        self._alone: int | None = None
        self._on_device: tuple[Tensor, Tensor] | None = None

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return losses on source and violations α̂ − recall on target: soft for weights, hard for multipliers."""
        objective, violation, novelty, wanted = self._soft_terms(network, batch, masks)
        hard = wanted - hard_rate(batch.target(novelty))
        return Terms(objective, proxy_violation=violation, violation=hard)

    def _soft_terms(
        self, network: Network, batch: Batch, masks: DropoutMasks
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        classes, novelty = joint_outputs(network, batch, masks)
        wanted, sharpness = self._constants(novelty)
        if self._alone is None:
            objective, recall = ConstrainedLoss.apply(  # type: ignore[no-untyped-call]
                classes, novelty, batch.y, self._class_loss_weight, sharpness
            )
            return objective, wanted - recall, novelty, wanted
        # rounding depends on where a number lies in its tensor, so that of all groups is made
        place = slice(self._alone * self._members, (self._alone + 1) * self._members)
        logits, y = (_at(place, len(self._groups) * self._members, part) for part in (
            torch.cat([classes, novelty], dim=-1), batch.y,
        ))  # fmt: skip
        of_classes, of_novelty = logits.tensor_split([classes.shape[-1]], dim=-1)
        objective, recall = ConstrainedLoss.apply(  # type: ignore[no-untyped-call]
            of_classes, of_novelty, y, self._class_loss_weight, sharpness
        )
        return objective[place], wanted - recall[place], novelty, wanted

    def _constants(self, novelty: Tensor) -> tuple[Tensor, Tensor]:
        """Return candidate recalls and each member's sharpness, on the device of the logits."""
        if self._on_device is None or self._on_device[0].device != novelty.device:
            of_members = [group.sharpness for group in self._groups for _ in range(self._members)]
            sharpness = torch.tensor(of_members, dtype=novelty.dtype)[:, None, None]
            self._on_device = torch.from_numpy(self._grid).to(novelty.device), sharpness.to(novelty.device)
        return self._on_device

    def judge_member(self, validation: Validation) -> Judgement:
        """Judge by the key of Algorithm 1: target recall among heads within the FPR budget."""
        fpr = (validation.source["novelty"] > 0).mean(axis=0)
        recall = (validation.target["novelty"] > 0).mean(axis=0)
        keys = paper_key(fpr, recall, self._fpr)
        best = int(keys.argmax())
        metrics = {**class_metrics(validation), "fpr": float(fpr[best]), "recall": float(recall[best])}
        heads = {
            "candidate_recall": self._grid,
            "fpr": fpr,
            "recall": recall,
            "multiplier": validation.multipliers,
            "feasible": is_feasible(keys),
        }
        return Judgement(key=float(keys[best]), metrics=metrics, head=best, heads=heads)


class PooledObjective(PaperObjective):
    """The same problem with bounded multipliers, judged on the validation rows of all members together.

    A head is judged by its :func:`~openset.stats.selection.penalised_recall` on these rows. The multipliers
    follow the soft recall, as the weights do.
    """

    def __init__(self, *arguments: Any, max_density_ratio: float, patience: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ratio = max_density_ratio
        self.patience = patience

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return losses on source and violations α̂ − soft recall on target."""
        objective, violation, _, _ = self._soft_terms(network, batch, masks)
        return Terms(objective, proxy_violation=violation)

    def by_group(self) -> list[tuple[int, Objective]]:
        """Return the objective of each group: groups share nothing but the step at which all stop."""
        return [(self._members, self._of_group(number)) for number in range(len(self._groups))]

    def _of_group(self, number: int) -> PooledObjective:
        alone = copy.copy(self)
        alone._alone = number
        return alone

    def judge(self, validation: Sequence[Validation]) -> list[Judgement]:
        """Judge all members of a group by one key, and return the table of their heads once."""
        judgements = []
        groups = self._groups if self._alone is None else self._groups[self._alone : self._alone + 1]
        for number, group in enumerate(groups):
            members = validation[number * self._members : (number + 1) * self._members]
            settings = {name: np.full(self.n_constraints, value) for name, value in group._asdict().items()}
            heads = {**self._pooled(members), **settings}
            best = int(heads["value"].argmax())
            chosen = {name: float(heads[name][best]) for name in ("fpr", "recall", "value")}
            judgements += [
                Judgement(
                    key=chosen["value"],
                    metrics={**class_metrics(of_member), **chosen},
                    head=best,
                    heads=heads if of_member is members[0] else {},
                )
                for of_member in members
            ]
        return judgements

    def _pooled(self, members: Sequence[Validation]) -> Mapping[str, NDArray[Any]]:
        source, target = (
            np.concatenate([getattr(member, domain)["novelty"] for member in members])
            for domain in ("source", "target")
        )
        value = np.array([penalised_recall(s, t, self._ratio) for s, t in zip(source.T, target.T, strict=True)])
        return {
            "candidate_recall": self._grid,
            "fpr": (source > 0).mean(axis=0),
            "recall": (target > 0).mean(axis=0),
            "multiplier": np.mean([member.multipliers for member in members], axis=0),
            "feasible": value > 0,
            "value": value,
        }


def _at(place: slice, total: int, values: Tensor) -> Tensor:
    """Values of some members at their place among those of all members, which are 0."""
    whole = torch.zeros(total, *values.shape[1:], dtype=values.dtype, device=values.device)
    whole[place] = values
    return whole
