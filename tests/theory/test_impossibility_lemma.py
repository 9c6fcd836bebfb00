from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openset.theory import impossibility

HALF = Fraction(1, 2)
epsilons = st.fractions(Fraction(1, 1000), Fraction(499, 1000))


@settings(max_examples=25, deadline=None)
@given(epsilons)
def test_the_lemma_holds_exactly(epsilon):
    lemma = impossibility(epsilon)
    assert lemma.same_observations
    assert lemma.opposite_answers
    for problem in (lemma.first, lemma.second):
        assert sum(problem.source_states) == sum(problem.target_states) == 1
        assert problem.strong_positivity
        assert problem.support_inclusion
        assert problem.class_risk(problem.best_rule) == 0
        assert problem.novelty_risk(tuple(int(y == 2) for y in problem.best_rule)) == 0
        assert problem.source_false_positives > 0  # what separability would forbid
    assert len(lemma.novelty_risks) == 16
    assert set(lemma.novelty_risks.values()) == {HALF}
    assert len(lemma.class_risks) == 81
    assert min(lemma.class_risks.values()) == HALF


def test_every_risk_by_hand():
    """Only states 3 and 4 are visited in target, half the time each; class 0 is the known one."""
    lemma = impossibility()
    for rule, risk in lemma.class_risks.items():
        in_first = (HALF if rule[2] != 0 else 0) + (HALF if rule[3] != 2 else 0)
        in_second = (HALF if rule[3] != 0 else 0) + (HALF if rule[2] != 2 else 0)
        assert risk == Fraction(in_first + in_second) / 2


def test_false_positives_of_the_best_rule():
    lemma = impossibility(0.1)
    epsilon = Fraction(1, 10)
    assert lemma.first.source_false_positives == epsilon * (1 - 2 * epsilon) / (1 - epsilon)
    assert lemma.second.source_false_positives == epsilon**2 / (1 - epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, -1, float("nan"), Fraction(1, 2)])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(ValueError, match="epsilon="):
        impossibility(epsilon)
