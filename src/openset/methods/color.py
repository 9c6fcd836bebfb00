"""CoLOR: the library's method, which chooses among the paper's constrained heads by its own rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import make_records
from openset._utils.params import check_choice, check_number, takes_parameters_of
from openset.align.auto import Chosen, check_align, choose_alignment
from openset.align.base import Alignment
from openset.align.moved import MAX_ROWS
from openset.learn.seeds import child_seed
from openset.learn.train import Trained
from openset.methods._color import ColorBase, row_of
from openset.methods._color_decision import (
    called_threshold,
    feature_diagnostics,
    limited,
    move_diagnostic,
    separating_features,
    verdict_diagnostics,
    voice_diagnostics,
)
from openset.methods._color_defaults import (
    BACKBONE_GROUPS,
    FAST_GROUPS,
    FAST_PATIENCE,
    FAST_ROWS,
    LOW_GRID,
    NARROW_GROUPS,
    PATIENCE,
    WIDE_GROUPS,
)
from openset.methods._color_objective import PooledObjective
from openset.methods._distances import Views, thinned
from openset.methods._domains import fit_domains
from openset.methods._heads import FitHeads, References
from openset.methods._presets import WIDE, Group
from openset.methods._scores_to_test import Near, ScoresToTest, scores_to_test
from openset.methods._voices import Voices, fit_voices, has_voices
from openset.methods._voices_onnx import OnnxViews, voice_score
from openset.problem import Decision, FitScores, Floats, Problem, State
from openset.stats.diagnostics import Diagnostic, agreement_of_members, constraint_kept
from openset.stats.novelty import MAX_DENSITY_RATIO, NoveltyVerdict, novelty_verdict
from openset.stats.scaling import BLOCK, Scaling, fit_scaling, scale_in_double, unscaled
from openset.stats.thresholds import share_above, threshold_after_choice

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value

_PAPER = "Algorithm 1 is PaperCoLOR (method color_paper)."
_GROUPS = "Use groups=[Group(bound, dropout, sharpness), ...]."
_VOICES = 1_000_000
"""The child of the fit's seed that voices use; the split and the members have the first ones."""


