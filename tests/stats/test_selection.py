from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.selection import bounded_recall, is_feasible, paper_key

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
