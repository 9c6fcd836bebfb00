from __future__ import annotations

import numpy as np
import pytest

from openset.stats.scaling import (
    NO_SCALING,
    WIDER,
    WIDEST,
    Moments,
    channel_axis,
    check_single_precision,
    fit_image_scaling,
    fit_scaling,
    incompatible_features,
    moments,
    over_cells,
    scale_in_double,
    unscaled,
)

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


def test_no_rule_leaves_rows_alone():
    scaling = fit_scaling(moments(TABLE), moments(TABLE), None)
    assert scaling is NO_SCALING and scaling.apply(TABLE) is TABLE
    x = TABLE.astype(np.float32)
    scaling.apply_in_place(x)
    np.testing.assert_array_equal(x, TABLE.astype(np.float32))


def test_global_scaling_keeps_ratios_of_distances():
    scaled = fit_scaling(moments(EMBEDDINGS), None, "global").apply(EMBEDDINGS[:3])
    before, after = (np.linalg.norm(x[0] - x[1]) / np.linalg.norm(x[0] - x[2]) for x in (EMBEDDINGS, scaled))
    assert after == pytest.approx(before)


@pytest.mark.parametrize("channels_last", [False, True])
def test_images_are_scaled_by_channel(channels_last):
    images = np.random.default_rng(1).integers(0, 256, size=(50, 3, 8, 8)).astype(np.uint8)
    images[:, 1] //= 4
    axis = 3 if channels_last else 1
    given = np.moveaxis(images, 1, 3) if channels_last else images
    assert channel_axis(given) == axis
    scaled = fit_image_scaling(moments(given), None, "auto", axis).apply(images.astype(np.float64))
    np.testing.assert_allclose(scaled.mean(axis=(0, 2, 3)), 0, atol=1e-9)
    np.testing.assert_allclose(scaled.std(axis=(0, 2, 3)), 1, atol=1e-9)
    plain = fit_image_scaling(moments(given), None, None, axis).apply(images.astype(np.float64))
    np.testing.assert_allclose(plain, images / 255)


def test_two_domains_of_images_count_one_half_each():
    dark, light = np.full((2, 1, 4, 4), 10, np.uint8), np.full((9, 1, 4, 4), 30, np.uint8)
    scaling = fit_image_scaling(moments(dark), moments(light), "auto", 1)
    assert scaling.mean.ravel().tolist() == [20] and (1 / scaling.factor).ravel().tolist() == [10]


@pytest.mark.parametrize(
    ("shape", "dtype"), [((5, 3, 32, 32), np.float32), ((5, 12), np.uint8), ((5, 32, 32), np.uint8)]
)
def test_other_rows_are_not_images(shape, dtype):
    assert channel_axis(np.zeros(shape, dtype)) is None


def test_values_beyond_single_precision_are_refused_before_training():
    large, small = moments(np.array([[1e35], [-1e35]])), moments(TABLE[:, :1])
    check_single_precision(fit_scaling(large, None, "feature"), large, None)
    with pytest.raises(ValueError, match="1e\\+35, is too large for single precision"):
        check_single_precision(NO_SCALING, small, large)


def test_rows_too_large_to_square_are_named():
    scaling = fit_scaling(moments(TABLE), None, "feature")
    np.testing.assert_array_equal(scale_in_double(scaling, TABLE), scaling.apply(TABLE))
    rows = TABLE[:5].copy()
    rows[3, 2] = 1e200
    with pytest.raises(ValueError, match="row 3 has values too large to score"):
        scale_in_double(scaling, rows)


def spreads(*sd):
    """Moments of features with these standard deviations around 0."""
    return Moments(np.zeros(len(sd)), np.array(sd, dtype=float), 1.0)


@pytest.mark.parametrize(
    ("sd", "rule"),
    [
        ([1] * 18 + [WIDER * 0.9] * 2, "global"),
        ([1] * 18 + [WIDER * 1.1] * 2, "global"),  # a tenth of them: the 90th percentile is 2
        ([1] * 17 + [WIDER * 1.1] * 3, "feature"),
        ([1] * 99 + [WIDEST * 0.9], "global"),
        ([1] * 99 + [WIDEST * 1.1], "feature"),
        ([1] * 50 + [0] * 50, "global"),  # constant features do not count
        ([1] * 10 + [1e-14] * 90, "global"),
        ([1] * 10 + [0.02] * 10, "global"),  # many narrow features are no sign of other units
        ([0, 0, 0], "global"),
    ],
)
def test_auto_is_by_feature_if_some_features_spread_much_wider_than_the_median(sd, rule):
    assert fit_scaling(spreads(*sd), None, "auto").rule == rule


def test_auto_does_not_depend_on_the_unit_of_all_features_together():
    for sd in ([1] * 99 + [WIDEST * 1.1], [1] * 99 + [WIDEST * 0.9]):
        rules = {fit_scaling(spreads(*(unit * np.array(sd))), None, "auto").rule for unit in (1e-3, 1, 1e6)}
        assert len(rules) == 1


def test_a_new_class_far_away_in_one_feature_does_not_change_the_rule():
    source, target = random.normal(size=(500, 20)), random.normal(size=(500, 20))
    target[:50, 3] += 40
    assert fit_scaling(moments(source), moments(target), "auto").rule == "global"


@pytest.mark.parametrize("rule", ["global", "feature", None])
def test_unscaled_rows_are_the_rows(rule):
    scaling = fit_scaling(moments(TABLE), moments(TABLE + 3), rule)
    scaled = scale_in_double(scaling, TABLE)
    np.testing.assert_allclose(unscaled(scaling, scaled), TABLE, rtol=1e-9, atol=1e-9)
    if rule is None:
        assert unscaled(scaling, scaled) is scaled


def test_unscaled_survives_constant_features():
    rows = np.column_stack([TABLE[:, 0], np.full(500, 7.0)])
    for rule in ("global", "feature"):
        scaling = fit_scaling(moments(rows), None, rule)
        np.testing.assert_allclose(unscaled(scaling, scaling.apply(rows)), rows, rtol=1e-9, atol=1e-12)
