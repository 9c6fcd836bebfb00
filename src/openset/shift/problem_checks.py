"""Can methods be judged on a problem? Two checks of its features.

- :func:`separability`: can a classifier that is given the labels tell the new class from the known ones?
- :func:`support_overlap`: does source have rows wherever known target rows lie?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_integer, check_number
from openset.stats.diagnostics import effective_sample_size
from openset.stats.metrics import auprc, auroc
from openset.stats.neighbours import share_outside

IDEAL = 0.98
"""Above this AUROC and AUPRC of an oracle, the paper's criterion, a method that misses the new class is to blame,
not the features."""


@dataclass(frozen=True)
class Separability:
    """How well a classifier trained with the true labels separates new from known rows, out of fold."""

    auroc: float
    auprc: float
    n_known: int
    n_novel: int

    @property
    def is_ideal(self) -> bool:
        """Whether AUROC and AUPRC are both above .98."""
        return self.auroc > IDEAL and self.auprc > IDEAL

    def describe(self) -> str:
        """Describe the result in one sentence."""
        verdict = (
            "the features separate the new class"
            if self.is_ideal
            else f"not both above {IDEAL}: no method can be expected to find all of the new class with these "
            "features"
        )
        return (
            f"A classifier that is given the labels ranks new above known rows with AUROC {self.auroc:.3f}, "
            f"AUPRC {self.auprc:.3f} ({self.n_novel} new, {self.n_known} known rows): {verdict}."
        )

    __str__ = describe


def separability(
    X_known: Any,
    X_novel: Any,
    *,
    X_source: Any = None,
    classifier: Any = None,
    folds: int = 5,
    random_state: int = 0,
) -> Separability:
    """Train a classifier of known against novel rows with the true labels, and score it out of fold.

    ``classifier`` is any scikit-learn classifier with ``predict_proba``; the default is a logistic regression on
    standardised features. A stronger one may find more. Remove copies of rows first. Rows of ``X_source`` are
    known too: they train the classifier but are not scored, so that AUPRC is at the novel share of the others.

    >>> random = np.random.default_rng(0)
    >>> known = random.normal(size=(300, 5))
    >>> separability(known, random.normal(size=(60, 5)) + 4).is_ideal
    True
    """
    check_integer("folds", folds, low=2)
    known, novel = _rows("X_known", X_known), _rows("X_novel", X_novel)
    X, is_novel = _stacked(known, novel, "X_known", "X_novel")
    if min(len(known), len(novel)) < folds:
        raise ValueError(
            f"{len(known)} known and {len(novel)} novel rows are too few for {folds} folds: each fold needs both."
        )
    scored = slice(0, len(X))
    if X_source is not None:
        X, _ = _stacked(X, _rows("X_source", X_source), "X_known", "X_source")
        is_novel = np.concatenate([is_novel, np.zeros(len(X) - len(is_novel), bool)])
    score = _out_of_fold(classifier, X, is_novel, folds, random_state)[scored]
    truth = is_novel[scored]
    return Separability(auroc(truth, score), auprc(truth, score), len(known), len(novel))


@dataclass(frozen=True)
class SupportOverlap:
    """How much of the known target rows lies where source has rows."""

    outside: float
    """Share of target rows farther from source than a share ``level`` of source rows is from each other."""
    level: float
    effective_size: float
    """The effective number of source rows under target-to-source density weights."""
    n_source: int
    n_target: int

    def describe(self) -> str:
        """Describe the result in two sentences."""
        return (
            f"{self.outside:.1%} of {self.n_target} target rows lie farther from source than "
            f"{self.level:.1%} of source rows lie from each other. Weighted to resemble the target, "
            f"{self.n_source} source rows count as {self.effective_size:.0f} "
            f"({self.effective_size / self.n_source:.0%})."
        )

    __str__ = describe


def support_overlap(
    X: Any,
    X_target: Any,
    *,
    n_neighbours: int = 5,
    level: float = 0.99,
    classifier: Any = None,
    folds: int = 5,
    random_state: int = 0,
) -> SupportOverlap:
    """Check that source has rows wherever *known* target rows lie; pass no rows of the new class.

    Features are scaled by their spread in source. Two numbers:

    - ``outside``: the share of target rows whose ``n_neighbours``-th nearest source row is farther than the
      quantile ``level`` of the same distance among source rows. Expect 1 − ``level`` where nothing is missing.
    - ``effective_size``: (Σw)²/Σw² of the density-ratio weights that an out-of-fold, calibrated discriminator of
      source and target assigns to source rows. It tells how uneven the shift is where both have rows. A
      discriminator that misses part of the shift overstates it; where subtypes are known,
      ``ShiftSplit.effective_size`` is exact.

    >>> random = np.random.default_rng(0)
    >>> X, X_target = random.normal(size=(400, 3)), random.normal(size=(200, 3))
    >>> found = support_overlap(X, X_target)
    >>> found.outside < 0.05, found.effective_size > 350
    (True, True)
    """
    check_integer("n_neighbours", n_neighbours)
    check_integer("folds", folds, low=2)
    check_number("level", level, high=1, open_low=True, open_high=True)
    source, target = _rows("X", X), _rows("X_target", X_target)
    both, is_target = _stacked(source, target, "X", "X_target")
    if len(source) <= n_neighbours or min(len(source), len(target)) < folds:
        raise ValueError(
            f"{len(source)} source and {len(target)} target rows are too few for {n_neighbours} neighbours "
            f"and {folds} folds."
        )
    spread = source.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    outside = share_outside(source / scale, target / scale, n_neighbours=n_neighbours, level=level)
    log_odds = _calibrated(_out_of_fold(classifier, both, is_target, folds, random_state), is_target)[~is_target]
    # a common factor of the weights does not matter; this one prevents overflow
    effective = effective_sample_size(np.exp(log_odds - log_odds.max()))
    return SupportOverlap(outside, float(level), effective, len(source), len(target))


def _rows(name: str, X: Any) -> NDArray[np.float64]:
    from sklearn.utils import check_array

    return check_array(X, dtype=np.float64, input_name=name)


def _stacked(
    first: NDArray[np.float64], second: NDArray[np.float64], name: str, other: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"{name} has {first.shape[1]} features and {other} {second.shape[1]}: expected the same."
        )
    return np.concatenate([first, second]), np.arange(len(first) + len(second)) >= len(first)


def _calibrated(log_odds: NDArray[np.float64], positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Rescale log-odds to be right out of fold: with many features they are overconfident."""
    from sklearn.linear_model import LogisticRegression

    scores = (log_odds / max(float(log_odds.std()), np.finfo(np.float64).tiny))[:, None]
    return LogisticRegression().fit(scores, positive).decision_function(scores)


def _out_of_fold(
    classifier: Any, X: NDArray[np.float64], positive: NDArray[np.bool_], folds: int, random_state: int
) -> NDArray[np.float64]:
    """Log-odds of every row to be positive, from a classifier that was not trained on it."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = (
        classifier
        if classifier is not None
        else make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    )
    stratified = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    probability = cross_val_predict(model, X, positive, cv=stratified, method="predict_proba")[:, 1]
    tiny = np.finfo(np.float64).tiny
    return np.log(np.maximum(probability, tiny)) - np.log(np.maximum(1 - probability, tiny))
