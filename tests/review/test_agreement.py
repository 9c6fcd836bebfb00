from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from openset.review.agreement import kappa, mean_kappa


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_kappa_is_that_of_scikit_learn(pairs):
    first, second = np.array(pairs).T
    if len(set(first) | set(second)) > 1:
        assert kappa(pairs) == pytest.approx(cohen_kappa_score(first, second, labels=[False, True]))
    else:
        assert kappa(pairs) == 1


def test_three_people_are_compared_in_pairs():
    rows = {i: {"a": i < 5, "b": i < 5, "c": i < 7} for i in range(10)}
    found, common = mean_kappa(rows)
    of_others = kappa([(i < 5, i < 7) for i in range(10)])
    assert found == pytest.approx((1 + 2 * of_others) / 3) and common == 10


def test_one_person_has_nobody_to_agree_with():
    assert mean_kappa({1: {"a": True}}) == (None, 0)
