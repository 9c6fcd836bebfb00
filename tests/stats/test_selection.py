from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from openset.stats.selection import bounded_recall, is_feasible, paper_key, penalised_recall

rates = st.integers(0, 20).map(lambda v: v / 20)


@given(st.lists(st.tuples(rates, rates), min_size=1, max_size=40), st.sampled_from([0.01, 0.05, 0.3]))
def test_the_key_is_algorithm_1(pairs, budget):
    """The first of the highest recalls among pairs strictly within the budget, else the first lowest FPR."""
    fpr, recall = np.array(pairs).T
    feasible = [i for i in range(len(pairs)) if fpr[i] < budget]
    if feasible:
        expected = max(feasible, key=lambda i: (recall[i], -i))
    else:
        expected = min(range(len(pairs)), key=lambda i: (fpr[i], i))
    keys = paper_key(fpr, recall, budget)
    assert int(keys.argmax()) == expected
    assert is_feasible(keys).tolist() == (fpr < budget).tolist()


def test_the_budget_is_strict():
    assert not is_feasible(paper_key([0.01], [1.0], 0.01))[0]
    assert is_feasible(paper_key([0.0099], [0.0], 0.01))[0]


def test_separated_mass_rewards_novelty_and_not_shift():
    random = np.random.default_rng(0)
    source = random.normal(size=4000)
    novel = np.where(random.random(4000) < 0.2, 9, random.normal(size=4000))
    assert 0.15 < bounded_recall(source, novel) <= 0.2 + 0.02
    # a subtype that is 5 % of source and 40 % of target, ratio 8: shift, not novelty
    rare = np.where(random.random(4000) < 0.05, 9, source)
    grown = np.where(random.random(4000) < 0.4, 9, random.normal(size=4000))
    assert bounded_recall(rare, grown, ratio=10) == 0
    assert bounded_recall([], [1.0]) == 0


@given(
    source=arrays(np.float64, st.integers(5, 40), elements=st.floats(-12, 8)),
    target=arrays(np.float64, st.integers(5, 40), elements=st.floats(-12, 8)),
    ratio=st.floats(1, 40),
)
def test_penalised_recall_is_the_best_offset_of_the_two_means(source, target, ratio):
    def at(offset):
        gain = (1 / (1 + np.exp(-target - offset))).mean()
        return gain - ratio / 2 * np.logaddexp(0, source + offset).mean()

    exact = max(at(offset) for offset in np.linspace(-6, 4, 21))
    assert penalised_recall(source, target, ratio) == pytest.approx(exact, abs=0.02 * ratio)
    order = np.random.default_rng(0).permutation(len(source))
    assert penalised_recall(source[order], target, ratio) == penalised_recall(source, target, ratio)


def test_rows_that_became_as_common_as_the_ratio_allows_do_not_pay():
    random = np.random.default_rng(0)
    rare, common = random.normal(3, 0.5, 4000), random.normal(-6, 0.5, 4000)
    source = np.concatenate([rare[:100], common[:1900]])  # 5 % rare in source, 40 % in target: a ratio of 8
    shifted = np.concatenate([rare[:800], common[:1200]])
    novel = np.concatenate([common[:1900], random.normal(8, 0.5, 100)])
    assert penalised_recall(source, shifted, 12) < 0.01 < 0.025 < penalised_recall(source - 6, novel - 6, 12)
