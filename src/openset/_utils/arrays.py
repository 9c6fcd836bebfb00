"""Rows and labels (numpy, pandas, polars, pyarrow, torch) as arrays, with errors that say what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from openset._utils.text import listed

FLOAT_TYPES = (np.float64, np.float32, np.float16)


def is_torch_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor, without importing torch."""
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def as_rows(X: Any, name: str) -> Any:
    """Return torch tensors as numpy arrays, and all else unchanged. Refuse data frames with non-numeric columns.

    scikit-learn's ``validate_data`` reads every data frame that narwhals knows, with its column names.
    """
    if is_torch_tensor(X):
        tensor = X.detach().cpu()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        others = {
            column: dtype
            for column, dtype in frame.schema.items()
            if not (dtype.is_numeric() or isinstance(dtype, nw.Boolean))
            # numpy converts object columns that hold numbers
            and not (isinstance(dtype, nw.Object) and _holds_numbers(frame[column]))
        }
        if others:
            found = listed(f"{column!r} ({dtype})" for column, dtype in others.items())
            raise ValueError(
                f"{name} has columns that are not numbers: {found}. "
                "Encode them as numbers (for example with sklearn's OneHotEncoder) or drop them."
            )
    return X


def _holds_numbers(series: Any) -> bool:
    try:
        np.asarray(series.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def as_labels(y: Any) -> NDArray[Any]:
    """Labels as a one-dimensional array of strings, numbers or booleans."""
    # imported here because readers of tables import this module and need no scikit-learn
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise ValueError(
            "fitting requires y to be passed, but the target y is None: give the known class of every source row."
        )
    if is_torch_tensor(y):
        y = y.detach().cpu().numpy()
    elif nw.dependencies.is_into_series(y):
        y = nw.from_native(y, series_only=True).to_numpy()
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "biufUSO":  # arrow-backed strings of pandas 3
        labels = labels.astype(object)
    if labels.dtype == object:
        missing = sum(map(is_missing, labels.tolist()))
        if missing:
            raise ValueError(f"y has {missing} missing labels: every source row needs one.")
        kinds = {type(label).__name__ for label in labels.tolist()}
        if len(kinds) > 1 and "str" in kinds:
            raise ValueError(f"y mixes label types ({', '.join(sorted(kinds))}): use one type for all labels.")
    elif labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: every source row needs a label.")
    check_classification_targets(labels)
    return labels


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, pandas' NA, or a NaT of pandas or numpy.

    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT"), 0, "")]
    [True, True, True, False, False]
    """
    if value is None or type(value).__name__ == "NAType":  # comparing NA gives NA, which has no truth value
        return True
    differs = value != value  # only NaN and NaT differ from themselves
    return isinstance(differs, (bool, np.bool_)) and bool(differs)


def resolve_novel_label(novel_label: Any, classes: NDArray[Any]) -> Any:
    """The label of the new class: the user's, or if that is None −1 for numbers and "novel" for other labels."""
    if novel_label is not None:
        return novel_label
    if classes.dtype.kind in "iuf":
        return -1
    if classes.dtype == object and all(
        isinstance(c, (int, float)) and not isinstance(c, bool) for c in classes.tolist()
    ):
        return -1
    return "novel"


def with_novel(classes: NDArray[Any], novel_label: Any) -> NDArray[Any]:
    """The known classes and the novel label in one array, of a dtype that holds both unchanged.

    >>> with_novel(np.array([0.5, 1.5]), -1), with_novel(np.array([7], dtype=np.uint64), -1)
    (array([ 0.5,  1.5, -1. ]), array([7, -1], dtype=object))
    """
    novel = np.asarray([novel_label])
    if classes.dtype.kind == "f" and novel.dtype.kind in "iuf" and novel[0].astype(classes.dtype) == novel[0]:
        novel = novel.astype(classes.dtype)
    kinds = (classes.dtype.kind, novel.dtype.kind if novel.ndim == 1 else "O")
    if kinds in (("U", "U"), ("f", "f")) or (
        set(kinds) <= {"i", "u"} and np.result_type(classes, novel).kind in "iu"
    ):
        return np.concatenate([classes, novel])
    labels = np.empty(len(classes) + 1, dtype=object)
    labels[:-1] = classes
    labels[-1] = novel_label
    return labels


def as_objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """A one-dimensional object array of any values.

    >>> as_objects([[1, 2], [3, 4]]).shape
    (2,)
    """
    return np.fromiter(values, dtype=object, count=len(values))


def make_records(columns: Mapping[str, NDArray[Any]]) -> Any:
    """A numpy record array from columns of equal length; ``table.fpr`` is a column, ``table[3].fpr`` a value.

    >>> table = make_records({"step": np.array([1, 2]), "fpr": np.array([0.5, 0.25])})
    >>> table.fpr.tolist(), int(table[1].step)
    ([0.5, 0.25], 2)
    """
    dtype = [(name, column.dtype) for name, column in columns.items()]
    return np.rec.fromarrays(list(columns.values()), dtype=dtype)
