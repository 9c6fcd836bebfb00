from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from openset.stats.p_values import benjamini_hochberg, conformal_p_values, largest_p_value


def test_p_values_are_counts_of_source_rows_as_high():
    random = np.random.default_rng(0)
    source, scores = random.integers(0, 9, 50), random.integers(-1, 10, 40)  # with many ties
    expected = [(1 + sum(source >= score)) / 51 for score in scores]
    np.testing.assert_allclose(conformal_p_values(source, scores), expected, rtol=1e-15)
    assert conformal_p_values([], [3.0]).tolist() == [1.0]


def test_p_values_of_source_rows_are_hardly_ever_too_small():
    random = np.random.default_rng(1)
    p = np.concatenate([conformal_p_values(random.normal(size=99), random.normal(size=20)) for _ in range(500)])
    for level in (0.05, 0.1, 0.3):
        assert (p <= level).mean() == pytest.approx(level, rel=0.1)


def test_the_false_discovery_rate_holds_without_shift_and_with_it_if_the_ratio_is_given():
    random = np.random.default_rng(3)
    wrong = {(1, 1): [], (12, 1): [], (12, 12): []}
    for _ in range(200):
        for true, told in wrong:
            rare = 0.02
            source = random.normal(size=1000) + 3 * (random.random(1000) < rare)
            known = random.normal(size=270) + 3 * (random.random(270) < true * rare)
            p = conformal_p_values(source, np.append(known, random.normal(6, 1, size=30)))
            found = benjamini_hochberg(p, 0.2, max_density_ratio=told)
            wrong[true, told].append(found[:270].sum() / max(found.sum(), 1))
    means = {key: np.mean(values) for key, values in wrong.items()}
    assert means[1, 1] < 0.2 and means[12, 12] < 0.2 < means[12, 1]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=80), st.sampled_from([0.05, 0.1, 0.3]))
def test_the_limit_from_counts_is_benjamini_and_hochbergs(ranks, fdr):
    p = np.array(ranks) / 50
    for ratio in (1, 3):
        expected = false_discovery_control(np.minimum(1, ratio * p)) <= fdr * (1 + 1e-12)
        values, counts = np.unique(p, return_counts=True)
        limit = largest_p_value(values[::-1], counts[::-1], fdr * (1 + 1e-12), max_density_ratio=ratio)
        assert ((p <= limit) == expected).all()
        assert (benjamini_hochberg(p, fdr * (1 + 1e-12), max_density_ratio=ratio) == expected).all()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="fdr"):
        benjamini_hochberg([0.1], 1.5)
    with pytest.raises(ValueError, match="max_density_ratio=0.5"):
        benjamini_hochberg([0.1], 0.1, max_density_ratio=0.5)
    assert len(benjamini_hochberg([], 0.1)) == 0
