"""The scored table: what a model says of each row, and which rows to list at a false discovery rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_choice
from openset.problem import Predictions
from openset.stats.p_values import benjamini_hochberg, conformal_p_values

_OWN = ("id", "predicted", "novelty_score", "p_value", "p_novel", "nearest_known")


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """One row for each row scored, in order.

    ``p_value`` is the conformal rank of the score among validation rows of the *source*: small where hardly any
    source row scores as high. ``probabilities`` has a column for each known class and, last, for "novel".
    ``novel_at_fdr``, where a false discovery rate was asked for, marks the rows listed at it.
    """

    id: NDArray[Any]
    predicted: NDArray[Any]
    novelty_score: NDArray[np.float64]
    p_value: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    nearest_known: NDArray[Any]
    class_columns: tuple[str, ...]
    novel_at_fdr: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.id)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by the names that files have them under."""
        return {
            "id": self.id,
            "predicted": self.predicted,
            "novelty_score": self.novelty_score,
            "p_value": self.p_value,
            **dict(zip(self.class_columns, self.probabilities[:, :-1].T, strict=True)),
            "p_novel": self.probabilities[:, -1],
            "nearest_known": self.nearest_known,
            **({} if self.novel_at_fdr is None else {"novel_at_fdr": self.novel_at_fdr}),
        }

    def take(self, rows: NDArray[np.intp]) -> ScoredTable:
        """The given rows, in the given order."""
        listed = None if self.novel_at_fdr is None else self.novel_at_fdr[rows]
        names = ("id", "predicted", "novelty_score", "p_value", "probabilities", "nearest_known")
        return replace(self, novel_at_fdr=listed, **{name: getattr(self, name)[rows] for name in names})

    def to_frame(self, backend: str = "pandas") -> Any:
        """A data frame of pandas, polars or pyarrow."""
        import narwhals as nw

        check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
        contiguous = {name: np.ascontiguousarray(column) for name, column in self.columns().items()}
        return nw.from_dict(contiguous, backend=cast("Any", backend)).to_native()


def predictions(model: Any, X: NDArray[np.floating]) -> Predictions:
    """What a model fitted with a target says of finite rows; readers and encoders let no others through."""
    from sklearn import config_context

    if not model.n_target_:
        raise ValueError("the model was fitted without a target, so it calls nothing novel: fit it with one.")
    with config_context(assume_finite=True):
        found: Predictions = model.predictions(X)
    return found


def scored_table(model: Any, found: Predictions, ids: NDArray[Any]) -> ScoredTable:
    """Predictions as a table, with the p-value of every row."""
    labels = _one_type(found.labels)
    return ScoredTable(
        id=ids,
        predicted=labels[found.predicted_index],
        novelty_score=found.novelty_score,
        p_value=conformal_p_values(model.calibration_scores_, found.novelty_score),
        probabilities=found.probabilities,
        nearest_known=labels[found.known_index],
        class_columns=class_columns(model.classes_.tolist()),
    )


def rows_at_fdr(
    model: Any, scored: ScoredTable, fdr: float, *, max_density_ratio: float | None = None
) -> NDArray[np.bool_]:
    """Which rows of the fitted target to list so that at most a share ``fdr`` of them is known, on average.

    Benjamini–Hochberg on conformal p-values. A row is ranked by the members that were not trained on it, where
    there are such: those trained on it lift it above source rows they have not seen. ``max_density_ratio`` as for
    :func:`assumed_ratio`.
    """
    p = fit_p_values(model, scored)
    return benjamini_hochberg(p, fdr, max_density_ratio=assumed_ratio(model, max_density_ratio))


def fit_p_values(model: Any, scored: ScoredTable) -> NDArray[np.float64]:
    """p-values of the rows of the fitted target, by members not trained on them where there are such."""
    own = model.target_novelty_score_
    return np.where(np.isnan(own), scored.p_value, conformal_p_values(model.calibration_scores_, own))


def assumed_ratio(model: Any, given: float | None) -> float:
    """How many times as common known rows may be in the target: as given, else as the method assumes, else 1."""
    if given is not None:
        return float(given)
    test = getattr(model, "novelty_test_", None)
    return float(getattr(model, "max_density_ratio", 1.0) if test is None else test.max_density_ratio)


def class_columns(classes: Sequence[Any]) -> tuple[str, ...]:
    """``p_<class>`` for each class; a name that is taken gets underscores behind it.

    >>> class_columns(["a", "value"])
    ('p_a', 'p_value_')
    """
    taken, names = set(_OWN), []
    for label in classes:
        name = f"p_{label}"
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return tuple(names)


def _one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that files can hold in one column: mixed ones (booleans and "novel") as text."""
    return labels.astype(str).astype(object) if labels.dtype == object else labels
