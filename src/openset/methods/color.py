"""CoLOR: constrained learning of a classifier and several novelty heads on one shared representation."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_choice, check_flag, check_number, check_numbers, takes_parameters_of
from openset.base import Problem
from openset.errors import FitWarning
from openset.methods._color_objective import ColorObjective, PooledColorObjective
from openset.methods._evidence import diagnose, held_out_scores
from openset.methods._known_classifier import WithKnownClassifier
from openset.methods._network import Group, HeadOutputs
from openset.methods._presets import COLOR_AUTO, PRESETS, color_auto
from openset.methods.discriminator import bodies_for
from openset.stats.conformal import threshold_after_choice
from openset.stats.novelty import assess_novelty
from openset.stats.proportions import NOT_IDENTIFIED, anchored_fraction
from openset.stats.records import make_records
from openset.stats.thresholds import share_above

if TYPE_CHECKING:
    from openset.learn.train import Choice, Trained


class CoLOR(WithKnownClassifier):
    """Finds a new class in a shifted target by constrained learning, and keeps classifying the known ones.

    For every candidate recall α̂ in the grid one novelty head h learns, on a shared representation, to call as
    few source rows novel as it can while calling at least a share α̂ of target rows novel:

        minimise   CE(classes) + Σ_h mean_source softplus(h) + l2·Σ p²
        subject to mean_target 1[h > 0] ≥ α̂_h   for every head

    by simultaneous primal–dual steps. Two rules choose among heads and evaluation points:

    - "pooled", the default. Five networks hold out a fifth of the rows each, so that every row of source and
      target is held out once, and multipliers are bounded: a head whose α̂ exceeds the novel fraction could
      meet its constraint only with shifted known rows, and an unbounded multiplier would turn the whole body
      into a domain discriminator. The winner has the highest
      :func:`~openset.stats.selection.penalised_recall` on all held-out rows. No one bound or dropout suits all
      data, so five networks are trained for each of ``multiplier_bounds``, and those of the winner stay.
    - "paper", Algorithm 1: the highest target recall among heads whose false-positive rate on held-out source
      stays below ``fpr``, from one network with the paper's grid and no bound.

    It assumes that the new class is separable from source, and that every known subtype of the target has some
    source rows. Where known subtypes of the target have none, they look novel, to this method as to any.

    Parameters
    ----------
    selection : "pooled" or "paper"; with the latter ``threshold_`` is 0, the head's own
    grid : candidate recalls α̂, one novelty head each
    members : networks whose scores are averaged; members × ``validation_fraction`` >= 1 holds out every row
    multiplier_bounds : upper bounds of the multipliers; ``members`` networks are trained for each ("pooled" only)
    dropout, logit_multiplier : one number, or one for each of ``multiplier_bounds``. The latter is m in mean
        σ(m·h), the recall that the weights see: below 1 it pulls longer at rows that a head calls known
    max_density_ratio : B, how many times as common a known kind of row may be in target as in source. The choice
        of the head takes no interest in rows that are more common by less than that
    learning_rate, max_steps, evaluate_every : as for all networks. "auto", here and above, stands for what was
        measured to suit the rule of selection and the number of features (below)
    joint : share one body between classes and novelty heads; False is the paper's ConOp
    dual_optimizer, dual_learning_rate : how the multipliers ascend, "adam" or "sgd"
    class_loss_weight : weight of the cross entropy of known classes, counted once and not once per head

    ``classifier`` and ``classifier_input``, which leave known classes to an estimator of scikit-learn or skada,
    are those of :class:`~openset.methods._known_classifier.WithKnownClassifier`; the others are those of
    :class:`~openset.methods._network.NetworkClassifier`.

    What "auto" stands for
    ----------------------
    "pooled": 5 members, a grid from .002 to .25, learning rate 3e-3, 1500 steps, a point every 125, bounds
    (.1, .3, 1) without dropout, logit_multiplier .6. From 256 features on, unless bounds or dropout are given:
    bounds (.1, .3, .1), dropout (0, .2, .2), logit_multiplier (1, .6, 1); if they are, logit_multiplier 1.
    With a backbone: one member, one bound of .2, logit_multiplier 1.
    "paper": one member, the paper's grid from .02 to .45, learning rate 1e-3, 3000 steps, a point every 250,
    logit_multiplier 1, and dropout .4 from 256 features on.

    Attributes
    ----------
    heads_ : a record for every member, evaluation point and head: member, step, head, candidate_recall, fpr,
        recall, multiplier, feasible (whether ``fpr`` keeps the budget); with "pooled" one for all members of a
        group, which ``member`` names by its first, with value, bound, dropout and logit_multiplier, and feasible
        where the value is above 0
    selected_ : the chosen record of ``heads_`` ("paper" with several members: their records, in order)
    novelty_test_ : the test of "there is no new class" ("pooled" only), under the bound ``max_density_ratio``
    diagnostics_ : what limits the answer ("pooled" only), each with a number, a threshold and what to do

    References
    ----------
    Chaudhari, Wald and Saria (2026), Open-Set Domain Adaptation Under Background Distribution Shift:
    Challenges and A Provably Efficient Solution, TMLR.

    Examples
    --------
    >>> from openset import CoLOR, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = CoLOR(max_steps=250, random_state=0).fit(data.X, data.y, data.X_target)
    >>> labels = model.predict(data.X_test)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["color"]

    @takes_parameters_of(
        WithKnownClassifier,
        members="auto",
        learning_rate="auto",
        max_steps="auto",
        evaluate_every="auto",
    )
    def __init__(
        self,
        *,
        selection: str = "pooled",
        grid: Sequence[float] | str = "auto",
        multiplier_bounds: Sequence[float] | str = "auto",
        max_density_ratio: float = 12.0,
        joint: bool = True,
        dual_optimizer: str = "adam",
        dual_learning_rate: float = 0.02,
        class_loss_weight: float = 1.0,
        logit_multiplier: float | Sequence[float] | str = "auto",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.selection = selection
        self.grid = grid
        self.multiplier_bounds = multiplier_bounds
        self.max_density_ratio = max_density_ratio
        self.joint = joint
        self.dual_optimizer = dual_optimizer
        self.dual_learning_rate = dual_learning_rate
        self.class_loss_weight = class_loss_weight
        self.logit_multiplier = logit_multiplier

    # ------------------------------------------------------------------ fitting

    def _auto(self) -> dict[str, Any]:
        own = not self._is_paper and not (
            isinstance(self.multiplier_bounds, str) and isinstance(self.dropout, str)
        )
        return color_auto(self.selection, self._n_features(), backbone=self.backbone is not None, own_groups=own)

    def _check_parameters(self) -> None:
        check_choice("selection", self.selection, tuple(COLOR_AUTO))
        if not self._is_paper:
            check_numbers(
                "multiplier_bounds", self._value("multiplier_bounds"), "upper bounds such as (0.1, 0.3)"
            )
        super()._check_parameters()
        check_numbers("grid", self._value("grid"), "candidate recalls such as (0.02, 0.05, 0.1)", high=1)
        if self.backbone is not None and len(self._groups()) > 1:
            raise ValueError(
                f"multiplier_bounds={self.multiplier_bounds!r} is not valid with a backbone: expected one bound, "
                "as a backbone is trained for each."
            )
        check_number("max_density_ratio", self.max_density_ratio, low=1)
        check_flag("joint", self.joint)
        check_choice("dual_optimizer", self.dual_optimizer, ("adam", "sgd"))
        check_number("dual_learning_rate", self.dual_learning_rate, open_low=True)
        check_number("class_loss_weight", self.class_loss_weight)
        for group in self._groups():
            check_number("logit_multiplier", group.logit_multiplier, open_low=True)

    def _groups(self) -> Sequence[Group]:
        bounds = (np.inf,) if self._is_paper else tuple(self._value("multiplier_bounds"))
        dropout, sharpness = (self._for_each(bounds, name) for name in ("dropout", "logit_multiplier"))
        return [Group(*of_group) for of_group in zip(bounds, dropout, sharpness, strict=True)]

    def _for_each(self, bounds: Sequence[float], name: str) -> Sequence[Any]:
        """A parameter that is one for all groups, or one for each."""
        given = self._value(name)
        if not isinstance(given, Iterable):
            return [given] * len(bounds)
        values = list(given)
        if len(values) != len(bounds):
            wanted = f"one number, or one for each of the {len(bounds)} multiplier_bounds"
            raise ValueError(f"{name}={getattr(self, name)!r} is not valid: expected {wanted}.")
        return values

    @property
    def _is_paper(self) -> bool:
        return self.selection == "paper"

    def _objective(self, problem: Problem) -> ColorObjective:
        grid = np.asarray(self._value("grid"), dtype=np.float64)
        bodies = bodies_for(problem.n_classes, len(grid), self.joint)
        groups, members = self._groups(), self._n_members()
        sharpness = [group.logit_multiplier for group in groups for _ in range(members)]
        arguments = (bodies, grid, self.class_loss_weight, sharpness, self.fpr)
        if self._is_paper:
            return ColorObjective(*arguments)
        return PooledColorObjective(
            *arguments, max_density_ratio=self.max_density_ratio, groups=groups, members=members
        )

    def _keep(self, trained: Trained) -> None:
        if not trained.heads:  # fitted without a target
            super()._keep(trained)
            return
        self.heads_ = make_records(trained.heads)
        if self._is_paper:
            super()._keep(trained)
            rows = [self._row_of(member, choice) for member, choice in enumerate(trained.choices)]
            self.selected_ = self.heads_[rows[0]] if len(rows) == 1 else self.heads_[rows]
            return
        n_members = self._n_members()
        first = max(range(0, len(trained.choices), n_members), key=lambda member: trained.choices[member].key)
        self.selected_ = self.heads_[self._row_of(first, trained.choices[first])]
        super()._keep(trained.only(first, n_members))

    def _row_of(self, member: int, choice: Choice) -> int:
        table = self.heads_
        found = (table.member == member) & (table.step == choice.step) & (table.head == choice.head)
        return int(found.argmax())

    def _calibrates(self) -> bool:
        return False  # the paper uses the head's own threshold; pooled selection corrects for what it compared

    def _decide(self, problem: Problem) -> None:
        if self._is_paper:
            self._decide_as_published(problem)
            return
        assert problem.X_target is not None
        source, target = (self._all_heads(rows) for rows in (problem.X, problem.X_target))
        head = int(self.selected_["head"])
        held_out = held_out_scores(source, target, problem)
        of_source = np.concatenate([part[:, head] for part in held_out.source])
        self.calibration_scores_ = np.sort(of_source)
        threshold = threshold_after_choice(of_source, self.fpr, n_compared=len(self.heads_))
        self._warn_unless_met(threshold)
        self.threshold_ = threshold.value
        evidence = assess_novelty(held_out, max_density_ratio=self.max_density_ratio)
        self.novel_fraction_, self.novelty_test_ = evidence.fraction, evidence.test
        self.diagnostics_ = diagnose(
            held_out,
            evidence,
            problem,
            member_scores=target[:, :, head],
            called_novel=target[:, :, head].mean(axis=0) > self.threshold_,
            recall=share_above(np.concatenate([part[:, head] for part in held_out.target]), self.threshold_),
            candidate_recall=float(self.selected_["candidate_recall"]),
            fpr=self.fpr,
        )

    def _decide_as_published(self, problem: Problem) -> None:
        source = np.concatenate(
            [
                self._on_common_scale(member, self._selected_scores(problem.X[fold.held])[member])
                for member, fold in enumerate(problem.folds)
            ]
        )
        self.calibration_scores_ = np.sort(source)
        if not np.any(self.selected_["feasible"]):
            self.threshold_, self.novel_fraction_ = np.inf, NOT_IDENTIFIED
            lowest = np.min(self.selected_["fpr"])
            warnings.warn(
                f"no head kept its false-positive rate on held-out source below fpr={self.fpr:g} "
                f"(the lowest was {lowest:.3g}): rows are ranked by that head, but none is called novel. "
                "Train longer (max_steps), lower the grid, or allow a larger fpr.",
                FitWarning,
                stacklevel=5,
            )
            return
        self.threshold_ = 0.0
        held_target = self.target_novelty_score_[~np.isnan(self.target_novelty_score_)]
        self.novel_fraction_ = anchored_fraction(source, held_target, self.threshold_)

    # ------------------------------------------------------------------ scoring

    def head_scores(self, X: Any) -> NDArray[np.float32]:
        """Logits of every novelty head of the network that was kept, (members, rows, heads), in the grid's order.

        ``novelty_score`` is the selected head's; the others show what another choice would have given.
        """
        rows = self._scoring_rows(X)
        if not self.n_target_:
            raise ValueError("fitted without X_target, so there are no novelty heads: pass X_target to fit.")
        return self._all_heads(rows)

    def _all_heads(self, rows: NDArray[np.floating]) -> NDArray[np.float32]:
        from openset.learn.batches import ScaledRows

        return self._head_outputs(ScaledRows(rows, self.scaling_))["novelty"]

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.floating]:
        chosen = np.broadcast_to(self.selected_["head"], len(outputs["novelty"]))
        return np.stack([novelty[:, head] for novelty, head in zip(outputs["novelty"], chosen, strict=True)])

    def _selected_scores(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        from openset.learn.batches import ScaledRows

        return self._member_scores(self._head_outputs(ScaledRows(rows, self.scaling_)))

    def _on_common_scale(self, member: int, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Ranks of several members are shifted so that 0 stays the threshold of every head."""
        common = super()._on_common_scale(member, scores)
        if not self._ranks_members():
            return common
        return common - super()._on_common_scale(member, np.zeros(1))

    def _ranks_members(self) -> bool:
        """Members that were chosen together share one head, whose logits can be averaged as they are."""
        return self._is_paper and super()._ranks_members()


class ConOp(CoLOR):
    """CoLOR without joint learning: the novelty heads and the classifier each have a body of their own.

    The paper's ConOp, for its joint-learning tables; the same as ``CoLOR(joint=False)``.
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["conop"]

    @takes_parameters_of(CoLOR, joint=False)
    def __init__(self, **shared: Any) -> None:
        super().__init__(**shared)
