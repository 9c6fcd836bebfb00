"""Nearest neighbours: the distance of a row from the nearest source rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize as to_unit_length

from openset._utils.params import check_choice, check_flag, check_integer, takes_parameters_of
from openset.base import OpenSetClassifier
from openset.methods._presets import PRESETS
from openset.problem import Problem, State
from openset.stats.neighbours import nearest_rows
from openset.stats.scaling import Scaling, fit_scaling, scale_in_double

_CLOSEST = 1e-9
"""Smaller distances are replaced by this before taking their logarithm."""


class KNN(OpenSetClassifier):
    """Distance to the k-th nearest source row; known classes by the k nearest rows' votes.

    It assumes that distances in feature space are meaningful: on embeddings they often are, on many unrelated
    columns they are not. New rows must lie away from all source rows; a known subtype that is rare in source
    looks partly new. Nothing is trained and target rows are not used, so a fit takes no time. In return, the
    model stores and searches all source rows.

    Parameters
    ----------
    n_neighbors : k, for score and votes, scikit-learn's default; at most the number of source rows searched.
        The authors use 50 and more for tens of thousands of rows
    distance : "kth" for the distance to the k-th neighbour, "mean_log" for the mean logarithm of all k distances,
        which follows the log density more closely and depends less on the scale of distances
    normalize : divide scaled rows by their length, as the authors do with deep features
    standardize : "global" (one scale, for embeddings), "feature" (unit variance, for tables), "auto", or None;
        computed from source rows only
    fpr, validation_fraction, novel_label, random_state : as for every method; source validation rows are used for
        the threshold only

    The attributes are those of :class:`~openset.base.OpenSetClassifier` and:

    Attributes
    ----------
    rows_, row_classes_ : the source rows searched, scaled, and their classes as indices into ``classes_``
    scaling_ : how features are centred and scaled

    References
    ----------
    Sun, Ming, Zhu and Li (2022), Out-of-distribution detection with deep nearest neighbors.

    Examples
    --------
    >>> from openset import KNN, make_background_shift
    >>> data = make_background_shift(n_features=20, shift=False, random_state=0)
    >>> model = KNN(random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.95)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["knn"]

    @takes_parameters_of(OpenSetClassifier)
    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        distance: str = "kth",
        normalize: bool = False,
        standardize: str | None = "auto",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.n_neighbors = n_neighbors
        self.distance = distance
        self.normalize = normalize
        self.standardize = standardize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_neighbors", self.n_neighbors)
        check_choice("distance", self.distance, ("kth", "mean_log"))
        check_flag("normalize", self.normalize)
        check_choice("standardize", self.standardize, ("auto", "global", "feature", None))

    def _fit(self, problem: Problem) -> State:
        scaling, kept = fit_scaling(problem.source_moments, None, self.standardize), problem.split.folds[0].train
        return {
            "scaling_": scaling,
            "rows_": self._scaled(problem.X[kept], scaling),
            "row_classes_": problem.y[kept],
        }

    def _scaled(self, rows: NDArray[np.floating], scaling: Scaling) -> NDArray[np.float64]:
        scaled = scale_in_double(scaling, rows)
        return np.ascontiguousarray(to_unit_length(scaled) if self.normalize else scaled)

    def _outputs(self, rows: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        k = min(self.n_neighbors, len(self.rows_))
        distances, neighbours = nearest_rows(self.rows_, self._scaled(rows, self.scaling_), k)
        logits = vote_logits(self.row_classes_[neighbours], len(self.classes_))
        return logits, distances[:, -1] if self.distance == "kth" else mean_log_distance(distances)


def vote_logits(votes: NDArray[np.intp], n_classes: int) -> NDArray[np.float64]:
    """Return logarithms of vote shares, after adding one vote that all classes share.

    >>> np.exp(vote_logits(np.array([[0, 0, 1]]), 2))
    array([[0.625, 0.375]])
    """
    n_rows, n_votes = votes.shape
    cells = votes + n_classes * np.arange(n_rows)[:, None]
    counts = np.bincount(cells.ravel(), minlength=n_rows * n_classes).reshape(n_rows, n_classes)
    return np.log((counts + 1 / n_classes) / (n_votes + 1))


def mean_log_distance(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean logarithm of the distances (n, k) to the nearest rows; finite also for a distance of 0."""
    return np.log(np.maximum(distances, _CLOSEST)).mean(axis=1)
