from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from openset.persistence.codec import decode, encode
from openset.stats.bounded_shift import Counts
from openset.stats.diagnostics import (
    Diagnostic,
    agreement_of_members,
    constraint_kept,
    dependence_on_budget,
    effective_sample_size,
    evenness_of_shift,
    score_diagnostics,
    score_weights,
    support_of_known,
    tolerated_shift,
)
from openset.stats.novelty import NoveltyTest, novelty_verdict


def found(new, distance=9.0, n=2000):
    random = np.random.default_rng(0)
    target = random.normal(size=n) + distance * (np.arange(n) < new * n)
    source = random.normal(size=n)
    verdict = novelty_verdict(source, target, max_density_ratio=12)
    return {d.name: d for d in score_diagnostics(source, target, verdict, fpr=0.01)}


def test_a_class_that_stands_apart_passes_every_check():
    checks = found(0.2)
    assert len(checks) == 4 and all(check.ok for check in checks.values())
    assert checks["separability achieved"].value > 0.8
    assert checks["tolerated shift"].value > 25


def test_without_a_new_class_nothing_stands_apart():
    checks = found(0.0)
    separability = checks["separability achieved"]
    assert not separability.ok and "better features" in separability.sentence
    assert separability.sentence.startswith(
        "All rows that stand out could be known rows that became more common."
    )
    assert checks["tolerated shift"].value == 0 and checks["tolerated shift"].ok


def test_an_answer_on_the_edge_of_the_assumption_says_so():
    check = found(0.035)["tolerated shift"]
    assert 12 / 2 < check.value < 12 * 2 and not check.ok
    assert check.sentence == (
        f"Proved as long as no known kind became more than {check.value:.1f} times as common; 12 is assumed. "
        "The two are close: ask how strong a shift is plausible here."
    )


@pytest.mark.parametrize(
    ("tolerated", "allowed", "sentence"),
    [
        (23.9, 40.0, "more than 23.9 times as common; 40 is assumed. Not proved."),
        (23.9, 12.0, "as long as no known kind became more than 23.9 times as common; 12 is assumed."),
        (0.0, 12.0, "No new class would be proved even if the known rows had not shifted at all."),
        (1000.0, 12.0, "more than 1000 times as common; 12 is assumed."),
    ],
)
def test_the_sentence_says_up_to_which_shift_it_is_proved(tolerated, allowed, sentence):
    check = tolerated_shift(NoveltyTest(0.5, allowed, Counts(0, 10, 5, 10), tolerated))
    assert sentence in check.sentence and (check.value, check.threshold) == (tolerated, allowed)


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
