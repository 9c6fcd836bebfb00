"""SAR-EM: PU learning where some known rows are more likely to be in source than others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from openset._utils.arrays import make_records
from openset._utils.params import check_choice, check_flag, check_integer, check_number, takes_parameters_of
from openset.base import OpenSetClassifier
from openset.methods._presets import PRESETS
from openset.problem import FitScores, Problem, State
from openset.stats.scaling import Scaling, fit_scaling
from openset.stats.scores import msp_score

WINDOW = 10
SETTLED = 1e-4
SMALLEST = 1e-8
SMALLEST_PROPENSITY = 0.01

Array = NDArray[np.float64]


class SAREM(OpenSetClassifier):
    """Logistic regressions f(x) = P(known | x) and e(x) = P(source | known, x), fitted together by EM.

    Source rows (s = 1) are known; a target row (s = 0) is known with probability w, from the E-step

        w = s + (1 − s)·f·(1 − e) / (1 − f·e)

    and the M-step fits e to s with weights w, and f to "known" with weights w against "novel" with 1 − w. The
    score is −logit f, 1 − f on the logit scale. A logistic regression on source separates the known classes.
    It assumes that source rows are *selected at random given x*, which allows for a background shift, and that
    f and e are identified: if both may depend on all columns, only their starting points separate them. Use it
    with few columns, or where the shift is known to act on some of them (``propensity_features``).

    Parameters
    ----------
    propensity_features : columns that e may depend on; None for all
    refit : fit f once more at the end, weighted by inverse propensities, as the authors do; on 12 synthetic
        problems it lowered the AUROC in 7 and raised it in 2
    C : inverse strength of the L2 penalty of all regressions
    max_steps : largest number of EM rounds
    fpr : share of source rows that may be called novel
    validation_fraction : share of rows that are not trained on, for the threshold and the novel share
    standardize : "global" (one scale, for embeddings), "feature" (unit variance, for tables), "auto", or None
    novel_label : label of the new class; None for -1 (numbers) or "novel" (strings)
    random_state : seed of the split into training and validation rows

    The attributes are those of :class:`~openset.base.OpenSetClassifier` and:

    Attributes
    ----------
    known_, propensity_ : coefficients of f and e, the intercept last
    class_weights_ : coefficients of the known classes, the intercept last
    history_ : the log-likelihood and the mean propensity of target rows after every round
    n_steps_ : number of rounds

    References
    ----------
    Bekker, Robberechts and Davis (2019), Beyond the selected completely at random assumption for learning from
    positive and unlabeled data.

    Examples
    --------
    >>> from openset import SAREM, make_background_shift
    >>> data = make_background_shift(n_features=20, shift=False, random_state=0)
    >>> model = SAREM(max_steps=20, random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["sar_em"]

    @takes_parameters_of(OpenSetClassifier)
    def __init__(
        self,
        *,
        propensity_features: Sequence[int] | None = None,
        refit: bool = True,
        C: float = 1.0,
        max_steps: int = 500,
        standardize: str | None = "auto",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.propensity_features = propensity_features
        self.refit = refit
        self.C = C
        self.max_steps = max_steps
        self.standardize = standardize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        columns = self.propensity_features
        if columns is not None:
            if isinstance(columns, str) or not np.iterable(columns) or not len(list(columns)):
                raise ValueError(
                    f"propensity_features={columns!r} is not valid: expected column numbers such as (0, 3) "
                    "or None."
                )
            for column in columns:
                check_integer("propensity_features entry", column, low=0)
        check_flag("refit", self.refit)
        check_number("C", self.C, open_low=True)
        check_integer("max_steps", self.max_steps)
        check_choice("standardize", self.standardize, ("auto", "global", "feature", None))

    # ------------------------------------------------------------------ fitting

    def _fit(self, problem: Problem) -> State:
        scaling = fit_scaling(problem.source_moments, problem.target_moments, self.standardize)
        train = problem.split.folds[0].train
        source = _scaled(scaling, problem.X[train])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # EM does not need exact rounds
            state = {
                "scaling_": scaling,
                "class_weights_": self._fit_classes(source, problem.y[train], problem.n_classes),
            }
            if problem.X_target is not None:
                target = problem.X_target[problem.split.target_folds[0].train]
                state |= self._fit_em(source, _scaled(scaling, target))
        return state

    def _fit_classes(self, rows: Array, y: NDArray[np.intp], n_classes: int) -> Array:
        if n_classes == 1:
            return np.zeros((1, rows.shape[1] + 1))
        model = LogisticRegression(C=self.C, max_iter=1000).fit(rows, y)
        weights: Array = np.column_stack([model.coef_, model.intercept_])
        return weights if n_classes > 2 else np.concatenate([np.zeros_like(weights), weights])

    def _fit_em(self, source: Array, target: Array) -> State:
        x = np.concatenate([source, target])
        s = (np.arange(len(x)) < len(source)).astype(np.float64)
        columns = list(range(x.shape[1])) if self.propensity_features is None else list(self.propensity_features)
        if max(columns) >= x.shape[1]:
            raise ValueError(f"propensity_features={columns} is not valid: X has {x.shape[1]} columns.")
        known = _Regression(x, self.C)
        propensity = _Regression(x[:, columns], self.C)
        doubled = _Regression(np.concatenate([x, x]), self.C)
        is_known = np.repeat([1.0, 0.0], len(x))

        share = s.mean()
        f = known.fit(s, s * (1 - share) + (1 - s) * share)
        e = propensity.fit(s, s + (1 - s) * f)
        doubled.weights = known.weights
        rounds: list[tuple[float, float]] = []
        seen: list[Array] = []
        for _ in range(self.max_steps):
            w = expected_known(f, e, s)
            e = propensity.fit(s, w)
            f = doubled.fit(is_known, np.concatenate([w, 1 - w]))[: len(x)]
            rounds.append((log_likelihood(f, e, s), float(e[s == 0].mean())))
            seen = [*seen[-WINDOW + 1 :], e[s == 0]]
            if _settled([r[0] for r in rounds], seen):
                break
        if self.refit:
            inverse = s / np.maximum(e, SMALLEST_PROPENSITY)
            doubled.fit(is_known, np.concatenate([inverse, (1 - s) + s - inverse]))
        weights = np.zeros(x.shape[1] + 1)
        weights[[*columns, -1]] = propensity.weights
        likelihood, mean = np.array(rounds).T
        return {
            "known_": doubled.weights,
            "propensity_": weights,
            "n_steps_": len(rounds),
            "history_": make_records({"log_likelihood": likelihood, "target_propensity": mean}),
        }

    def _score_fit(self, problem: Problem) -> FitScores:
        scores = super()._score_fit(problem)
        if problem.X_target is None:
            return scores
        fold, own = problem.split.target_folds[0], np.full(len(problem.X_target), np.nan)
        if not np.array_equal(fold.validation, fold.train):  # else there were too few rows for validation
            own[fold.validation] = scores.target_score[fold.validation]
        return replace(scores, target_validation_score=own)

    # ------------------------------------------------------------------ scoring

    def _outputs(self, rows: NDArray[np.floating]) -> tuple[Array, Array]:
        x = _scaled(self.scaling_, rows)
        logits = x @ self.class_weights_[:, :-1].T + self.class_weights_[:, -1]
        if not self.n_target_:
            return logits, msp_score(logits)
        return logits, -(x @ self.known_[:-1] + self.known_[-1])


def _scaled(scaling: Scaling, rows: NDArray[np.floating]) -> Array:
    return scaling.apply(rows.astype(np.float64)).astype(np.float64, copy=False)


def expected_known(f: ArrayLike, e: ArrayLike, s: ArrayLike) -> Array:
    """E-step: return the probability that a row is known, from f = P(known | x), e = P(source | known, x) and s.

    >>> float(expected_known(0.6, 0.5, 0.0).round(6))
    0.428571
    """
    known, propensity, labelled = (np.asarray(v, dtype=np.float64) for v in (f, e, s))
    if_target = known * (1 - propensity) / np.maximum(1 - known * propensity, SMALLEST)
    return np.asarray(labelled + (1 - labelled) * if_target)


def log_likelihood(f: Array, e: Array, s: Array) -> float:
    """Return the expected log-likelihood of s, averaged over rows; probabilities are at least 1e-8."""

    def log(p: Array) -> Array:
        return np.log(np.maximum(p, SMALLEST))

    q = expected_known(f, e, np.zeros_like(s))
    of_target = q * log(f * (1 - e)) + (1 - q) * log(1 - f)
    return float((s * log(f * e) + (1 - s) * of_target).mean())


def _settled(likelihoods: list[float], propensities: list[Array]) -> bool:
    """Whether, over the window, target propensities no longer change and the likelihood no longer grows."""
    if len(likelihoods) <= WINDOW or len(propensities) < WINDOW:
        return False
    time = np.arange(WINDOW) - (WINDOW - 1) / 2
    slopes = time @ np.array(propensities) / (time @ time)
    gain = max(likelihoods[-WINDOW:]) - max(likelihoods[:-WINDOW])
    return bool(np.abs(slopes).mean() < SETTLED and gain < SETTLED)


class _Regression:
    """A logistic regression that is fitted repeatedly on the same rows, each time from its last coefficients."""

    def __init__(self, rows: Array, C: float) -> None:
        self._rows = rows
        self._model = LogisticRegression(C=C, max_iter=200, warm_start=True)

    @property
    def weights(self) -> Array:
        """Coefficients, then the intercept."""
        return np.append(self._model.coef_[0], self._model.intercept_)

    @weights.setter
    def weights(self, values: Array) -> None:
        self._model.coef_, self._model.intercept_ = values[None, :-1], values[-1:]

    def fit(self, y: Array, sample_weight: Array) -> Array:
        """Fit, and return P(y = 1) of every row."""
        self._model.fit(self._rows, y, sample_weight)
        return np.asarray(expit(self._rows @ self.weights[:-1] + self.weights[-1]))
