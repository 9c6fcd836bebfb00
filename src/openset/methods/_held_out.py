"""Probabilities of the known classes for rows that no member judging them was trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from openset._utils.arrays import as_labels
from openset.base import OpenSetClassifier, Rows
from openset.methods._network import NetworkClassifier
from openset.stats.folds import Fold

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeldOutClasses:
    """Probabilities (rows, classes) of source rows, the class index of each, and those of target rows."""

    source: Floats
    y: NDArray[np.intp]
    target: Floats
    target_rows: Rows
    """Which row of the target each is."""


def held_out_classes(
    model: OpenSetClassifier, X: NDArray[np.floating], y: NDArray[np.generic], X_target: NDArray[np.floating]
) -> HeldOutClasses | None:
    """What a model fitted on these rows says of those it held out; None where it could hold out none.

    Source rows that no member was trained on are judged by the whole model. Where each member held out rows of
    its own (cross-fitting) it judges these, of the target too: a threshold on confidence means the same in both
    only if single members judge both. Needs the integer ``random_state`` of the fit.
    """
    labels = as_labels(y)
    index = np.searchsorted(model.classes_, labels)
    calibration, folds, target_folds = model.held_out_rows(labels, len(X_target))
    source, target = model._scoring_rows(X), model._scoring_rows(X_target)
    if not any(np.isin(calibration, fold.train).any() for fold in folds):
        of_source, of_target = (
            softmax(model._outputs(rows)[0], axis=1) for rows in (source[calibration], target)
        )
        return HeldOutClasses(of_source, index[calibration], of_target, np.arange(len(target)))
    if not isinstance(model, NetworkClassifier) or any(map(_holds_none, [*folds, *target_folds])):
        return None
    held, held_target = (np.concatenate([fold.held for fold in part]) for part in (folds, target_folds))
    return HeldOutClasses(
        _by_own_member(model, source, folds),
        index[held],
        _by_own_member(model, target, target_folds),
        held_target,
    )


def _by_own_member(model: NetworkClassifier, rows: NDArray[np.floating], folds: list[Fold]) -> Floats:
    from openset.learn.batches import ScaledRows

    scaled = ScaledRows(rows, model.scaling_)
    return np.concatenate(
        [
            softmax(model._class_logits(model._head_outputs(scaled, fold.held))[member], axis=1)
            for member, fold in enumerate(folds)
        ]
    )


def _holds_none(fold: Fold) -> bool:
    return bool(np.isin(fold.held, fold.train).any())
