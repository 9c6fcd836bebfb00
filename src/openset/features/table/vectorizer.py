"""``TableFeatures``: the columns of a table as numbers, as a transformer of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from openset.data.readers.cells import Cells, cells_of
from openset.data.readers.open import open_source
from openset.features.table.apply import TableValues, scaled, values_of
from openset.features.table.fit import fit_table
from openset.features.table.fitted import FittedTable


class TableFeatures(TransformerMixin, BaseEstimator):
    """Numbers, booleans, categories, dates and durations, with gaps, as features of comparable scales.

    It is what ``openset fit`` makes of a table. A category becomes a column for each level of the source, and
    one for all levels that the source lacks; many levels are hashed. A date becomes its parts and the days
    elapsed. Missing values become the source's median or most common level, with a flag. Numbers with heavy
    tails become their logarithm. Constants, ids and free text are not used. A table of complete numbers of one
    unit, or without heavy tails, stays as it is.

    Parameters
    ----------
    kinds : what columns hold where that is not to be guessed: ``{"zip": "category"}``; or "number", "date",
        "text" or "id", of which the last two are not used

    Attributes
    ----------
    fitted_ : FittedTable, plain values that ``dataclasses.asdict`` turns into JSON
    n_features_in_, feature_names_in_ : as in scikit-learn

    >>> import pandas as pd
    >>> known = pd.DataFrame({"size": [1.0, 2.5, None, 4.0], "town": ["Ulm", "Bonn", "Ulm", "Ulm"]})
    >>> made = TableFeatures().fit(known)
    >>> made.get_feature_names_out().tolist()
    ['size', 'size is missing', 'town=Bonn', 'town=Ulm', 'town=(other)']
    >>> batch = pd.DataFrame({"size": [2.5], "town": ["Kiel"]})
    >>> made.transform(batch).shape
    (1, 5)
    >>> made.notes(batch)
    ["Column 'town' has levels that source lacks: 'Kiel' (1 row). They count as one level, (other)."]
    """

    fitted_: FittedTable
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(self, kinds: Mapping[str, str] | None = None) -> None:
        self.kinds = kinds

    def fit(self, X: Any, y: Any = None, X_target: Any = None) -> TableFeatures:
        """Learn from source what each column becomes; the target tells where flags are needed."""
        source = self._table(X, first=True)
        target = None if X_target is None else self._table(X_target, first=False)
        self.fitted_ = fit_table(source, target, self.kinds)
        return self

    def transform(self, X: Any) -> NDArray[np.floating]:
        """The features of rows; every row gives one."""
        check_is_fitted(self)
        return scaled(self.fitted_, self._values(X).values)

    def notes(self, X: Any) -> list[str]:
        """What is odd in rows: levels that source lacks, values that cannot be read, gaps."""
        check_is_fitted(self)
        return self._values(X).notes.sentences()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the features."""
        check_is_fitted(self)
        return np.array(self.fitted_.features, dtype=object)

    def _values(self, X: Any) -> TableValues:
        return values_of(self.fitted_, self._table(X, first=False))

    def _table(self, X: Any, *, first: bool) -> dict[str, Cells]:
        """The cells of every column; a data frame's by name, in any order, an array's by number."""
        if nw.dependencies.is_into_dataframe(X):
            opened = open_source(X)
            names = list(opened.kinds)
            if first:
                self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
            chunks = list(opened.chunks(names, None))
            if not chunks or len(chunks[0].rows) < 1 + first:
                raise ValueError("the table has too few rows: at least 2 to fit, and 1 to transform.")
            return {name: cells_of(chunks[0].columns[name]) for name in names}
        options: dict[str, Any] = {"dtype": None, "ensure_all_finite": False}
        array = validate_data(self, X, reset=first, ensure_min_samples=2 if first else 1, **options)
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported: give real numbers.")
        return {f"x{i}": cells_of(column) for i, column in enumerate(array.T)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
