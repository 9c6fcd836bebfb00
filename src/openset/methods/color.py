"""CoLOR: constrained learning of a classifier and several novelty heads on one shared representation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from openset.base import Problem
from openset.errors import FitWarning
from openset.methods.discriminator import bodies_for, joint_outputs
from openset.methods.known_classes import class_metrics
from openset.methods.neural import HeadOutputs, NetworkClassifier
from openset.methods.presets import PRESETS
from openset.params import check_choice, check_flag, check_number, takes_parameters_of
from openset.stats.proportions import NOT_IDENTIFIED, anchored_fraction
from openset.stats.records import make_records
from openset.stats.selection import is_feasible, paper_key

if TYPE_CHECKING:
    from torch import Tensor

    from openset.learn.network import DropoutMasks, Network
    from openset.learn.primal_dual import Terms
    from openset.learn.rows import Batch
    from openset.learn.train import HeldOut, Judgement, Trained

PAPER_GRID = (0.02, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45)


class CoLOR(NetworkClassifier):
    """Finds a new class in a shifted target by constrained learning, and keeps classifying the known ones.

    For every candidate recall α̂ in the grid one novelty head h learns, on a shared representation, to call as
    few source rows novel as it can while calling at least a share α̂ of target rows novel:

        minimise   CE(classes) + Σ_h mean_source softplus(h) + l2·Σ p²
        subject to mean_target 1[h > 0] ≥ α̂_h   for every head

    by simultaneous primal–dual steps: descent on the weights sees the recall as mean σ(m·h), ascent on the
    multipliers the recall itself. Among all heads at all evaluation points the one with the highest
    target recall wins whose false-positive rate on held-out source stays below ``fpr``.

    It assumes that the new class is separable from source, and that every known subtype of the target has some
    source rows. Where known subtypes of the target have none, they look novel, to this method as to any.

    Parameters
    ----------
    grid : candidate recalls α̂, one novelty head each
    fpr : the largest false-positive rate on held-out source that a head may have (the paper's β)
    selection : "paper", Algorithm 1; ``threshold_`` is then 0, the head's own
    members : networks trained together; 1 is the paper's model
    joint : share one body between classes and novelty heads; False is the paper's ConOp
    dual_optimizer, dual_learning_rate : how the multipliers ascend, "adam" or "sgd"
    class_loss_weight : weight of the cross entropy of known classes, counted once and not once per head
    logit_multiplier : m, the sharpness of the recall that the weights see

    The other parameters are those of :class:`~openset.methods.neural.NetworkClassifier`.

    Attributes
    ----------
    heads_ : a record for every member, evaluation point and head: step, head, candidate_recall, fpr, recall,
        multiplier, feasible
    selected_ : the chosen record of ``heads_`` (with several members: their records, in order)

    References
    ----------
    Chaudhari, Wald and Saria (2026), Open-Set Domain Adaptation Under Background Distribution Shift:
    Challenges and A Provably Efficient Solution, TMLR.

    Examples
    --------
    >>> from openset import CoLOR, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = CoLOR(max_steps=600, random_state=0).fit(data.X, data.y, data.X_target)
    >>> labels = model.predict(data.X_test)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["color"]

    @takes_parameters_of(NetworkClassifier)
    def __init__(
        self,
        *,
        grid: Sequence[float] = PAPER_GRID,
        selection: str = "paper",
        joint: bool = True,
        dual_optimizer: str = "adam",
        dual_learning_rate: float = 0.02,
        class_loss_weight: float = 1.0,
        logit_multiplier: float = 1.0,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.grid = grid
        self.selection = selection
        self.joint = joint
        self.dual_optimizer = dual_optimizer
        self.dual_learning_rate = dual_learning_rate
        self.class_loss_weight = class_loss_weight
        self.logit_multiplier = logit_multiplier

    # ------------------------------------------------------------------ fitting

    def _check_parameters(self) -> None:
        super()._check_parameters()
        grid = self.grid
        if isinstance(grid, str) or not np.iterable(grid) or not len(list(grid)):
            raise ValueError(f"grid={grid!r} is not valid: expected candidate recalls such as (0.02, 0.05, 0.1).")
        for candidate in grid:
            check_number("grid entry", candidate, high=1, open_low=True, open_high=True)
        check_choice("selection", self.selection, ("paper",))
        check_flag("joint", self.joint)
        check_choice("dual_optimizer", self.dual_optimizer, ("adam", "sgd"))
        check_number("dual_learning_rate", self.dual_learning_rate, open_low=True)
        check_number("class_loss_weight", self.class_loss_weight)
        check_number("logit_multiplier", self.logit_multiplier, open_low=True)

    def _objective(self, problem: Problem) -> ColorObjective:
        return ColorObjective(
            bodies_for(problem.n_classes, len(self.grid), self.joint),
            np.asarray(self.grid, dtype=np.float64),
            self.class_loss_weight,
            self.logit_multiplier,
            self.fpr,
        )

    def _keep(self, trained: Trained) -> None:
        super()._keep(trained)
        if not trained.heads:  # fitted without a target
            return
        self.heads_ = make_records(trained.heads)
        rows = [
            np.flatnonzero(
                (self.heads_.member == member)
                & (self.heads_.step == choice.step)
                & (self.heads_.head == choice.head)
            )[0]
            for member, choice in enumerate(trained.choices)
        ]
        self.selected_ = self.heads_[rows[0]] if len(rows) == 1 else self.heads_[rows]

    def _calibrates(self) -> bool:
        return self.selection != "paper"  # Algorithm 1 uses the head's own threshold

    def _decide(self, problem: Problem) -> None:
        chosen = np.atleast_1d(self.selected_)
        held_source = np.concatenate(
            [
                self._on_common_scale(member, self._selected_scores(problem.X[fold.held])[member])
                for member, fold in enumerate(problem.folds)
            ]
        )
        self.calibration_scores_ = np.sort(held_source)
        if not chosen["feasible"].any():
            self.threshold_, self.novel_fraction_ = np.inf, NOT_IDENTIFIED
            warnings.warn(
                f"no head kept its false-positive rate on held-out source below fpr={self.fpr:g} "
                f"(the lowest was {chosen['fpr'].min():.3g}): rows are ranked by that head, but none is called "
                "novel. Train longer (max_steps), lower the grid, or allow a larger fpr.",
                FitWarning,
                stacklevel=4,
            )
            return
        self.threshold_ = 0.0
        held_target = self.target_novelty_score_[~np.isnan(self.target_novelty_score_)]
        self.novel_fraction_ = anchored_fraction(held_source, held_target, self.threshold_)

    # ------------------------------------------------------------------ scoring

    def head_scores(self, X: Any) -> NDArray[np.float32]:
        """Logits of every novelty head of the network that was kept, (members, rows, heads), in the grid's order.

        ``novelty_score`` is the selected head's; the others show what another choice would have given.
        """
        from openset.learn.rows import ScaledRows

        rows = self._scoring_rows(X)
        if not self.n_target_:
            raise ValueError("fitted without X_target, so there are no novelty heads: pass X_target to fit.")
        return self._head_outputs(ScaledRows(rows, self.scaling_))["novelty"]

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.floating]:
        chosen = np.atleast_1d(self.selected_)["head"]
        return np.stack([novelty[:, head] for novelty, head in zip(outputs["novelty"], chosen, strict=True)])

    def _selected_scores(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        from openset.learn.rows import ScaledRows

        return self._member_scores(self._head_outputs(ScaledRows(rows, self.scaling_)))

    def _on_common_scale(self, member: int, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Ranks of several members are shifted so that 0 stays the threshold of every head."""
        common = super()._on_common_scale(member, scores)
        if self.members == 1:
            return common
        return common - super()._on_common_scale(member, np.zeros(1))


class ConOp(CoLOR):
    """CoLOR without joint learning: the novelty heads and the classifier each have a body of their own.

    The paper's ConOp, for its joint-learning tables; the same as ``CoLOR(joint=False)``.
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["conop"]

    @takes_parameters_of(CoLOR, joint=False)
    def __init__(self, **shared: Any) -> None:
        super().__init__(**shared)


class ColorObjective:
    """The constrained problem of all heads, and Algorithm 1's judgement of a network."""

    def __init__(
        self,
        bodies: dict[str, dict[str, int]],
        grid: NDArray[np.float64],
        class_loss_weight: float,
        logit_multiplier: float,
        fpr: float,
    ) -> None:
        self.bodies = bodies
        self.n_constraints = len(grid)
        self._grid, self._fpr = grid, fpr
        self._class_loss_weight, self._logit_multiplier = class_loss_weight, logit_multiplier
        self._candidates: Tensor | None = None

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Losses on source; defects α̂ − recall on target, soft for the weights and hard for the multipliers."""
        from openset.learn.losses import ConstrainedLoss, hard_rate
        from openset.learn.primal_dual import Terms

        classes, novelty = joint_outputs(network, batch, masks)
        objective, recall = ConstrainedLoss.apply(  # type: ignore[no-untyped-call]
            classes, novelty, batch.y, self._class_loss_weight, self._logit_multiplier
        )
        wanted = self._wanted(novelty.device)
        return Terms(objective, proxy_defect=wanted - recall, defect=wanted - hard_rate(batch.target(novelty)))

    def _wanted(self, device: Any) -> Tensor:
        import torch

        if self._candidates is None or self._candidates.device != device:
            self._candidates = torch.from_numpy(self._grid).to(device)
        return self._candidates

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
