from __future__ import annotations

import numpy as np
import pytest

from openset.stats.scaling import fit_scaling, incompatible_features, moments, over_cells

random = np.random.default_rng(0)
EMBEDDINGS = random.normal(size=(20000, 4)) * [1, 1.2, 0.8, 1.1] + 3
TABLE = random.normal(size=(500, 4)) * [1, 1e4, 0.01, 30]


def test_moments_in_blocks_are_exact():
    m = moments(EMBEDDINGS.astype(np.float32))
    np.testing.assert_allclose(m.mean, EMBEDDINGS.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(m.sd, EMBEDDINGS.std(axis=0), rtol=1e-5)


def test_auto_keeps_the_geometry_of_embeddings_and_evens_out_a_table():
    assert fit_scaling(moments(EMBEDDINGS), None, "auto").rule == "global"
    assert fit_scaling(moments(TABLE), None, "auto").rule == "feature"


def test_feature_scaling_gives_unit_variance_and_survives_constants():
    x = np.column_stack([TABLE, np.full(500, 7.0)])
    scaled = fit_scaling(moments(x), None, "feature").apply(x)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 1, 1, 0], atol=1e-9)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-9)


def test_both_domains_count_one_half():
    source, target = moments(np.zeros((10, 1))), moments(np.full((1000, 1), 2.0))
    scaling = fit_scaling(source, target, "feature")
    assert scaling.mean[0] == 1
    assert 1 / scaling.factor[0] == pytest.approx(1)


def test_scaling_in_place_is_the_same_as_in_double():
    scaling = fit_scaling(moments(TABLE), None, "auto")
    x = TABLE.astype(np.float32)
    expected = scaling.apply(TABLE)
    scaling.apply_in_place(x)
    np.testing.assert_allclose(x, expected, atol=1e-5)


def test_other_units_are_noticed_and_a_new_class_is_not():
    base = moments(TABLE)
    assert incompatible_features(base, moments(TABLE * [1, 1e-3, 1, 1])).tolist() == [1]
    assert incompatible_features(base, moments(TABLE + np.array([0, 0, 5, 0]))).tolist() == [2]
    with_novel = TABLE.copy()
    with_novel[:100] += [8, 8e4, 0.08, 240]  # eight standard deviations away
    assert incompatible_features(base, moments(with_novel)).tolist() == []
    assert incompatible_features(moments(np.ones((5, 2))), moments(np.ones((5, 2)))).tolist() == []


def test_moments_over_cells_are_those_of_all_cells_in_one_table():
    maps = random.normal(size=(40, 5, 3)) * [1, 2, 3] + np.arange(5)[:, None]
    together, cells = over_cells(moments(maps)), moments(maps.reshape(-1, 3))
    np.testing.assert_allclose(together.mean, cells.mean)
    np.testing.assert_allclose(together.sd, cells.sd)
    assert together.largest == cells.largest
