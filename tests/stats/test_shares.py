from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from openset.shift.synthetic import make_subtype_shift
from openset.stats.shares import (
    SHARE_FROM_LOGITS,
    ShareEstimate,
    anchored_share,
    best_bin_share,
    binomial_interval,
    dedpul_share,
    elkan_noto_share,
    unmixed_share,
)
from openset.stats.thresholds import conformal_threshold

ESTIMATORS = [best_bin_share, elkan_noto_share, dedpul_share]


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_binomial_interval_is_clopper_pearson(case):
    successes, trials = case
    exact = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert binomial_interval(successes, trials) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_no_trials_say_nothing():
    assert binomial_interval(0, 0) == (0.0, 1.0)
    assert anchored_share([], [1.0], 0.0).method == "not identified"


def test_the_interval_covers_the_truth_where_its_assumption_holds():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        source = random.normal(size=300)
        novel = random.random(300) < 0.1
        target = np.where(novel, 10, random.normal(size=300))
        estimate = anchored_share(source, target, threshold=2.0)
        covered += estimate.low <= 0.1 <= estimate.high
    assert covered / 300 >= 0.95


def test_an_estimate_is_frozen_and_ordered():
    estimate = anchored_share(np.zeros(50), np.r_[np.zeros(45), np.ones(5)], 0.5)
    assert estimate.value == pytest.approx(0.1)
    assert str(estimate).startswith("0.100 [")
    assert str(replace(estimate, high_identified=False)) == f"at least {estimate.low:.3f}"
    with pytest.raises(AttributeError):
        estimate.value = 0.2
    with pytest.raises(ValueError, match="low <= value"):
        ShareEstimate(0.1, 0.2, 0.3, 0.95, "wrong way round")


def test_rows_above_are_split_into_novel_and_known_ones():
    novel, known_above = 0.2, 0.05
    assert unmixed_share(novel + (1 - novel) * known_above, known_above) == pytest.approx(novel)
    assert unmixed_share(0.01, 0.05) == 0 and unmixed_share(0.5, 1.0) == 0


@pytest.fixture(scope="module")
def beta_scores():
    """The golden input: true known share .80."""
    random = np.random.default_rng(7)
    source = random.beta(5, 2, 300)
    return source, np.concatenate([random.beta(5, 2, 160), random.beta(1, 8, 40)])


def test_bbe_is_the_formula_and_legacy_the_authors_index(beta_scores):
    assert 1 - best_bin_share(*beta_scores).value == pytest.approx(0.730038, abs=1e-6)
    assert 1 - best_bin_share(*beta_scores, legacy=True).value == pytest.approx(0.724335, abs=1e-6)


def test_bbe_follows_its_definition_by_brute_force(beta_scores):
    source, target = beta_scores
    slack = 1.01 * sum(np.sqrt(np.log(10) / (2 * n)) for n in (len(source), len(target)))
    bins = []
    for c in target:
        s, t = (source >= c).mean(), (target >= c).mean()
        if s * len(source) > 1.5 and t * len(target) > 1.5:
            bins.append((t / s + slack / s, t / s, slack / s))
    _, ratio, margin = min(bins)
    found = best_bin_share(source, target)
    expected = (1 - ratio - margin, 1 - ratio, 1 - ratio + margin)
    assert (found.low, found.value, found.high) == pytest.approx(expected)
    assert found.method == "BBE" and found.confidence == 0.9


def test_bbe_depends_on_order_only(beta_scores):
    assert best_bin_share(*beta_scores) == best_bin_share(*map(logit, beta_scores))


def test_the_elkan_noto_ratio_is_one_of_means(beta_scores):
    source, target = beta_scores
    assert elkan_noto_share(source, target).value == pytest.approx(1 - target.mean() / source.mean())
    logits = [logit(z) for z in beta_scores]
    assert SHARE_FROM_LOGITS["en"](*logits).value == pytest.approx(elkan_noto_share(source, target).value)


@pytest.mark.parametrize("novel", [0.1, 0.3, 0.6])
def test_dedpul_recovers_the_share_of_two_overlapping_parts(novel):
    random = np.random.default_rng(0)
    n = round(2000 * novel)
    source = random.normal(2, 1, 2000)
    target = np.concatenate([random.normal(2, 1, 2000 - n), random.normal(-3, 1, n)])
    assert dedpul_share(source, target).value == pytest.approx(novel, abs=0.06)


def scores_of_a_linear_discriminator(data):
    """Logits of source against target on the halves that it is not trained on."""
    half, middle = slice(None, None, 2), slice(1, None, 2)
    rows = np.concatenate([data.X[half], data.X_target[half]])
    is_source = np.arange(len(rows)) < len(data.X[half])
    model = LogisticRegression(max_iter=500).fit(rows, is_source)
    return model.decision_function(data.X[middle]), model.decision_function(data.X_target[middle])


@pytest.mark.parametrize("seed", range(3))
def test_known_failure_a_background_shift_reads_as_novel_rows(seed):
    """Two subtypes 50/50 → 85/15, d = 20, 2000 + 2000 rows, α = .05."""
    still, moved = (
        scores_of_a_linear_discriminator(make_subtype_shift(novel_fraction=0.05, shift=shift, random_state=seed))
        for shift in (False, True)
    )
    assert best_bin_share(*still).value == pytest.approx(0.05, abs=0.07)
    assert best_bin_share(*moved).value > 0.4
    assert dedpul_share(*moved).value > 0.4
    for source, target in (still, moved):
        novelty = -source
        found = anchored_share(novelty, -target, conformal_threshold(novelty, 0.01).value)
        assert found.value == pytest.approx(0.05, abs=0.04)


@pytest.mark.parametrize("estimate", ESTIMATORS)
def test_nothing_to_estimate_from_is_not_identified(estimate):
    assert estimate([], [0.5, 0.4]).method == "not identified"
    assert estimate([0.5, 0.4], []).method == "not identified"


@pytest.mark.parametrize("estimate", [best_bin_share, elkan_noto_share])
def test_constant_scores_give_no_novel_rows(estimate):
    assert estimate(np.full(50, 0.3), np.full(40, 0.3)).value == pytest.approx(0, abs=0.002)


def test_source_below_all_target_leaves_no_bin():
    assert best_bin_share([0.1, 0.2], [0.5, 0.6]).value == 1


@given(st.integers(0, 2**31), st.integers(2, 60), st.integers(2, 60), st.floats(0.1, 20))
def test_every_estimate_is_a_share(seed, n_source, n_target, spread):
    random = np.random.default_rng(seed)
    source, target = random.normal(0, spread, n_source), random.normal(0, spread, n_target) - 1
    for estimate in ESTIMATORS:
        z = (expit(source), expit(target)) if estimate is elkan_noto_share else (source, target)
        found = estimate(*z)
        assert 0 <= found.low <= found.value <= found.high <= 1
