"""Offsets of classes: target rows that look like a known class move to the source rows of that class."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.align.base import MAX_GATE_COMPONENTS, Offsets, Rows, check_classes, check_rows
from openset.stats.components import find_components


@dataclass(frozen=True)
class ClassOffsets:
    """Move target rows by the offset between their predicted known class in source and in target.

    A linear classifier of the source classes predicts the class of each target row. The offset of a class is its
    centre in source minus its centre in target. Both are repeated. The logit of class c is then taken where the
    row would be if it moved by the offset of c, so the prediction stays linear in the row as it came. Rows of a
    new class move along with the known class that they resemble most, and stay apart from it.

    Parameters
    ----------
    n_iterations : at most this many predictions; fewer if none changes.
    min_rows : a class that is predicted for fewer target rows takes the offset between all rows of both domains.
    kept : the centre of a class is the mean of this share of its rows, those nearest to its median. Rows of a new
        class that are predicted as a known one would pull its mean.
    seed : of the principal components in which classes are predicted.
    """

    n_iterations: int = 5
    min_rows: int = 10
    kept: float = 0.8
    seed: int = 0
    name = "classes"

    def fit(self, X: Any, X_target: Any, y: Any = None) -> Offsets:
        """Return one offset for each known class, and the linear classifier that tells which one a row gets."""
        X, X_target = check_rows(X, X_target)
        classes = check_classes(y, len(X))
        components = find_components(X, X_target, MAX_GATE_COMPONENTS, seed=self.seed)
        points, target_points = components.of(X), components.of(X_target)
        weights, intercept = _linear_classifier(points, classes)
        known = range(len(intercept))
        centres = [self._centre(X, points, classes == c) for c in known]
        overall = X.mean(axis=0) - X_target.mean(axis=0)

        moved_intercept, before = intercept, None
        for _ in range(self.n_iterations):
            predicted = (target_points @ weights + moved_intercept).argmax(axis=1)
            if before is not None and np.array_equal(predicted, before):
                break
            enough = np.bincount(predicted, minlength=len(known)) >= self.min_rows
            offsets = np.stack(
                [
                    centres[c] - self._centre(X_target, target_points, predicted == c) if enough[c] else overall
                    for c in known
                ]
            )
            gate = moved_intercept
            moved_intercept = intercept + np.einsum("ck,kc->c", offsets @ components.axes, weights)
            before = predicted
        return Offsets(self.name, components.centre, components.axes @ weights, gate, offsets, hard=True)

    def _centre(self, rows: Rows, points: Rows, chosen: NDArray[np.bool_]) -> Rows:
        """The mean of the chosen rows that are nearest to their median in the principal components."""
        distances = ((points[chosen] - np.median(points[chosen], axis=0)) ** 2).sum(axis=1)
        n = max(1, int(self.kept * len(distances)))
        return np.asarray(rows[chosen][np.argsort(distances, kind="stable")[:n]].mean(axis=0))


def _linear_classifier(points: Rows, classes: NDArray[np.intp]) -> tuple[Rows, Rows]:
    """Weights (columns, classes) and intercepts (classes,) of a softmax classifier."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if classes.max() == 0:
        return np.zeros((points.shape[1], 1)), np.zeros(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a nearly optimal classifier is as good
        model = LogisticRegression(C=0.1, max_iter=200).fit(points, classes)
    weights, intercept = model.coef_.T, model.intercept_
    if len(intercept) == 1:  # of two classes scikit-learn returns the difference
        weights, intercept = np.concatenate([-weights, weights], axis=1) / 2, np.array([-0.5, 0.5]) * intercept
    return np.asarray(weights), np.asarray(intercept)