class CoLOR(ColorBase):
    """Finds a new class in a shifted target by constrained learning, and keeps classifying the known ones.

    For every candidate recall α̂ in the grid one novelty head h learns, on a shared representation, to call as few
    source rows novel as it can while calling at least a share α̂ of target rows novel:

        minimise   CE(classes) + Σ_h mean_source softplus(h) + l2·Σ p²
        subject to mean_target 1[h > 0] ≥ α̂_h   for every head

    The default in six sentences. It trains five networks, each of which leaves out another fifth of the rows
    for validation, so every row is scored by a network that did not train on it. A network has ten heads, each
    with another candidate recall. The multipliers of the constraints are bounded, so a head that asks for too
    much fails alone and does not turn the network into a detector of the shift. On all validation rows together,
    the head and the step are chosen that call most target rows novel for the fewest source rows; this is done
    for groups of networks with different bounds, and the best group is kept. The score of a row comes from this
    head and from distances to source, each trusted as far as the target itself supports it, and both are smoothed
    over neighbouring target rows. The threshold is set so that at most ``fpr`` of source rows lie above it,
    corrected for how much was compared.

    Sometimes a batch moved as a whole: another laboratory, a drifting instrument. Its rows are then aligned with
    source, and distances lead the score; they are followed alone if the alignment did not undo the move. If the
    batch did not move, the head is followed alone, unless the rows far from source form a group.
    ``effort="fast"`` uses the head alone and aligns nothing, but it notices a batch that moved. Fits on rows that
    are not vectors, with a backbone, or on fewer than 40 rows of a domain use the head alone, too.

    The paper's rule is :class:`~openset.methods.color_paper.PaperCoLOR`. Both assume that the new class is
    separable from source, and that every known subtype of the target has some source rows. Known subtypes without
    source rows look novel, to this method as to any other.

    Parameters
    ----------
    grid : candidate recalls α̂, one for each novelty head
    groups : settings of each group of networks, ``[Group(bound, dropout, sharpness), ...]``; ``members`` networks
        are trained for each group, and those of the best group are kept
    effort : "full", or "fast" for one network in one group without distances, in about a tenth of the time
    align : "auto" aligns the target with source only if it moved as a whole, and never with ``effort="fast"``. A
        name ("none", "standardize", "coral", "clusters", "classes", "transport"), an aligner or a fitted
        alignment is applied whether it moved or not (see :mod:`openset.align`)
    members : number of networks in a group, whose scores are averaged; if members × ``validation_fraction`` >= 1,
        every row is a validation row
    max_density_ratio : B, how many times as common a known kind of row may be in target as in source. Rows that
        became more common by less than that do not count when the head is chosen, nor as proof of a new class.
        "auto" chooses the head with 12, and reads off the rows how far known kinds moved, with a margin, for the
        proof
    hidden, learning_rate, l2, clip, batch_size : settings of the networks and their training
    max_steps, evaluate_every : largest number of steps, and steps between evaluation points; training stops when
        the choice has not improved for four evaluation points (three with ``effort="fast"``)
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
    alignment_ : the alignment of the target rows (``name``, ``alignment``), and whether the batch was moved
        ``before`` and ``after`` it; None if it was not looked at. Rows that are scored later are aligned alike
    voices_ : distances to source and how they are combined with the head; ``voices_.trust`` has the weights of
        ``heads`` and ``distances`` in the score, and why. Missing if the score is that of the head
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

    alignment_: Chosen | None
    voices_: Voices

    @takes_parameters_of(
        ColorBase,
        former={
            "selection": _PAPER,
            "joint": "Use PaperCoLOR(joint=False), which is ConOp.",
            "multiplier_bounds": _GROUPS,
            "dropout": _GROUPS,
            "logit_multiplier": _GROUPS,
            **dict.fromkeys(("optimizer", "momentum", "tol"), "CoLOR trains with Adam until its choice settles."),
            **dict.fromkeys(("dual_optimizer", "dual_learning_rate", "class_loss_weight"), _PAPER),
        },
        grid=LOW_GRID,
        members="auto",
        max_density_ratio="auto",
        learning_rate=3e-3,
        max_steps=1500,
        evaluate_every=125,
    )
    def __init__(
        self,
        *,
        groups: Sequence[Group | Sequence[float] | Mapping[str, float]] | str = "auto",
        effort: str = "full",
        align: Any = "auto",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.groups = groups
        self.effort = effort
        self.align = align

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("effort", self.effort, ("full", "fast"))
        check_align(self.align)
        if self.backbone is not None and not (isinstance(self.align, str) and self.align in ("auto", "none")):
            raise ValueError(
                f"align={self.align!r} is not valid with a backbone: only rows that are vectors are aligned."
            )
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

    def _check_ratio(self) -> None:
        if self.max_density_ratio != "auto":
            super()._check_ratio()

    def _resolve(self, n_features: int) -> dict[str, Any]:
        wide, is_small = n_features >= WIDE, self.backbone is not None or self.effort == "fast"
        auto = {
            "members": 1 if is_small else 5,
            "max_density_ratio": MAX_DENSITY_RATIO,
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
        return PooledObjective(
            **self._constrained(problem),
            max_density_ratio=self._value("max_density_ratio"),
            patience=FAST_PATIENCE if self.effort == "fast" else PATIENCE,
        )

    def _trained_state(self, problem: Problem, trained: Trained) -> State:
        if not trained.heads:  # fitted without a target
            return super()._trained_state(problem, trained)
        members, heads = self._n_members(), make_records(trained.heads)
        first = max(range(0, len(trained.choices), members), key=lambda member: trained.choices[member].key)
        selected = heads[row_of(heads, first, trained.choices[first])]
        kept = super()._trained_state(problem, trained.only(first, members))
        return {**kept, "heads_": heads, "selected_": selected}

    # ------------------------------------------------------------------ alignment, and several domains

    def fit_domains(self, X: Any, y: Any, X_target: Any, sample_domain: Any) -> dict[Any, Self]:
        """Fit once on a target of several domains; return a fitted model for each of them.

        The networks and their chosen head are shared. Each domain is aligned on its own if it moved, and has its
        own distances, threshold, verdict and share. A domain that moved, or that a feature alone tells from
        source, takes no part in training, unless all are so: its rows would lead the shared heads. Each model is
        as if ``fit`` had seen this domain alone, but for its networks: it predicts later rows of the domain, and
        can be saved. Verdicts are one for each domain: with D of them, multiply p-values by D.

        Parameters
        ----------
        X, y, X_target : as for ``fit``
        sample_domain : the domain of each target row, such as a site or an instrument; at least 40 rows each

        >>> from openset import CoLOR, make_background_shift
        >>> data = make_background_shift(n_source=300, n_target=200, random_state=0)
        >>> site = ["north", "south"] * 100
        >>> models = CoLOR(effort="fast", max_steps=20, fpr=0.1, random_state=0).fit_domains(
        ...     data.X, data.y, data.X_target, site
        ... )
        >>> {name: model.n_target_ for name, model in models.items()}
        {'north': 100, 'south': 100}
        """
        return fit_domains(self, X, y, X_target, sample_domain)

    def _prepare(self, problem: Problem) -> tuple[Problem, State]:
        """Align the target if its rows moved as a whole."""
        chosen = None
        if self._looks_for_a_move(problem):
            problem, chosen = self._align(problem)
        resolved = dict(self.resolved_parameters_)
        if self._aligns_by_itself():
            resolved["align"] = "none" if chosen is None else chosen.name
        return problem, {"alignment_": chosen, "resolved_parameters_": resolved}

    def _aligns_by_itself(self) -> bool:
        return isinstance(self.align, str) and self.align == "auto"

    def _looks_for_a_move(self, problem: Problem) -> bool:
        if problem.X_target is None or problem.X.ndim != 2 or self.backbone is not None:
            return False
        return not self._aligns_by_itself() or has_voices(problem)

    def _align(self, problem: Problem) -> tuple[Problem, Chosen]:
        only_looks = self.effort == "fast" and self._aligns_by_itself()
        scaling = fit_scaling(problem.source_moments, problem.target_moments, self.standardize)
        some, of_target = thinned(len(problem.X)), thinned(len(problem.target))
        chosen = choose_alignment(
            scale_in_double(scaling, problem.X[some]),
            problem.y[some],
            scale_in_double(scaling, problem.target[of_target]),
            "none" if only_looks else self.align,
            most_rows=FAST_ROWS if self.effort == "fast" else MAX_ROWS,
        )
        if chosen.name == "none":
            return problem, chosen
        aligned = _aligned_rows(problem.target, scaling, chosen.alignment)
        return replace(problem, X_target=aligned, target_as_given=problem.target), chosen

    def _alignment(self) -> Alignment | None:
        """Return what was done to the target rows of the fit; None if nothing was."""
        chosen = getattr(self, "alignment_", None)  # models of an earlier openset have none
        return None if chosen is None or chosen.name == "none" else chosen.alignment

    def _aligned(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return target rows after the alignment of the fit."""
        alignment = self._alignment()
        return rows if alignment is None else _aligned_rows(rows, self.scaling_, alignment)

    def _onnx_aligned(self, x: Value) -> Value:
        alignment = self._alignment()
        return x if alignment is None else alignment.onnx(x)

    # ------------------------------------------------------------------ scores

    def _score_fit(self, problem: Problem) -> FitScores:
        scores = super()._score_fit(problem)
        if self.effort == "fast" or self.alignment_ is None or not has_voices(problem):
            return scores
        given = problem.target if problem.target_as_given is None else problem.target_as_given
        source, target = Views(problem.X, problem.X), Views(given, problem.target)
        rows = np.concatenate([fold.validation for fold in problem.split.folds])
        fitted = fit_voices(
            source,
            problem.y,
            target,
            self.scaling_,
            scores.target_score,
            child_seed(problem.seed, _VOICES),
            moved=self.alignment_.before.is_moved,
            undone=self.alignment_.after is not None and not self.alignment_.after.is_moved,
        )
        voices, own, distance = fitted.voices, scores.target_validation_score, fitted.target_distance
        nearest, of_source = (voices.surroundings.nearest(part) for part in (target, source.take(rows)))
        near = Near(of_source, nearest, smoothed_over=thinned(len(nearest)))
        tested = scores_to_test(fitted, scores.heads, int(self.selected_["head"]), problem.split, near)
        return replace(
            scores,
            state={**scores.state, "voices_": voices},
            target_score=voices.fuse(nearest, scores.target_score, distance),
            target_validation_score=voices.fuse(nearest, own, distance),
            calibration_score=voices.fuse(of_source, scores.calibration_score, fitted.source_distance[rows]),
            heads=replace(scores.heads, to_test=tested),
        )

    def _outputs(self, rows: NDArray[np.floating]) -> tuple[Floats, Floats]:
        aligned = self._aligned(rows)
        logits, score = super()._outputs(aligned)
        if getattr(self, "voices_", None) is not None:
            score = self.voices_.score(Views(rows, aligned), score)
        return logits, score

    def _onnx_score(self, x: Value, pooled: Value) -> Value:
        voices = getattr(self, "voices_", None)
        return pooled if voices is None else voice_score(voices, OnnxViews(x, self._alignment()), pooled)

    def _decide(self, problem: Problem, scores: FitScores) -> Decision:
        tested = scores.heads.to_test
        if tested is None:  # the head alone: every row by members that did not train on it
            own = scores.target_validation_score
            tested = ScoresToTest(scores.calibration_score, own[~np.isnan(own)], by_heads=True)
        found = novelty_verdict(
            tested.source, tested.target, max_density_ratio=self.max_density_ratio, growth=tested.growth
        )
        if "max_density_ratio" in self.resolved_parameters_:  # 12 until here, to choose the head
            self.resolved_parameters_["max_density_ratio"] = found.test.max_density_ratio
        voices = getattr(self, "voices_", None)
        trust = None if voices is None else voices.trust
        separating = separating_features(problem)
        verdict = limited(found, self.alignment_, trust, n_source=len(problem.X), separating=separating)
        threshold = threshold_after_choice(scores.calibration_score, self.fpr, n_compared=len(self.heads_))
        value = called_threshold(threshold, scores.calibration_score, verdict.test)
        called = scores.target_score > value
        diagnostics = verdict_diagnostics(tested, found, problem, called_novel=called, fpr=self.fpr)
        diagnostics += feature_diagnostics(verdict.test, separating) + self._head_diagnostics(
            scores, verdict, value
        )
        if self.alignment_ is not None:
            diagnostics.append(move_diagnostic(self.alignment_))
            if voices is not None:
                is_moved = self.alignment_.before.is_moved
                diagnostics += voice_diagnostics(voices.trust, tested.by_heads, moved=is_moved)
        return Decision(value, verdict.fraction, verdict.test, diagnostics, self._unmet(threshold))

    def _head_diagnostics(self, scores: FitScores, verdict: NoveltyVerdict, threshold: float) -> list[Diagnostic]:
        own = scores.target_validation_score
        recall = share_above(own[~np.isnan(own)], threshold)
        found = [constraint_kept(recall, float(self.selected_["candidate_recall"]))]
        logits = scores.heads.target["novelty"][:, :, int(self.selected_["head"])]
        if len(logits) > 1:
            found.append(agreement_of_members(logits, max(verdict.fraction.value, 0.01)))
        return found

    def _calibration_score(self, problem: Problem, heads: FitHeads, references: References) -> Floats:
        """Return scores of all source rows, each by a member that did not train on it."""
        head, folds = int(self.selected_["head"]), problem.split.folds
        parts = [
            heads.source.of(fold.validation)["novelty"][member, :, head] for member, fold in enumerate(folds)
        ]
        return np.concatenate(parts).astype(np.float64)

    def _ranks_members(self) -> bool:
        return False  # members share one head, whose logits are averaged directly


def _aligned_rows(rows: NDArray[np.floating], scaling: Scaling, alignment: Alignment) -> NDArray[np.floating]:
    """Return rows in their own units after an alignment of scaled rows, some at a time."""
    aligned = np.empty_like(rows)
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        aligned[part] = unscaled(scaling, alignment.transform_target(scale_in_double(scaling, rows[part])))
    return aligned


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
