from __future__ import annotations

import numpy as np
import pytest

from openset.align import NoAlignment


def test_rows_stay_where_they_are():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    fitted = NoAlignment().fit(rows, rows + 9)
    np.testing.assert_array_equal(fitted.transform_target(rows + 9), rows + 9)
    assert fitted.name == "none"


def test_bad_rows_are_refused_here_too():
    with pytest.raises(ValueError, match="X has 3 columns and X_target has 2"):
        NoAlignment().fit(np.zeros((4, 3)), np.zeros((4, 2)))
