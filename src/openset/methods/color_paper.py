"""PaperCoLOR: Algorithm 1 of the CoLOR paper as published, and ConOp, the same without joint learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import make_records
from openset._utils.params import check_choice, check_flag, check_number, takes_parameters_of
from openset.learn.train import Trained
from openset.methods._color import ColorBase, row_of
from openset.methods._color_objective import PaperObjective
from openset.methods._heads import FitHeads, References
from openset.methods._network import NetworkClassifier
from openset.methods._presets import PAPER_GRID, PRESETS, Group
from openset.problem import Decision, FitScores, Floats, Problem, State
from openset.stats.shares import NOT_IDENTIFIED, anchored_share


class PaperCoLOR(ColorBase, NetworkClassifier):
    """Algorithm 1 of the paper: the head with the highest target recall among those within the source budget.

    For every candidate recall α̂ in the grid one novelty head h learns, on a shared representation, to call as few
    source rows novel as it can while calling at least a share α̂ of target rows novel:

        minimise   CE(classes) + Σ_h mean_source softplus(h) + l2·Σ p²
        subject to mean_target 1[h > 0] ≥ α̂_h   for every head

    by simultaneous primal–dual steps with unbounded multipliers. Among all evaluation points and heads whose
    false-positive rate on source validation rows is below ``fpr``, it keeps the one with the highest target
    recall; ties go to the first. ``threshold_`` is 0. If no head keeps the budget, the head with the lowest rate
    scores the rows and none is called novel. Use it to compare with the paper.
    :class:`~openset.methods.color.CoLOR` is the library's method, and ranks rows better on nearly all that we
    measured.

    Parameters
    ----------
    grid : candidate recalls α̂, one for each novelty head; by default the paper's, from .02 to .45
    joint : train one body for classes and novelty heads (True), or one body for each (False, the paper's ConOp)
    logit_multiplier : m in mean σ(m·h), the differentiable recall
    dual_optimizer, dual_learning_rate : optimiser of the multipliers, "adam" or "sgd", and its learning rate
    class_loss_weight : weight of the cross entropy of known classes, which counts once and not once per head
    max_density_ratio : B, used only where rows are listed at a false discovery rate

    ``classifier`` and ``classifier_input`` are those of
    :class:`~openset.methods._known_classifier.WithKnownClassifier`; the others are those of
    :class:`~openset.methods._network.NetworkClassifier`. ``PaperCoLOR.preset("amazon_reviews")`` (and
    ``cifar100``, ``sun397_resnet50``, ``sun397_vitl14``) returns one with the paper's settings.

    Attributes
    ----------
    heads_ : one record for every member, evaluation point and head: member, step, head, candidate_recall, fpr,
        recall, multiplier, feasible (whether ``fpr`` keeps the budget)
    selected_ : the chosen record of ``heads_``; with several members, one record for each

    References
    ----------
    Chaudhari, Wald and Saria (2026), Open-Set Domain Adaptation Under Background Distribution Shift:
    Challenges and A Provably Efficient Solution, TMLR.

    Examples
    --------
    >>> from openset import PaperCoLOR, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = PaperCoLOR(max_steps=250, random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["color_paper"]

    @takes_parameters_of(ColorBase, NetworkClassifier, grid=PAPER_GRID)
    def __init__(
        self,
        *,
        joint: bool = True,
        logit_multiplier: float = 1.0,
        dual_optimizer: str = "adam",
        dual_learning_rate: float = 0.02,
        class_loss_weight: float = 1.0,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.joint = joint
        self.logit_multiplier = logit_multiplier
        self.dual_optimizer = dual_optimizer
        self.dual_learning_rate = dual_learning_rate
        self.class_loss_weight = class_loss_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("joint", self.joint)
        check_number("logit_multiplier", self.logit_multiplier, open_low=True)
        check_choice("dual_optimizer", self.dual_optimizer, ("adam", "sgd"))
        check_number("dual_learning_rate", self.dual_learning_rate, open_low=True)
        check_number("class_loss_weight", self.class_loss_weight)

    def _groups(self) -> Sequence[Group]:
        return [Group(dropout=self._value("dropout"), sharpness=self.logit_multiplier)]

    def _objective(self, problem: Problem) -> PaperObjective:
        constrained = self._constrained(problem, joint=self.joint)
        return PaperObjective(**constrained, class_loss_weight=self.class_loss_weight)

    def _trained_state(self, problem: Problem, trained: Trained) -> State:
        state = super()._trained_state(problem, trained)
        if not trained.heads:  # fitted without a target
            return state
        heads = make_records(trained.heads)
        rows = [row_of(heads, member, choice) for member, choice in enumerate(trained.choices)]
        return {**state, "heads_": heads, "selected_": heads[rows[0]] if len(rows) == 1 else heads[rows]}

    def _decide(self, problem: Problem, scores: FitScores) -> Decision:
        if not np.any(self.selected_["feasible"]):
            lowest = np.min(self.selected_["fpr"])
            warning = (
                f"no head kept its false-positive rate on source validation rows below fpr={self.fpr:g} "
                f"(the lowest was {lowest:.3g}): rows are ranked by that head, but none is called novel. "
                "Train longer (max_steps), lower the grid, or allow a larger fpr."
            )
            return Decision(np.inf, NOT_IDENTIFIED, warnings=(warning,))
        own = scores.target_validation_score
        return Decision(0.0, anchored_share(scores.calibration_score, own[~np.isnan(own)], 0.0))

    def _calibration_score(self, problem: Problem, heads: FitHeads, references: References) -> Floats:
        return np.concatenate(
            [
                self._on_common_scale(
                    member, self._member_scores(heads.source.of(fold.validation))[member], references
                )
                for member, fold in enumerate(problem.split.folds)
            ]
        )

    def _on_common_scale(self, member: int, scores: NDArray[np.floating], references: References) -> Floats:
        """Return ranks that are shifted so that 0 is the threshold of every member's head."""
        common = super()._on_common_scale(member, scores, references)
        return common - super()._on_common_scale(member, np.zeros(1), references) if references else common


class ConOp(PaperCoLOR):
    """CoLOR without joint learning: one body for the novelty heads and another for the classifier.

    This is the paper's ConOp, for its tables on joint learning. It equals ``PaperCoLOR(joint=False)``.
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["conop"]

    @takes_parameters_of(PaperCoLOR, joint=False)
    def __init__(self, **shared: Any) -> None:
        super().__init__(**shared)
