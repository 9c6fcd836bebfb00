"""CoLOR: the library's method, which chooses among the paper's constrained heads by its own rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from openset._utils.arrays import make_records
from openset._utils.params import check_choice, check_number, takes_parameters_of
from openset.learn.train import Trained
from openset.methods._color import ColorBase, row_of
from openset.methods._color_decision import validation_scores, verdict_diagnostics
from openset.methods._color_objective import PooledObjective
from openset.methods._heads import FitHeads, References
from openset.methods._presets import (
    BACKBONE_GROUPS,
    FAST_GROUPS,
    LOW_GRID,
    NARROW_GROUPS,
    WIDE,
    WIDE_GROUPS,
    Group,
)
from openset.problem import Decision, FitScores, Floats, Problem, State
from openset.stats.novelty import novelty_verdict
from openset.stats.thresholds import share_above, threshold_after_choice

_PAPER = "Algorithm 1 is PaperCoLOR (method color_paper)."
_GROUPS = "Use groups=[Group(bound, dropout, sharpness), ...]."


class CoLOR(ColorBase):
    """Finds a new class in a shifted target by constrained learning, and keeps classifying the known ones.

    For every candidate recall α̂ in the grid one novelty head h learns, on a shared representation, to call as few
    source rows novel as it can while calling at least a share α̂ of target rows novel:

        minimise   CE(classes) + Σ_h mean_source softplus(h) + l2·Σ p²
        subject to mean_target 1[h > 0] ≥ α̂_h   for every head

    The default in five sentences. It trains five networks, each of which leaves out another fifth of the rows
    for validation, so every row is scored by a network that did not train on it. A network has ten heads, each
    with another candidate recall. The multipliers of the constraints are bounded, so a head that asks for too
    much fails alone and does not turn the network into a detector of the shift. On all validation rows together,
    the head and the step are chosen that call most target rows novel for the fewest source rows; this is done
    for groups of networks with different bounds, and the best group is kept. The threshold is set so that at
    most ``fpr`` of source rows lie above it, corrected for how much was compared.

    The paper's rule is :class:`~openset.methods.color_paper.PaperCoLOR`. Both assume that the new class is
    separable from source, and that every known subtype of the target has some source rows. Known subtypes
    without source rows look novel, to this method as to any other.

    Parameters
    ----------
    grid : candidate recalls α̂, one for each novelty head
    groups : settings of each group of networks, ``[Group(bound, dropout, sharpness), ...]``; ``members`` networks
        are trained for each group, and those of the best group are kept
    effort : "full", or "fast" for one network in one group, in about an eighth of the time
    members : number of networks in a group, whose scores are averaged; if members × ``validation_fraction`` >= 1,
        every row is a validation row
    joint : train one body for classes and novelty heads (True), or one body for each (False)
    max_density_ratio : B, how many times as common a known kind of row may be in target as in source. Rows that
        became more common by less than that do not count when the head is chosen, nor as proof of a new class
    hidden, learning_rate, l2, clip, batch_size : settings of the networks and their training
    max_steps, evaluate_every : largest number of steps, and steps between evaluation points; training stops when
        the choice has not improved for four evaluation points
    standardize, backbone, augment : how rows are passed to the networks
    classifier, classifier_input : an estimator of scikit-learn or skada for the known classes, and its input
    checkpoint, device, verbose : a folder to resume a killed fit from, where to compute, and a progress bar
    fpr, validation_fraction, novel_label, random_state : as for every method

    See :class:`~openset.methods._network.NetworkBase` and
    :class:`~openset.methods._known_classifier.WithKnownClassifier` for details of shared parameters.

    "auto" is resolved to 5 members and to groups with bounds .1, .3 and 1, no dropout and sharpness .6. From 256
    features on the groups are (.1, 0, 1), (.3, .2, .6) and (.1, .2, 1). With a backbone or ``effort="fast"`` it
    is one member and one group. These values were chosen by measurement (docs/decisions/0016);
    ``resolved_parameters_`` has those of the fit.

    Attributes
    ----------
    heads_ : one record for every group, evaluation point and head: member (the group's first), step, head,
        candidate_recall, fpr, recall, multiplier, feasible (whether the value is above 0), value, bound, dropout,
        sharpness
    selected_ : the chosen record of ``heads_``
    novelty_test_ : the test of "there is no new class" under the bound ``max_density_ratio``
    diagnostics_ : what limits the verdict, each with a number, a threshold and what to do

    References
    ----------
    Chaudhari, Wald and Saria (2026), Open-Set Domain Adaptation Under Background Distribution Shift:
    Challenges and A Provably Efficient Solution, TMLR.

    Examples
    --------
    >>> from openset import CoLOR, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = CoLOR(effort="fast", max_steps=250, fpr=0.05, random_state=0)
    >>> model = model.fit(data.X, data.y, data.X_target)
    >>> labels = model.predict(data.X_test)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    @takes_parameters_of(
        ColorBase,
        former={
            "selection": _PAPER,
            "multiplier_bounds": _GROUPS,
            "dropout": _GROUPS,
            "logit_multiplier": _GROUPS,
            **dict.fromkeys(("optimizer", "momentum", "tol"), "CoLOR trains with Adam until its choice settles."),
            **dict.fromkeys(("dual_optimizer", "dual_learning_rate", "class_loss_weight"), _PAPER),
        },
        grid=LOW_GRID,
        members="auto",
        learning_rate=3e-3,
        max_steps=1500,
        evaluate_every=125,
    )
    def __init__(
        self,
        *,
        groups: Sequence[Group | Sequence[float] | Mapping[str, float]] | str = "auto",
        effort: str = "full",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.groups = groups
        self.effort = effort

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("effort", self.effort, ("full", "fast"))
        if self.groups == "auto":
            return
        groups = as_groups(self.groups)
        if self.backbone is not None and len(groups) > 1:
            raise ValueError(
                f"groups={self.groups!r} is not valid with a backbone: expected one group, because training a "
                "backbone for every group is too slow."
            )

    def _check_members(self) -> None:
        if self.members != "auto":
            super()._check_members()

    def _resolve(self, n_features: int) -> dict[str, Any]:
        wide, is_small = n_features >= WIDE, self.backbone is not None or self.effort == "fast"
        auto = {
            "members": 1 if is_small else 5,
            "groups": BACKBONE_GROUPS
            if self.backbone is not None
            else FAST_GROUPS[wide]
            if is_small
            else WIDE_GROUPS
            if wide
            else NARROW_GROUPS,
        }
        mine = {name: value for name, value in auto.items() if getattr(self, name) == "auto"}
        return {**super()._resolve(n_features), **mine}

    def _groups(self) -> Sequence[Group]:
        return as_groups(self._value("groups"))

    def _objective(self, problem: Problem) -> PooledObjective:
        return PooledObjective(**self._constrained(problem), max_density_ratio=self.max_density_ratio)

    def _trained_state(self, problem: Problem, trained: Trained) -> State:
        if not trained.heads:  # fitted without a target
            return super()._trained_state(problem, trained)
        members, heads = self._n_members(), make_records(trained.heads)
        first = max(range(0, len(trained.choices), members), key=lambda member: trained.choices[member].key)
        selected = heads[row_of(heads, first, trained.choices[first])]
        kept = super()._trained_state(problem, trained.only(first, members))
        return {**kept, "heads_": heads, "selected_": selected}

    def _decide(self, problem: Problem, scores: FitScores) -> Decision:
        head = int(self.selected_["head"])
        validation = validation_scores(scores.heads, problem)
        threshold = threshold_after_choice(scores.calibration_score, self.fpr, n_compared=len(self.heads_))
        verdict = novelty_verdict(validation, max_density_ratio=self.max_density_ratio)
        by_member = scores.heads.target["novelty"][:, :, head]
        diagnostics = verdict_diagnostics(
            validation,
            verdict,
            problem,
            member_scores=by_member,
            called_novel=by_member.mean(axis=0) > threshold.value,
            recall=share_above(np.concatenate([part[:, head] for part in validation.target]), threshold.value),
            candidate_recall=float(self.selected_["candidate_recall"]),
            fpr=self.fpr,
        )
        return Decision(threshold.value, verdict.fraction, verdict.test, diagnostics, self._unmet(threshold))

    def _calibration_score(self, problem: Problem, heads: FitHeads, references: References) -> Floats:
        """Return scores of all source rows, each by a member that did not train on it."""
        head, folds = int(self.selected_["head"]), problem.split.folds
        parts = [
            heads.source.of(fold.validation)["novelty"][member, :, head] for member, fold in enumerate(folds)
        ]
        return np.concatenate(parts).astype(np.float64)

    def _ranks_members(self) -> bool:
        return False  # members share one head, whose logits are averaged directly


def as_groups(given: Any) -> list[Group]:
    """Return groups from Group values, sequences (bound, dropout, sharpness), or mappings of these names.

    >>> as_groups([(0.1,), {"bound": 0.3, "dropout": 0.2}])
    [Group(bound=0.1, dropout=0.0, sharpness=0.6), Group(bound=0.3, dropout=0.2, sharpness=0.6)]
    """
    wanted = "settings such as [Group(bound=0.1), Group(bound=0.3, dropout=0.2)]"
    if isinstance(given, str) or not isinstance(given, Iterable) or not list(given):
        raise ValueError(f"groups={given!r} is not valid: expected {wanted}.")
    groups = []
    for one in given:
        try:
            group = Group(**one) if isinstance(one, Mapping) else Group(*one)
        except TypeError:
            raise ValueError(f"groups entry {one!r} is not valid: expected {wanted}.") from None
        check_number("groups bound", group.bound, open_low=True)
        check_number("groups dropout", group.dropout, high=1, open_high=True)
        check_number("groups sharpness", group.sharpness, open_low=True)
        groups.append(group)
    return groups
