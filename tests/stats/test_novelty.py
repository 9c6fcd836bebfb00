from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from openset.persistence.codec import decode, encode
from openset.stats.novelty import novelty_verdict
from openset.stats.validation_scores import ValidationScores


def scores(random, n, novel, rare, *, members=5, heads=3, distance=6.0):
    """Validation scores whose rare known rows lie as high as new ones would, up to a gap."""
    kind = random.choice(3, size=n, p=[1 - novel - rare, rare, novel])
    centre = np.array([0.0, 4.0, 4.0 + distance])[kind]
    rows = centre[:, None] + 0.8 * random.normal(size=(n, 1)) + 0.6 * random.normal(size=(n, heads))
    return tuple(np.array_split(rows, members))


def verdict_on(source, target, **options):
    return novelty_verdict(ValidationScores.of_one_score(source, target), **options)


def problem(seed, *, novel=0.0, rare=0.02, ratio=12, n=1500, **layout):
    random = np.random.default_rng(seed)
    known_rare = min(1 - novel, ratio * rare * (1 - novel))
    return ValidationScores(scores(random, n, 0, rare, **layout), scores(random, n, novel, known_rare, **layout))


@pytest.mark.slow
def test_no_alarm_at_the_worst_shift_that_is_allowed():
    words = [novelty_verdict(problem(seed)).test.word for seed in range(20)]
    # 20 draws of a test of level .05: more than 4 have a chance of 1 in 390
    assert sum(word != "none found" for word in words) <= 4 and words.count("clear") <= 2


@pytest.mark.slow
def test_an_interval_covers_a_separable_class():
    found = [novelty_verdict(problem(100 + seed, novel=0.1, ratio=6)).fraction for seed in range(10)]
    assert all(f.high_identified for f in found)
    assert sum(f.low <= 0.1 <= f.high for f in found) >= 8
    assert np.median([f.low for f in found]) > 0.05 and np.mean([f.high - f.low for f in found]) < 0.1
    assert np.mean([abs(f.value - 0.1) for f in found]) < 0.02


def test_the_profile_falls_with_the_shift_allowed():
    fraction = novelty_verdict(problem(7, novel=0.1), max_density_ratio=5).fraction
    assert list(fraction.profile) == ["1", "3", "5", "12", "30"]
    assert list(fraction.profile.values()) == sorted(fraction.profile.values(), reverse=True)
    assert fraction.low == fraction.profile["5"] and fraction.max_density_ratio == 5
    assert "more than 5 times as common" in fraction.assumptions


def test_a_shift_beyond_the_bound_gives_a_false_proof():
    """Everything depends on the assumption: the same rows prove nothing for 12 and something false for 3."""
    validation = problem(3, rare=0.04)
    assert novelty_verdict(validation).test.word == "none found"
    assert novelty_verdict(validation, max_density_ratio=3).test.word == "clear"


def test_nothing_found_has_no_upper_end():
    verdict = verdict_on(np.random.default_rng(0).normal(size=300), np.random.default_rng(1).normal(size=300))
    fraction = verdict.fraction
    assert (verdict.test.word, fraction.low, fraction.high) == ("none found", 0, 1)
    assert not fraction.high_identified and "not identified" in fraction.assumptions
    assert str(fraction).endswith("not identified]")


def test_one_member_is_split_by_its_seed():
    random = np.random.default_rng(0)
    source, target = random.normal(size=400), np.append(random.normal(size=300), random.normal(5, 1, size=100))
    assert verdict_on(source, target, seed=1) == verdict_on(source, target, seed=1)
    assert verdict_on(source, target).test.word == "clear"


def test_few_rows_prove_nothing_and_do_not_fail():
    for source, target in (([], []), ([1.0], [2.0]), ([], [1.0, 2.0]), ([1.0] * 8, [1.0] * 8)):
        verdict = verdict_on(source, target)
        assert verdict.test.p_value == 1 and verdict.fraction.low == 0


def test_it_is_stored_as_plain_data():
    verdict = novelty_verdict(problem(5, novel=0.1))
    assert decode(json.loads(json.dumps(encode(verdict, {}, "verdict"))), {}) == verdict
    assert json.loads(json.dumps(asdict(verdict)))["fraction"]["profile"]["12"] == verdict.fraction.low


def test_folders_with_the_former_names_load():
    verdict = novelty_verdict(problem(5, novel=0.1))
    stored = json.dumps(encode(verdict, {}, "verdict"))
    former = stored.replace("NoveltyVerdict", "NoveltyEvidence").replace("ShareEstimate", "ProportionEstimate")
    assert former != stored and decode(json.loads(former), {}) == verdict


@pytest.mark.parametrize("bad", [0.5, float("nan"), "12", True])
def test_a_bad_ratio_is_named(bad):
    with pytest.raises(ValueError, match="max_density_ratio"):
        verdict_on([1.0], [1.0], max_density_ratio=bad)
