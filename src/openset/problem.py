"""Inputs and results of a fit, as values: problem, split, scores, decision, predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from openset.stats.diagnostics import Diagnostic
from openset.stats.folds import Fold, keep_one_of_each, make_folds, spread_positions, window
from openset.stats.novelty import NoveltyTest
from openset.stats.scaling import Moments, incompatible_features
from openset.stats.shares import ShareEstimate

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
State = Mapping[str, Any]
"""Fitted attributes by name, each with a trailing underscore."""


@dataclass(frozen=True, eq=False)
class Split:
    """The rows for training, for choosing, and for the threshold."""

    folds: list[Fold]
    """Source rows of each member, for training and for validation."""
    target_folds: list[Fold]
    """Target rows of each member; empty without a target."""
    calibration: Rows
    """Source rows for the threshold, which no member trains or chooses on. Where a method does not calibrate: the
    first member's validation rows."""

    @property
    def calibration_is_unseen(self) -> bool:
        """Whether no member trained on a calibration row."""
        return not any(np.isin(self.calibration, fold.train).any() for fold in self.folds)


@dataclass(frozen=True)
class Problem:
    """Data for a fit: checked arrays, class indices, and the split of the rows."""

    X: NDArray[np.floating]
    y: NDArray[np.intp]
    X_target: NDArray[np.floating] | None
    n_classes: int
    seed: np.random.SeedSequence
    split: Split
    source_moments: Moments
    target_moments: Moments | None
    target_as_given: NDArray[np.floating] | None = None
    """The target rows before alignment; None if ``X_target`` was not aligned."""

    @property
    def target(self) -> NDArray[np.floating]:
        """The target rows; only where there is a target."""
        assert self.X_target is not None
        return self.X_target

    def of_target_rows(self, rows: Rows) -> Problem:
        """Return the problem with some of its target rows, sorted; moments stay those of all, as scaling does."""
        index = np.full(len(self.target), -1)
        index[rows] = np.arange(len(rows))
        folds = [
            _never_empty(Fold(*(found[found >= 0] for found in (index[fold.train], index[fold.validation]))))
            for fold in self.split.target_folds
        ]
        return replace(self, X_target=self.target[rows], split=replace(self.split, target_folds=folds))


@dataclass(frozen=True, eq=False)
class ValidationClasses:
    """Class probabilities (rows, k), each row's by members that did not train on it.

    ``y`` has the class index of each source row, ``target_rows`` the index of each target row.
    """

    source: Floats
    y: NDArray[np.intp]
    target: Floats
    target_rows: Rows


@dataclass(frozen=True, eq=False)
class FitScores:
    """Scores of the rows of a fit, computed once after training. Not part of a saved model."""

    split: Split
    state: State = field(default_factory=dict)
    """Fitted attributes found while scoring."""
    target_logits: Floats = field(default_factory=lambda: np.empty((0, 0)))
    target_score: Floats = field(default_factory=lambda: np.empty(0))
    target_validation_score: Floats = field(default_factory=lambda: np.empty(0))
    """Scores by members that did not train on the row; NaN where every member did."""
    calibration_score: Floats = field(default_factory=lambda: np.empty(0))
    """Scores of source rows, each by members that did not train on it."""
    validation_classes: ValidationClasses | None = None
    """None if there were too few rows to keep any from training."""
    heads: Any = None
    """Outputs of every head, for ``_decide``; deleted after it."""


