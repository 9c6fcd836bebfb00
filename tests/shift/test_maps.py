from __future__ import annotations

import numpy as np
import pytest

from openset.shift.maps import make_feature_maps


def test_a_map_holds_its_row_and_as_many_background_cells_as_asked(small):
    centres = np.array([[100.0] * 8, [-100.0] * 8])
    data = make_feature_maps(small, n_cells=5, n_background=2, backgrounds=centres, random_state=0)
    for rows, maps in ((small.X, data.X), (small.X_target, data.X_target), (small.X_test, data.X_test)):
        assert maps.shape == (len(rows), 5, 8)
        background = np.abs(maps).min(axis=2) > 50
        assert (background.sum(axis=1) == 2).all()
        near = np.abs(maps - rows[:, None]).max(axis=2) < 4
        np.testing.assert_array_equal(near, ~background)
        assert len(np.unique(background, axis=0)) == 10, "background stands in every place"
    np.testing.assert_array_equal(data.y_test, small.y_test)
    assert small.X.ndim == 2, "the table is left as it was"


def test_the_seed_decides(small):
    one, same, other = (make_feature_maps(small, random_state=seed).X for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


@pytest.mark.parametrize("wrong", [{"n_cells": 0}, {"n_background": -1}, {"n_background": 6}, {"backgrounds": 0}])
def test_bad_numbers_are_named(small, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}="):
        make_feature_maps(small, **wrong)
