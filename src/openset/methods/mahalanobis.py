"""Mahalanobis distance: the distance of a row from the nearest class, in units of the spread within classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist
from sklearn.covariance import empirical_covariance, ledoit_wolf_shrinkage, shrunk_covariance

from openset._utils.params import check_choice, check_number, takes_parameters_of
from openset.base import OpenSetClassifier
from openset.methods._presets import PRESETS
from openset.problem import Problem, State
from openset.stats.scaling import fit_scaling, scale_in_double

_LEAST_VARIANCE = 1e-8
"""Share of the mean variance added in every direction, because with shrinkage 0 Σ can be singular."""


class Mahalanobis(OpenSetClassifier):
    """Squared Mahalanobis distance to the nearest class mean, with one covariance for all classes.

    With class means μ_c and the pooled covariance Σ within classes, shrunk towards equal variances, d²_c(x) =
    (x − μ_c)ᵀ Σ⁻¹ (x − μ_c). The score is min_c d²_c and the class logits are −½ d²_c. It assumes that classes
    are Gaussian with one covariance. It is then optimal without target rows, and uses differences along
    directions in which source varies little. A new class between distant subtypes of a known class gets the
    lowest score, because the class mean lies there. Nothing is trained and target rows are not used.

    Parameters
    ----------
    shrinkage : share of Σ that is a multiple of the identity. None uses Ledoit and Wolf's, which is safe with few
        rows but can hide a new class along a narrow direction; 0 is the authors' plain covariance, for many
        more rows than features
    standardize : "global" (one scale, for embeddings), "feature" (unit variance, for tables), "auto", or None;
        computed from source rows only. It has an effect only through the shrinkage towards equal variances
    fpr, validation_fraction, novel_label, random_state : as for every method; source validation rows are used for
        the threshold only

    The attributes are those of :class:`~openset.base.OpenSetClassifier` and:

    Attributes
    ----------
    whitening_ : W with W Wᵀ = Σ⁻¹
    means_ : the whitened class means
    shrinkage_ : the shrinkage used
    scaling_ : how features are centred and scaled

    References
    ----------
    Lee, Lee, Lee and Shin (2018), A simple unified framework for detecting out-of-distribution samples and
    adversarial attacks.

    Examples
    --------
    >>> from openset import Mahalanobis, make_background_shift
    >>> data = make_background_shift(n_features=20, shift=False, random_state=0)
    >>> model = Mahalanobis(random_state=0).fit(data.X, data.y, data.X_target)
    >>> bool((model.predict_known(data.X_test) == data.y_test)[~data.is_novel_test].mean() > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["mahalanobis"]

    @takes_parameters_of(OpenSetClassifier)
    def __init__(
        self, *, shrinkage: float | None = None, standardize: str | None = "auto", **shared: Any
    ) -> None:
        super().__init__(**shared)
        self.shrinkage = shrinkage
        self.standardize = standardize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("shrinkage", self.shrinkage, high=1, optional=True)
        check_choice("standardize", self.standardize, ("auto", "global", "feature", None))

    def _fit(self, problem: Problem) -> State:
        scaling, kept = fit_scaling(problem.source_moments, None, self.standardize), problem.split.folds[0].train
        rows, y = scale_in_double(scaling, problem.X[kept]), problem.y[kept]
        means = np.stack([rows[y == c].mean(axis=0) for c in range(problem.n_classes)])
        covariance, shrinkage = within_covariance(rows - means[y], self.shrinkage)
        lower = cholesky(covariance, lower=True)
        whitening = np.ascontiguousarray(solve_triangular(lower, np.eye(len(lower)), lower=True).T)
        return {
            "scaling_": scaling,
            "shrinkage_": shrinkage,
            "whitening_": whitening,
            "means_": _whitened(means, whitening),
        }

    def _outputs(self, rows: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        whitened = _whitened(scale_in_double(self.scaling_, rows), self.whitening_)
        squared = cdist(whitened, self.means_, "sqeuclidean")
        return -squared / 2, squared.min(axis=1)


def _whitened(scaled: NDArray[np.floating], whitening: NDArray[np.float64]) -> NDArray[np.float64]:
    # one product for each row: in a product of matrices the rounding of a row depends on the other rows
    return np.matmul(scaled[:, None, :], whitening)[:, 0, :]


def within_covariance(
    residuals: NDArray[np.float64], shrinkage: float | None = None
) -> tuple[NDArray[np.float64], float]:
    """Return the shrunk covariance of rows around their class means, never singular, and the shrinkage.

    It is the identity if no row differs from its class mean, because the spread is then unknown.
    """
    n_features = residuals.shape[1]
    if not residuals.any():
        return np.eye(n_features), 1.0
    plain = empirical_covariance(residuals, assume_centered=True)
    taken = float(ledoit_wolf_shrinkage(residuals, assume_centered=True) if shrinkage is None else shrinkage)
    least = _LEAST_VARIANCE * np.trace(plain) / n_features
    return shrunk_covariance(plain, taken) + least * np.eye(n_features), taken
