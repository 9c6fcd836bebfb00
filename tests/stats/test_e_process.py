"""Validity is checked exactly where it can be, and by simulation over whole sequences of batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, binom

from openset.stats.e_process import (
    ERROR,
    FEWEST_ROWS,
    LIMIT,
    RUNGS,
    References,
    Tally,
    _log_null,
    _log_ratio_of,
    log_evidence,
    log_ratio,
    weight,
)

RATIOS = (1.0, 3.0, 12.0)


def tallies(n_reference, rows, rungs=2):
    counts = st.tuples(*[st.integers(0, rows)] * rungs)
    return counts.map(lambda above: Tally(rows, tuple(sorted(above)), n_reference))


def test_thresholds_are_the_scores_at_the_rungs():
    scores = np.random.default_rng(0).permutation(1000.0 + np.arange(500))
    found = References.of(scores)
    assert found.thresholds == tuple(1500.0 - rung for rung in RUNGS) and found.n_rows == 500
    assert found.count_above([1499.5, 1499.0, 1495.0]) == (1, 2, 3, 3, 3)


def test_a_rung_needs_four_times_as_many_rows():
    assert len(References.of(np.arange(100.0)).thresholds) == 4
    with pytest.raises(ValueError, match=f"got 39 scores of reference rows: at least {FEWEST_ROWS}"):
        References.of(np.arange(39.0))


@pytest.mark.parametrize(("above", "rows", "rung", "n", "ratio"), [
    (0, 30, 1, 50, 1.0), (3, 30, 1, 50, 3.0), (30, 30, 3, 50, 6.0), (12, 40, 8, 60, 2.0), (20, 20, 1, 40, 30.0),
])  # fmt: skip
def test_the_null_is_the_integral_that_it_says(above, rows, rung, n, ratio):
    def integrand(u):
        rate = min(ratio * u, 1.0)
        return rate**above * (1 - rate) ** (rows - above) * beta.pdf(u, rung, n - rung + 1)

    by_hand = quad(integrand, 0, 1 / ratio, limit=500)[0] + quad(integrand, 1 / ratio, 1, limit=500)[0]
    assert _log_null(above, rows, rung, n, ratio) == pytest.approx(np.log(by_hand), abs=1e-6)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(("rung", "n"), [(1, 100), (8, 400), (21, 4000)])
def test_the_mean_under_the_largest_rate_is_exactly_one(rung, n, ratio):
    """Summed over all counts that a batch can have: the ratio is a likelihood ratio."""
    rows = 60
    total = sum(
        np.exp(_log_ratio_of(above, rows, rung, n, ratio) + _log_null(above, rows, rung, n, ratio))
        * binom.pmf(above, rows, 0.5) * 2.0**rows
        for above in range(rows + 1)
    )  # fmt: skip
    assert total == pytest.approx(1.0, abs=1e-6)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(40, 3000), st.sampled_from(RUNGS), st.integers(1, 400), st.integers(0, 399),
    st.sampled_from((1.0, 1.5, 3.0, 6.0, 12.0, 40.0)),
)  # fmt: skip
def test_one_more_row_above_is_never_weaker_evidence(n, rung, rows, above, ratio):
    rung, above = min(rung, n // 4), min(above, rows - 1)
    before, after = (_log_ratio_of(count, rows, rung, n, ratio) for count in (above, above + 1))
    assert after >= before - 1e-7


@settings(max_examples=150, deadline=None)
@given(
    tallies(400, 300), st.floats(1.0, 60.0), st.floats(1.0, 60.0),
)  # fmt: skip
def test_a_larger_ratio_never_proves_more(tally, one, other):
    weaker, stronger = log_ratio(tally, max(one, other)), log_ratio(tally, min(one, other))
    assert weaker <= stronger + 1e-7


@settings(max_examples=50, deadline=None)
@given(st.lists(tallies(200, 150), min_size=1, max_size=4), st.permutations(range(4)))
def test_the_order_within_a_series_does_not_change_its_last_evidence(batches, order):
    def last(series):
        total = series[0]
        for tally in series[1:]:
            total = total.joined(tally)
        return log_ratio(total, 3.0)

    shuffled = [batches[index] for index in order if index < len(batches)]
    assert last(batches) == pytest.approx(last(shuffled))


@settings(max_examples=50, deadline=None)
@given(st.lists(tallies(200, 150), min_size=1, max_size=4), st.lists(tallies(200, 150), max_size=3))
def test_evidence_is_never_negative_and_never_falls(first, further):
    alone = log_evidence([(1, first)], 3.0)
    assert np.exp(alone) >= 0
    assert log_evidence([(1, [*first, *further])], 3.0) >= alone
    assert log_evidence([(1, first), (2, further)], 3.0) >= alone


def test_weights_sum_to_one_and_fall_slowly():
    weights = [weight(number) for number in range(1, 200_000)]
    assert sum(weights) == pytest.approx(1, abs=1e-4) and sum(weights) <= 1
    assert weights == sorted(weights, reverse=True) and weights[7] > weights[0] / 6


def simulate(random, *, n=200, rows=150, batches=6, ratio=3.0, rate=1.0, new=0.0, models=2):
    """Whether a sequence ever alarms: reference rows shared by all models, as a watch shares them.

    ``rate`` is the rate of known rows above a threshold over the largest one that the null allows.
    """
    reference = random.random((models, n))  # 1 − the chance of a fresh row above
    series = []
    for first in range(batches):
        ordered = np.sort(reference[first * models // batches])[::-1]
        chances = np.minimum(1, ratio * (1 - ordered[[rung - 1 for rung in RUNGS if 4 * rung <= n]]))
        known = random.random((batches - first, rows))
        is_new = random.random((batches - first, rows)) < new
        above = ((known[:, :, None] < rate * chances) | is_new[:, :, None]).sum(axis=1)
        series.append((first + 1, [Tally(rows, tuple(map(int, counts)), n) for counts in above]))
    return log_evidence(series, ratio) >= np.log(LIMIT)


def alarms(sequences, **case):
    random = np.random.default_rng(0)
    return sum(simulate(random, **case) for _ in range(sequences)) / sequences


@pytest.mark.slow
@pytest.mark.parametrize("case", [
    {"ratio": 1.0}, {"ratio": 3.0}, {"ratio": 3.0, "models": 6}, {"ratio": 1.0, "rows": 20, "batches": 10},
    {"ratio": 6.0, "n": 60},
])  # fmt: skip
def test_false_alarms_over_whole_sequences_at_the_largest_rate(case):
    """Series are drawn afresh for every start, which only adds chances to alarm."""
    sequences = 400
    margin = 3 * np.sqrt(ERROR * (1 - ERROR) / sequences)
    assert alarms(sequences, **case) <= ERROR + margin


@pytest.mark.slow
def test_smaller_rates_alarm_even_less_and_a_growing_class_is_noticed():
    assert alarms(200, rate=0.5) <= 0.01
    assert alarms(50, rate=0.5, new=0.15, n=600, rows=400) == 1.0


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(ValueError, match=r"got 10 rows and \(11,\) above: expected at most 5 counts"):
        Tally(10, (11,), 100)
    with pytest.raises(ValueError, match="scored by different functions"):
        Tally(10, (1,), 100).joined(Tally(10, (1,), 50))
    with pytest.raises(ValueError, match="max_density_ratio"):
        log_ratio(Tally(10, (1,), 100), 0.5)


def test_nothing_is_proved_where_the_null_allows_everything():
    assert log_ratio(Tally(100, (100,), 40), 60.0) == -np.inf
    assert log_ratio(Tally(0, (), 40), 2.0) == 0.0
