"""What CoLOR's network minimises, and the two ways to choose among its heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openset.methods._known_classes import class_metrics
from openset.methods.discriminator import joint_outputs
from openset.stats.selection import is_feasible, paper_key, penalised_recall

if TYPE_CHECKING:
    from torch import Tensor

    from openset.learn.batches import Batch
    from openset.learn.network import DropoutMasks, Network
    from openset.learn.primal_dual import Terms
    from openset.learn.train import HeldOut, Judgement
    from openset.methods._network import Group


class ColorObjective:
    """The constrained problem of all heads, and Algorithm 1's judgement of a network."""

    def __init__(
        self,
        bodies: dict[str, dict[str, int]],
        grid: NDArray[np.float64],
        class_loss_weight: float,
        logit_multipliers: Sequence[float],
        fpr: float,
    ) -> None:
        self.bodies = bodies
        self.n_constraints = len(grid)
        self._grid, self._fpr = grid, fpr
        self._class_loss_weight, self._logit_multipliers = class_loss_weight, logit_multipliers
        self._placed: tuple[Tensor, Tensor] | None = None

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Losses on source; defects α̂ − recall on target, soft for the weights and hard for the multipliers."""
        from openset.learn.losses import ConstrainedLoss, hard_rate
        from openset.learn.primal_dual import Terms

        classes, novelty = joint_outputs(network, batch, masks)
        wanted, sharpness = self._constants(novelty)
        objective, recall = ConstrainedLoss.apply(  # type: ignore[no-untyped-call]
            classes, novelty, batch.y, self._class_loss_weight, sharpness
        )
        return Terms(objective, proxy_defect=wanted - recall, defect=wanted - hard_rate(batch.target(novelty)))

    def _constants(self, novelty: Tensor) -> tuple[Tensor, Tensor]:
        """Candidate recalls, and how sharp every member's recall is, beside the logits."""
        import torch

        if self._placed is None or self._placed[0].device != novelty.device:
            sharpness = torch.tensor(self._logit_multipliers, dtype=novelty.dtype)
            wanted = torch.from_numpy(self._grid)
            self._placed = wanted.to(novelty.device), sharpness[:, None, None].to(novelty.device)
        return self._placed

    def judge(self, held_out: HeldOut) -> Judgement:
        """The key of Algorithm 1: target recall among heads within the budget."""
        from openset.learn.train import Judgement

        fpr = (held_out.source["novelty"] > 0).mean(axis=0)
        recall = (held_out.target["novelty"] > 0).mean(axis=0)
        keys = paper_key(fpr, recall, self._fpr)
        best = int(keys.argmax())
        metrics = {**class_metrics(held_out), "fpr": float(fpr[best]), "recall": float(recall[best])}
        heads = {
            "candidate_recall": self._grid,
            "fpr": fpr,
            "recall": recall,
            "multiplier": held_out.multipliers,
            "feasible": is_feasible(keys),
        }
        return Judgement(key=float(keys[best]), metrics=metrics, head=best, heads=heads)


class PooledColorObjective(ColorObjective):
    """The same problem with bounded multipliers, judged on the held-out rows of all members at once.

    Members come in groups of one bound, dropout and sharpness each, and every group holds out every row once. Its
    judgement is the :func:`~openset.stats.selection.penalised_recall` of each head on those rows. The multipliers
    follow the soft recall, which is what the weights see.
    """

    patience = 4

    def __init__(self, *arguments: Any, max_density_ratio: float, groups: Sequence[Group], members: int) -> None:
        super().__init__(*arguments)
        self._ratio, self._groups, self._members = max_density_ratio, tuple(groups), members

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Losses on source; defects α̂ − soft recall on target."""
        from openset.learn.primal_dual import Terms

        terms = super().terms(network, batch, masks)
        return Terms(terms.objective, proxy_defect=terms.proxy_defect)

    def judge_together(self, held_out: Sequence[HeldOut]) -> list[Judgement]:
        """One key for all members of a group, and the table of their heads once."""
        from openset.learn.train import Judgement

        judgements = []
        for group, of_group in enumerate(self._groups):
            members = held_out[group * self._members : (group + 1) * self._members]
            named = of_group._asdict().items()
            heads = {**self._pooled(members), **{name: np.full(self.n_constraints, own) for name, own in named}}
            best = int(heads["value"].argmax())
            chosen = {name: float(heads[name][best]) for name in ("fpr", "recall", "value")}
            judgements += [
                Judgement(
                    key=chosen["value"],
                    metrics={**class_metrics(outputs), **chosen},
                    head=best,
                    heads=heads if outputs is members[0] else {},
                )
                for outputs in members
            ]
        return judgements

    def _pooled(self, members: Sequence[HeldOut]) -> Mapping[str, NDArray[Any]]:
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