@dataclass(frozen=True)
class Decision:
    """What a fit decides on rows that were not used to choose: the threshold, and the novel share."""

    threshold: float
    fraction: ShareEstimate
    test: NoveltyTest | None = None
    diagnostics: list[Diagnostic] | None = None
    warnings: tuple[str, ...] = ()

    def state(self) -> State:
        """Return fitted attributes; a method without a test has no ``novelty_test_``."""
        optional = {"novelty_test_": self.test, "diagnostics_": self.diagnostics}
        return {
            "threshold_": self.threshold,
            "novel_fraction_": self.fraction,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels, scores and probabilities of some rows.

    Labels are integer codes into ``labels``: the known classes and, if fitted with a target, the novel label
    last. A million rows then need no million strings.
    """

    labels: NDArray[Any]
    predicted_index: Rows
    known_index: Rows
    novelty_score: Floats
    probabilities: Floats

    @property
    def predicted(self) -> NDArray[Any]:
        """The label of each row: a known class, or the novel label."""
        return self.labels[self.predicted_index]

    @property
    def known(self) -> NDArray[Any]:
        """The most likely known class of each row."""
        return self.labels[self.known_index]


def draw_split(
    y: NDArray[np.intp],
    n_target: int,
    seed: np.random.SeedSequence,
    *,
    members: int,
    fraction: float,
    choosing: bool,
    calibrating: bool,
) -> Split:
    """Split source into calibration rows and the members' folds, and target into the members' folds.

    ``fraction`` is the share of rows that a member does not train on. With ``choosing``, source rows are set
    aside to choose heads and steps. With ``calibrating``, other source rows are set aside for the threshold. With
    both, each gets half of the fraction; the half for choosing is taken of the rows that are left.
    """
    random = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(0,)))
    calibrating = calibrating and n_target > 0
    of_source = fraction / 2 if choosing and calibrating else fraction
    reserved = np.zeros(len(y), bool)
    if calibrating:
        reserved = keep_one_of_each(window(spread_positions(y, random), 0.0, of_source), y)
    free = np.flatnonzero(~reserved)
    source_folds = make_folds(y[free], members=members, share=of_source if choosing else 0.0, random=random)
    target_folds = make_folds(
        np.zeros(n_target, np.intp), members=members if n_target else 0, share=fraction, random=random
    )
    folds = [_never_empty(Fold(free[fold.train], free[fold.validation])) for fold in source_folds]
    calibration = np.flatnonzero(reserved)
    return Split(
        folds,
        [_never_empty(fold) for fold in target_folds],
        calibration if len(calibration) else folds[0].validation,
    )


def unseen_classes(problem: Problem, source_logits: Floats, target_logits: Floats) -> ValidationClasses | None:
    """Return class probabilities by the whole model of calibration rows; None if it trained on them."""
    split = problem.split
    if not split.calibration_is_unseen:
        return None
    source, target = (softmax(logits, axis=1) for logits in (source_logits, target_logits))
    return ValidationClasses(source, problem.y[split.calibration], target, np.arange(len(target)))


def check_sizes(problem: Problem) -> None:
    """Raise if values are too large to compute with."""
    for name, part in (("X", problem.source_moments), ("X_target", problem.target_moments)):
        if part is not None and not (np.isfinite(part.mean).all() and np.isfinite(part.sd).all()):
            raise ValueError(
                f"{name} has values up to {part.largest:.3g}, too large to compute with: "
                "bring its columns to a usual scale."
            )


def other_scales(problem: Problem, names: Any) -> tuple[str, ...]:
    """Return a warning if features seem to be measured in other units in the target."""
    source, target = problem.source_moments, problem.target_moments
    odd = np.empty(0, np.intp) if target is None else incompatible_features(source, target)
    if target is None or not len(odd):
        return ()
    first = int(odd.flat[0])
    label = f"column {names[first]!r}" if names is not None else f"feature {first}"
    return (
        f"{len(odd)} features are on incompatible scales in X and X_target: {label} has mean "
        f"{source.mean.flat[first]:.3g} ± {source.sd.flat[first]:.3g} in source but "
        f"{target.mean.flat[first]:.3g} ± {target.sd.flat[first]:.3g} in target. Check that both went "
        "through the same preprocessing (in a Pipeline: transform_input=['X_target']).",
    )


def _never_empty(fold: Fold) -> Fold:
    """Use the training rows where no row is left for validation."""
    return fold if len(fold.validation) else Fold(fold.train, fold.train)
