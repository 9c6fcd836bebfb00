from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from openset.persistence.codec import decode, encode
from openset.stats.diagnostics import (
    Diagnostic,
    agreement_of_members,
    constraint_kept,
    dependence_on_budget,
    diagnose_scores,
    effective_sample_size,
    evenness_of_shift,
    score_weights,
    support_of_known,
)
from openset.stats.held_out import HeldOutScores
from openset.stats.novelty import assess_novelty


def found(new, distance=9.0, n=2000):
    random = np.random.default_rng(0)
    target = random.normal(size=n) + distance * (np.arange(n) < new * n)
    held_out = HeldOutScores.of_one_score(random.normal(size=n), target)
    return {d.name: d for d in diagnose_scores(held_out, assess_novelty(held_out), fpr=0.01)}


def test_a_class_that_stands_apart_passes_every_check():
    checks = found(0.2)
    assert len(checks) == 4 and all(check.ok for check in checks.values())
    assert checks["separability achieved"].value > 0.8
    assert checks["shift that the answer bears"].value > 30


def test_without_a_new_class_nothing_stands_apart():
    checks = found(0.0)
    assert (
        not checks["separability achieved"].ok and "better features" in checks["separability achieved"].sentence
    )
    assert checks["shift that the answer bears"].value == 0 and checks["shift that the answer bears"].ok


def test_an_answer_on_the_edge_of_the_assumption_says_so():
    check = found(0.035)["shift that the answer bears"]
    assert 12 / 2.5 < check.value < 12 * 2.5 and not check.ok and "close to the 12 times" in check.sentence


def test_the_budget_matters_where_scores_have_no_gap():
    random = np.random.default_rng(1)
    source = random.normal(size=2000)
    assert dependence_on_budget(source, np.append(source[:900], np.full(100, 9.0)), 0.01).ok
    assert not dependence_on_budget(source, random.normal(0.3, 1, size=2000), 0.01).ok


def test_effective_sample_size_of_a_known_shift():
    random = np.random.default_rng(2)
    source = random.random(20000) < 0.1
    target = random.random(20000) < 0.9
    weights = score_weights(source, target)
    exact = 1 / (0.9**2 / 0.1 + 0.1**2 / 0.9)
    assert effective_sample_size(weights) / 20000 == pytest.approx(exact, rel=0.05)
    assert not evenness_of_shift(source, target).ok and evenness_of_shift(source, source).value == 1
    assert np.mean(weights) == pytest.approx(1)


def test_support_agreement_and_constraints():
    random = np.random.default_rng(3)
    rows = random.normal(size=(300, 2))
    assert support_of_known(rows, random.normal(size=(100, 2))).ok
    assert not support_of_known(rows, random.normal(size=(100, 2)) + 9).ok
    assert support_of_known(rows[:1], rows).ok  # nothing to compare with
    scores = random.normal(size=200)
    assert agreement_of_members([scores, 3 * scores + 1], 0.1).value == 1
    assert not agreement_of_members([scores, -scores, random.normal(size=200)], 0.1).ok
    assert constraint_kept(0.06, 0.1).ok and not constraint_kept(0.04, 0.1).ok
    with pytest.raises(ValueError, match="two members or more"):
        agreement_of_members([scores], 0.1)


def test_a_diagnostic_is_plain_data():
    check = constraint_kept(0.04, 0.1)
    assert set(asdict(check)) == {"name", "value", "threshold", "ok", "sentence"}
    stored = json.loads(json.dumps(encode([check], {}, "d")))
    assert decode(stored, {}) == [check] and isinstance(check, Diagnostic)
