"""Warnings of a fit in words of the command line: the warnings themselves come from real fits."""

from __future__ import annotations

import warnings

import numpy as np

from openset import KNN
from openset.pipeline.check_columns import NamedColumns
from openset.pipeline.fit_notes import OTHER_SCALES, TOO_FEW_ROWS, fit_notes


def warned():
    """The warnings of a fit with few rows and one column in another unit, and its rows."""
    random = np.random.default_rng(0)
    X, target = random.normal(5, 1, size=(60, 3)), random.normal(5, 1, size=(60, 3)) * [1, 1000, 1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KNN(random_state=0).fit(X, np.arange(60) % 2, target)
    return [str(warning.message) for warning in caught], X, target


def test_the_warnings_are_known_by_their_words():
    told, _, _ = warned()
    for words in (OTHER_SCALES, TOO_FEW_ROWS):
        assert sum(words in warning for warning in told) == 1, told


def test_a_column_on_another_scale_has_its_name():
    told, X, target = warned()
    (scales,) = (warning for warning in told if OTHER_SCALES in warning)
    (note,) = fit_notes([scales], NamedColumns(X, target, ["a", "my pay", "c"]))
    assert note.startswith("Column 'my pay' is on another scale in target: my pay has mean ")
    assert "X_target" not in note and "feature 1" not in note and "transform_input" not in note
    both = NamedColumns(X, 1000 * target, ["a", "b=1", "b=2"], ["a", "b", "b"])
    assert fit_notes([scales], both)[0].startswith("Columns 'a', 'b' are on another scale in target: a has mean")
    assert fit_notes([scales], None) == [scales], "rows that are no table have no names"
    assert fit_notes([scales], NamedColumns(X, X, list("abc"))) == [scales]
    assert fit_notes(["Another warning."], both) == ["Another warning."]
