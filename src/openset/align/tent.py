"""Test-time adaptation of known classes by entropy, after TENT: features are rescaled on the target."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from openset._utils.params import check_integer, check_number
from openset._utils.text import listed

Floats = NDArray[np.float64]


class Tent(ClassifierMixin, BaseEstimator):
    """A linear classifier whose features are rescaled so that it is sure of the target rows.

    It is fitted on standardised source rows. On unlabelled target rows, features are standardised by the target's
    own moments, then a scale and an offset of every feature are learned by descent on the mean entropy of the
    predicted classes. The classifier itself does not change. Without target rows it is logistic regression.

    For ``CoLOR(classifier=Tent())``: it takes ``sample_domain`` as skada's estimators do, negative for target
    rows, and then never sees rows that are called novel. It assumes that the known classes moved together, and
    that most target rows are classified correctly before: entropy makes a wrong majority surer. Where class
    shares changed, standardising by the target's moments alone can do harm; compare top-1 by ``evaluate`` on
    labelled rows before you rely on it.

    Parameters
    ----------
    steps : steps of descent on all target rows; 0 only standardises by the target
    learning_rate : of Adam
    C : inverse strength of the regularisation of the logistic regression

    Attributes
    ----------
    scale_, offset_ : of the standardised features
    entropy_ : mean entropy of the target rows before and after; None without target rows

    References
    ----------
    Wang, Shelhamer, Liu, Olshausen and Darrell (2021), Tent: fully test-time adaptation by entropy minimization.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X, y = random.normal(size=(400, 2)), np.repeat([0, 1], 200)
    >>> X[:, 0] += 5 * y
    >>> both, labels = np.concatenate([X, X + 4]), np.concatenate([y, np.full(400, -1)])
    >>> model = Tent().fit(both, labels, sample_domain=np.repeat([1, -2], 400))
    >>> bool(model.score(X + 4, y) > 0.95), bool(Tent().fit(X, y).score(X + 4, y) < 0.8)
    (True, True)
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    """In a pipeline it adapts too: scikit-learn hands ``sample_domain`` to the steps that ask for it."""

    def __init__(self, *, steps: int = 20, learning_rate: float = 0.02, C: float = 1.0) -> None:
        self.steps = steps
        self.learning_rate = learning_rate
        self.C = C

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Fit on rows of positive ``sample_domain`` and their labels, and adapt to those of negative ones."""
        check_integer("steps", self.steps, low=0)
        check_number("learning_rate", self.learning_rate, open_low=True)
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        domain = np.ones(len(rows)) if sample_domain is None else _domains(sample_domain, len(rows))
        source, target = rows[domain > 0], rows[domain < 0]
        if not len(source):
            raise ValueError("sample_domain has no positive entry: the classifier needs labelled source rows.")
        self.mean_, self.spread_ = _moments(source)
        self.linear_ = LogisticRegression(C=self.C, max_iter=1000)
        self.linear_.fit((source - self.mean_) / self.spread_, labels[domain > 0])
        self.classes_ = self.linear_.classes_
        self.scale_, self.offset_ = np.ones(rows.shape[1]), np.zeros(rows.shape[1])
        self.entropy_: tuple[float, float] | None = None
        if len(target) > 1:
            self.mean_, self.spread_ = _moments(target)
            self._adapt((target - self.mean_) / self.spread_)
        return self

    def _adapt(self, Z: Floats) -> None:
        """Adam on the mean entropy over scale and offset."""
        first, second = np.zeros((2, Z.shape[1])), np.zeros((2, Z.shape[1]))
        before = self._entropy(Z)[0]
        for step in range(1, self.steps + 1):
            gradient = self._entropy(Z)[1]
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            rate = self.learning_rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            move = rate * first / (np.sqrt(second) + 1e-8)
            self.scale_, self.offset_ = self.scale_ - move[0], self.offset_ - move[1]
        self.entropy_ = (before, self._entropy(Z)[0])

    def _entropy(self, Z: Floats) -> tuple[float, Floats]:
        """Mean entropy of the predicted classes, and its gradient by scale and offset, (2, features)."""
        log_p = self._log_proba(Z)
        p = np.exp(log_p)
        entropy = -(p * log_p).sum(axis=1)
        by_logit = -p * (log_p + entropy[:, None]) / len(Z)
        by_feature = by_logit @ self._weights()
        return float(entropy.mean()), np.stack([(by_feature * Z).sum(axis=0), by_feature.sum(axis=0)])

    def _weights(self) -> Floats:
        """Weights by class; two classes have one logit, whose other is zero."""
        found: Floats = self.linear_.coef_
        return found if len(self.classes_) > 2 else np.concatenate([np.zeros_like(found), found])

    def _log_proba(self, Z: Floats) -> Floats:
        logits = self.linear_.decision_function(Z * self.scale_ + self.offset_)
        both = logits if logits.ndim == 2 else np.stack([np.zeros_like(logits), logits], axis=1)
        found: Floats = log_softmax(both, axis=1)
        return found

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, for rows of the target."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.exp(self._log_proba((rows - self.mean_) / self.spread_))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of every row."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]


def _domains(sample_domain: Any, n_rows: int) -> NDArray[Any]:
    """skada's domains: positive numbers for source rows, negative ones for target rows."""
    domain = np.asarray(sample_domain)
    if domain.shape != (n_rows,):
        raise ValueError(f"sample_domain has shape {domain.shape}: expected a number for each of {n_rows} rows.")
    wrong = [value for value in domain.tolist() if not isinstance(value, (int, float)) or not abs(value) > 0]
    if wrong:
        raise ValueError(
            f"sample_domain has {listed(map(repr, wrong))}: expected a positive number for each source row and a "
            "negative one for each target row."
        )
    return domain


def _moments(rows: Floats) -> tuple[Floats, Floats]:
    spread = rows.std(axis=0)
    return rows.mean(axis=0), np.where(spread > 0, spread, 1.0)
