"""Cross-validation and grid search that split source and target separately and never use a target label.

scikit-learn's own tools have two traps here. ``GridSearchCV`` silently slices ``X_target`` by source indices if
both have the same number of rows. ``Pipeline`` passes ``X_target`` untransformed unless
``transform_input=["X_target"]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from openset._utils.arrays import as_labels, as_rows
from openset._utils.params import check_choice, check_integer
from openset._utils.progress import progress_bar
from openset.stats.selection import bounded_recall
from openset.stats.thresholds import share_above

Scorer = Callable[[Any, Any, NDArray[Any], Any], float]
"""``scorer(model, X, y, X_target)`` on test rows of both domains; higher is better."""


def split_by_domain(X: Any, y: ArrayLike, sample_domain: ArrayLike) -> tuple[Any, NDArray[Any], Any]:
    """Source rows, their labels and target rows, from data in skada's convention.

    skada stacks both domains. ``sample_domain`` is positive for source rows and negative for target rows. The
    entries of ``y`` for target rows are ignored.

    >>> X, y, X_target = split_by_domain([[1.0], [2.0], [3.0]], [0, 1, -1], [1, 1, -2])
    >>> y.tolist(), len(X_target)
    ([0, 1], 1)
    """
    domain, labels = np.asarray(sample_domain), as_labels(y)
    if domain.ndim != 1 or len(domain) != len(labels):
        raise ValueError(
            f"sample_domain has shape {domain.shape} but y has {len(labels)} labels: expected one entry per row."
        )
    if domain.dtype.kind not in "iuf" or (domain == 0).any():
        raise ValueError(
            "sample_domain must have positive numbers for source rows, negative ones for target rows."
        )
    source, target = np.flatnonzero(domain > 0), np.flatnonzero(domain < 0)
    if not len(source) or not len(target):
        raise ValueError(
            f"sample_domain marks {len(source)} source and {len(target)} target rows: both are needed."
        )
    rows = np.asarray(X) if isinstance(X, list) else X
    return _safe_indexing(rows, source), labels[source], _safe_indexing(rows, target)


def known_accuracy(model: Any, X: Any, y: NDArray[Any], X_target: Any) -> float:
    """Accuracy of ``predict_known`` on source test rows."""
    return float((model.predict_known(X) == y).mean())


def source_specificity(model: Any, X: Any, y: NDArray[Any], X_target: Any) -> float:
    """Share of source test rows that are not called novel."""
    return 1 - share_above(model.novelty_score(X), model.threshold_)


def target_recall(model: Any, X: Any, y: NDArray[Any], X_target: Any) -> float:
    """Share of target test rows that are called novel."""
    return share_above(model.novelty_score(X_target), model.threshold_)


def separated_mass(model: Any, X: Any, y: NDArray[Any], X_target: Any) -> float:
    """Share of target test rows that the score separates from source, beyond a tenfold background shift.

    See :func:`openset.stats.selection.bounded_recall`. It needs no target label, so it is the default for
    choosing parameters.
    """
    return bounded_recall(model.novelty_score(X), model.novelty_score(X_target))


SCORERS: dict[str, Scorer] = {
    "separated_mass": separated_mass,
    "known_accuracy": known_accuracy,
    "source_specificity": source_specificity,
    "target_recall": target_recall,
}


@dataclass(frozen=True)
class DomainSplit:
    """Indices of source and target rows for fitting and for testing."""

    source_train: NDArray[np.intp]
    source_test: NDArray[np.intp]
    target_train: NDArray[np.intp]
    target_test: NDArray[np.intp]


def split_domains(
    y: ArrayLike, n_target: int, *, n_splits: int = 5, random_state: Any = None
) -> Iterator[DomainSplit]:
    """Folds of source, stratified by class, and folds of target, drawn independently."""
    labels = as_labels(y)
    check_integer("n_splits", n_splits, low=2)
    smallest = min(np.unique(labels, return_counts=True)[1].min(), n_target)
    if smallest < n_splits:
        raise ValueError(
            f"n_splits={n_splits} needs at least {n_splits} rows of every class and of target; "
            f"the smallest has {smallest}."
        )
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=2)
    source = StratifiedKFold(n_splits, shuffle=True, random_state=int(seeds[0]))
    target = KFold(n_splits, shuffle=True, random_state=int(seeds[1]))
    rows = np.zeros((len(labels), 1))
    for (s_train, s_test), (t_train, t_test) in zip(
        source.split(rows, labels), target.split(np.zeros((n_target, 1))), strict=True
    ):
        yield DomainSplit(s_train, s_test, t_train, t_test)


def cross_validate_open_set(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    X_target: Any,
    *,
    cv: int = 5,
    scoring: str | Scorer | Sequence[str] = tuple(SCORERS),
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Scores on test rows of source and target: for every scorer an array with one value per fold.

    Source and target are split separately: no fold slices target by source indices.
    """
    scorers = _resolve(scoring)
    rows, labels, target = as_rows(X, "X"), as_labels(y), as_rows(X_target, "X_target")
    splits = list(split_domains(labels, _n_rows(target), n_splits=cv, random_state=random_state))
    results = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(clone(estimator), rows, labels, target, split, scorers) for split in splits
    )
    return {name: np.array([result[name] for result in results]) for name in scorers}


