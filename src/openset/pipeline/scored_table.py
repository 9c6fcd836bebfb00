"""The scored table: what a model says of each row, and which rows to list at a false discovery rate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_choice
from openset.data.readers.records import Records
from openset.problem import Predictions
from openset.stats.p_values import benjamini_hochberg, conformal_p_values

_OWN = ("predicted", "novelty_score", "p_value", "p_novel", "nearest_known", "rank", "group", "novel_at_fdr")


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """One row for each row scored, in order.

    ``p_value`` is the conformal rank of the score among validation rows of the *source*: small where hardly any
    source row scores as high. ``probabilities`` has a column for each known class and, last, for "novel".
    ``novel_at_fdr``, where a false discovery rate was asked for, marks the rows listed at it. Where all rows of a
    target are scored together, ``rank`` is 1 for the most novel row, and ``group`` is the number of a row's group
    among those called novel, 0 for none. ``carried`` are columns of the data, in Arrow arrays. The id has the
    name that it has in the data.
    """

    id: NDArray[Any]
    predicted: NDArray[Any]
    novelty_score: NDArray[np.float64]
    p_value: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    nearest_known: NDArray[Any]
    class_columns: tuple[str, ...]
    novel_at_fdr: NDArray[np.bool_] | None = None
    rank: NDArray[np.int64] | None = None
    group: NDArray[np.int64] | None = None
    carried: Mapping[str, Any] = field(default_factory=dict)
    id_name: str = "id"

    def __len__(self) -> int:
        return len(self.id)

    def columns(self) -> dict[str, Any]:
        """The columns by the names that files have them under; a carried column never hides one of ours."""
        id_name = "id" if self.id_name in _OWN else self.id_name
        own = {
            id_name: self.id,
            "predicted": self.predicted,
            "novelty_score": self.novelty_score,
            "p_value": self.p_value,
            **dict(zip(self.class_columns, self.probabilities[:, :-1].T, strict=True)),
            "p_novel": self.probabilities[:, -1],
            "nearest_known": self.nearest_known,
        }
        optional = {"rank": self.rank, "group": self.group, "novel_at_fdr": self.novel_at_fdr}
        own |= {name: column for name, column in optional.items() if column is not None}
        return own | {_free(name, own): column for name, column in self.carried.items()}

    def take(self, rows: NDArray[np.intp]) -> ScoredTable:
        """The given rows, in the given order."""
        names = ["id", "predicted", "novelty_score", "p_value", "probabilities", "nearest_known"]
        names += [name for name in ("novel_at_fdr", "rank", "group") if getattr(self, name) is not None]
        carried = {name: column.take(rows) for name, column in self.carried.items()}
        return replace(self, carried=carried, **{name: getattr(self, name)[rows] for name in names})

    def to_frame(self, backend: str = "pandas") -> Any:
        """A data frame of pandas, polars or pyarrow."""
        import narwhals as nw

        check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
        contiguous = {
            name: np.ascontiguousarray(column) if isinstance(column, np.ndarray) else _frame_values(column)
            for name, column in self.columns().items()
        }
        return nw.from_dict(contiguous, backend=cast("Any", backend)).to_native()


def predictions(model: Any, X: NDArray[np.floating]) -> Predictions:
    """What a model fitted with a target says of finite rows; readers and encoders let no others through."""
    from sklearn import config_context

    if not model.n_target_:
        raise ValueError("the model was fitted without a target, so it calls nothing novel: fit it with one.")
    with config_context(assume_finite=True):
        found: Predictions = model.predictions(X)
    return found


def scored_table(model: Any, found: Predictions, records: Records, id_name: str | None = None) -> ScoredTable:
    """Predictions for some records as a table, with the p-value of every row."""
    labels = _one_type(found.labels)
    return ScoredTable(
        id=records.rows if records.ids is None else records.ids,
        predicted=labels[found.predicted_index],
        novelty_score=found.novelty_score,
        p_value=conformal_p_values(model.calibration_scores_, found.novelty_score),
        probabilities=found.probabilities,
        nearest_known=labels[found.known_index],
        class_columns=class_columns(model.classes_.tolist(), id_name or "id"),
        carried=records.carried,
        id_name=id_name if id_name is not None and records.ids is not None else "id",
    )


def ranks(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """1 for the highest score, equal scores in the order of rows.

    >>> ranks(np.array([0.5, 2.0, 0.5])).tolist()
    [2, 1, 3]
    """
    order = np.argsort(-scores, kind="stable")
    found = np.empty(len(scores), dtype=np.int64)
    found[order] = np.arange(1, len(scores) + 1)
    return found


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


def class_columns(classes: Sequence[Any], id_name: str = "id") -> tuple[str, ...]:
    """``p_<class>`` for each class; a name that is taken gets underscores behind it.

    >>> class_columns(["a", "value"])
    ('p_a', 'p_value_')
    """
    taken, names = {*_OWN, id_name}, []
    for label in classes:
        name = _free(f"p_{label}", taken)
        taken.add(name)
        names.append(name)
    return tuple(names)


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _frame_values(column: Any) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that files can hold in one column: mixed ones (booleans and "novel") as text."""
    return labels.astype(str).astype(object) if labels.dtype == object else labels
