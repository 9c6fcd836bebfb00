from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax, softmax

from openset.stats.scores import (
    energy_score,
    entropy_score,
    mls_score,
    msp_score,
    normalised_entropy_score,
    rank_log_odds,
)

LOGITS = np.array([[3, 1, 0], [1, 1, 1], [0, 2, 1.9]])
TEMPERED = (msp_score, entropy_score, normalised_entropy_score, energy_score)
moderate = arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.floats(-20, 20, width=32)
)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (msp_score, [0.156205, 0.666667, 0.509845]),
        (entropy_score, [0.524267, 1.098612, 0.890056]),
        (normalised_entropy_score, [0.477208, 1, 0.810164]),
        (mls_score, [-3, -1, -2]),
        # log(e³ + e + 1), 1 + log 3, log(1 + e² + e^1.9)
        (energy_score, [-3.169846, -2.098612, -2.713034]),
    ],
)
def test_golden_numbers(score, expected):
    np.testing.assert_allclose(score(LOGITS), expected, atol=1e-5)
    np.testing.assert_allclose(score(LOGITS.astype(np.float32)), expected, atol=1e-5)


@given(moderate, st.floats(0.25, 4))
def test_they_are_their_formulas(logits, temperature):
    p = softmax(logits / temperature, axis=-1)
    np.testing.assert_allclose(msp_score(logits, temperature), 1 - p.max(axis=-1), atol=1e-12)
    entropy = -(p * log_softmax(logits / temperature, axis=-1)).sum(axis=-1)
    np.testing.assert_allclose(entropy_score(logits, temperature), entropy, atol=1e-12)
    energy = -temperature * np.log(np.exp(logits / temperature).sum(axis=-1))
    np.testing.assert_allclose(energy_score(logits, temperature), energy, rtol=1e-9, atol=1e-9)
    assert (energy_score(logits, temperature) <= mls_score(logits) + 1e-9).all()


@given(moderate, st.floats(-50, 50))
def test_a_shift_of_all_logits_moves_only_those_that_keep_magnitude(logits, shift):
    for score in (msp_score, entropy_score):
        np.testing.assert_allclose(score(logits + shift), score(logits), rtol=1e-9, atol=1e-9)
    for score in (mls_score, energy_score):
        np.testing.assert_allclose(score(logits + shift), score(logits) - shift, atol=1e-9)


@pytest.mark.parametrize("score", [msp_score, entropy_score, normalised_entropy_score])
def test_sure_rows_do_not_tie(score):
    gaps = np.array([10, 17, 40, 90, 300, 700], np.float32)  # 1 − softmax is 0 in float32 from 17 on
    values = score(np.column_stack([gaps, np.zeros((6, 2), np.float32)]))
    assert (np.diff(values) < 0).all() and (values > 0).all()


@pytest.mark.parametrize("score", [*TEMPERED, mls_score])
def test_members_and_rows_are_apart(score):
    logits = np.random.default_rng(0).normal(size=(2, 7, 4))
    whole = score(logits)
    assert whole.shape == (2, 7)
    np.testing.assert_array_equal(whole[1, 3:4], score(logits[1, 3:4]))


def test_one_class_leaves_no_doubt():
    one = [[3.0], [-2.0]]
    for score in (msp_score, entropy_score, normalised_entropy_score):
        assert (score(one) == 0).all()
    assert energy_score(one).tolist() == mls_score(one).tolist() == [-3, 2]


def test_huge_logits_stay_finite():
    for score in (*TEMPERED, mls_score):
        assert np.isfinite(score([[1e30, -1e30, 0.0]])).all()


def test_energy_tends_to_the_maximum_logit():
    np.testing.assert_allclose(energy_score(LOGITS, 1e-3), mls_score(LOGITS), atol=2e-3)


@pytest.mark.parametrize("score", TEMPERED)
@pytest.mark.parametrize("temperature", [0, -1, np.nan, "1"])
def test_a_bad_temperature_is_refused(score, temperature):
    with pytest.raises(ValueError, match="temperature=.*expected a number"):
        score(LOGITS, temperature)


finite = st.floats(-100, 100).map(lambda v: round(v, 3))


@given(st.lists(finite, min_size=1, max_size=30), st.lists(finite, min_size=2, max_size=30, unique=True))
def test_ranks_keep_the_order_within_and_beyond_the_reference(reference, scores):
    ordered = np.sort(scores)
    ranked = rank_log_odds(reference, ordered)
    assert np.isfinite(ranked).all()
    assert (np.diff(ranked) > 0).all() or len(set(reference)) == 1


def test_ranks_are_log_odds_of_the_share_below():
    reference = np.arange(1, 100)  # 99 rows
    assert rank_log_odds(reference, [50])[0] == pytest.approx(0)
    assert rank_log_odds(reference, [99])[0] == pytest.approx(np.log(99))
    assert rank_log_odds([], [2.5]).tolist() == [2.5]