def _fit_and_score(
    model: Any, X: Any, y: NDArray[Any], X_target: Any, split: DomainSplit, scorers: Mapping[str, Scorer]
) -> dict[str, float]:
    model.fit(
        _safe_indexing(X, split.source_train),
        y[split.source_train],
        X_target=_safe_indexing(X_target, split.target_train),
    )
    test = (
        _safe_indexing(X, split.source_test),
        y[split.source_test],
        _safe_indexing(X_target, split.target_test),
    )
    return {name: scorer(model, *test) for name, scorer in scorers.items()}


def _resolve(scoring: str | Scorer | Sequence[str]) -> dict[str, Scorer]:
    if callable(scoring):
        return {"score": scoring}
    names = [scoring] if isinstance(scoring, str) else list(scoring)
    for name in names:
        check_choice("scoring", name, SCORERS)
    return {name: SCORERS[name] for name in names}


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _has(name: str) -> Callable[[Any], bool]:
    return lambda search: hasattr(search.estimator, name)


class OpenSetGridSearch(MetaEstimatorMixin, BaseEstimator):
    """Score every combination of parameters with :func:`cross_validate_open_set`, and refit the best.

    Parameters
    ----------
    estimator : the open-set method to tune
    param_grid : lists of values by parameter name, as in scikit-learn
    scoring : a name in ``SCORERS``, or ``scorer(model, X, y, X_target)``; target labels are never passed
    cv : number of folds
    random_state : seed of the folds
    n_jobs : number of parallel fits
    verbose : whether to show a progress bar

    Attributes
    ----------
    best_params_, best_score_ : the best combination and its mean score
    best_estimator_ : the estimator refitted with ``best_params_`` on all rows
    cv_results_ : parameters and scores of every combination

    Examples
    --------
    >>> from openset import SourceOnly, make_background_shift
    >>> data = make_background_shift(n_source=300, n_target=300, random_state=0)
    >>> search = OpenSetGridSearch(
    ...     SourceOnly(max_steps=50, random_state=0, fpr=0.1), {"hidden": [1, 32]}, cv=2, scoring="known_accuracy"
    ... )
    >>> search.fit(data.X, data.y, data.X_target).best_params_
    {'hidden': 32}
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: str | Scorer = "separated_mass",
        cv: int = 5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, X_target: Any) -> Self:
        """Score every combination, then refit the best one on all rows."""
        candidates = list(ParameterGrid(self.param_grid))
        scores = []
        with progress_bar("grid search", enabled=bool(self.verbose)) as update:
            for done, parameters in enumerate(candidates, start=1):
                result = cross_validate_open_set(
                    clone(self.estimator).set_params(**parameters),
                    X,
                    y,
                    X_target,
                    cv=self.cv,
                    scoring=self.scoring,
                    random_state=self.random_state,
                    n_jobs=self.n_jobs,
                )
                scores.append(next(iter(result.values())))
                update(done, len(candidates), f"{scores[-1].mean():.3f}")
        means = np.array([score.mean() for score in scores])
        best = int(means.argmax())
        self.cv_results_ = {
            "params": candidates,
            "mean_test_score": means,
            "std_test_score": np.array([score.std() for score in scores]),
            "split_test_score": np.array(scores),
        }
        self.best_params_, self.best_score_ = candidates[best], float(means[best])
        self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_).fit(X, y, X_target=X_target)
        self.classes_ = self.best_estimator_.classes_
        return self

    @available_if(_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """Labels by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_has("predict_known"))  # type: ignore[untyped-decorator]
    def predict_known(self, X: Any) -> NDArray[Any]:
        """Closed-set labels by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_known(X)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_has("novelty_score"))  # type: ignore[untyped-decorator]
    def novelty_score(self, X: Any) -> NDArray[np.float64]:
        """Novelty scores by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.novelty_score(X)
