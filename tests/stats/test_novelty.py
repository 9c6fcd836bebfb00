from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.persistence.codec import decode, encode
from openset.stats.bounded_shift import Counts
from openset.stats.novelty import MAX_DENSITY_RATIO, NoveltyTest, novelty_verdict, plausible_ratio


def scores(random, n, novel, rare, distance=6.0):
    """Scores whose rare known rows lie as high as new ones would, up to a gap."""
    kind = random.choice(3, size=n, p=[1 - novel - rare, rare, novel])
    return np.array([0.0, 4.0, 4.0 + distance])[kind] + random.normal(size=n)


def problem(seed, *, novel=0.0, rare=0.02, ratio=12, n=1500):
    random = np.random.default_rng(seed)
    known_rare = min(1 - novel, ratio * rare * (1 - novel))
    return scores(random, n, 0, rare), scores(random, n, novel, known_rare)


def test_no_alarm_at_the_worst_shift_that_is_allowed():
    codes = [novelty_verdict(*problem(seed), max_density_ratio=12).test.code for seed in range(40)]
    # 40 draws of a test of level .05: more than 6 have a chance of 1 in 300
    assert sum(code in ("found", "probable") for code in codes) <= 6 and codes.count("found") <= 1


def test_a_separate_class_is_found_and_bounded_from_below():
    rows = [problem(100 + seed, novel=0.1, ratio=6) for seed in range(10)]
    found = [novelty_verdict(*each) for each in rows]
    assert {verdict.test.code for verdict in found} <= {"found", "probable"}, "with the fixed ratio of 12"
    assert {novelty_verdict(*each, max_density_ratio=9).test.code for each in rows} == {"found"}
    assert all(verdict.fraction.low <= 0.1 for verdict in found)
    assert np.median([verdict.fraction.low for verdict in found]) > 0.05


def test_there_is_no_upper_end():
    fraction = novelty_verdict(*problem(7, novel=0.1)).fraction
    assert fraction.high == 1 and not fraction.high_identified and fraction.low <= fraction.value


def test_the_profile_falls_with_the_shift_allowed():
    fraction = novelty_verdict(*problem(7, novel=0.1), max_density_ratio=5).fraction
    assert list(fraction.profile) == ["1", "3", "5", "12", "30"]
    assert list(fraction.profile.values()) == sorted(fraction.profile.values(), reverse=True)
    assert fraction.low == fraction.profile["5"] and fraction.max_density_ratio == 5
    assert "more than 5 times as common" in fraction.assumptions


def test_what_is_proved_for_a_bound_does_not_depend_on_the_bound_that_was_asked_for():
    """Told B = 5, the same rows prove for 12 what the run at 12 proves."""
    rows = problem(7, novel=0.1)
    profiles = [novelty_verdict(*rows, max_density_ratio=ratio).fraction.profile for ratio in (5, 12)]
    assert profiles[0]["12"] == profiles[1]["12"] and profiles[0]["3"] == profiles[1]["3"]


def test_a_shift_beyond_the_bound_gives_a_false_proof():
    """Everything depends on the assumption: the same rows prove nothing for 12 and something false for 3."""
    rows = problem(3, rare=0.04)
    assert novelty_verdict(*rows, max_density_ratio=12).test.code in ("stands_out", "nothing")
    assert novelty_verdict(*rows, max_density_ratio=3).test.code in ("found", "probable")


def test_the_threshold_is_where_the_evidence_is_strongest():
    source, target = problem(7, novel=0.1)
    verdict = novelty_verdict(source, target)
    counts = verdict.test.counts
    assert (source > verdict.threshold).sum() == counts.source_above
    assert (target > verdict.threshold).sum() == counts.target_above


# ---------------------------------------------------------------------- the ratio


@pytest.mark.parametrize("seed", range(4))
def test_the_ratio_follows_the_shift_that_can_be_seen(seed):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(2, 3000))
    assert plausible_ratio(*rows, 1.0) == pytest.approx(6, abs=1.2), "nothing moved: six times is allowed"
    known = np.concatenate([rows[0], random.normal(8, 1, size=300)])  # a kind that becomes five times as common
    assert plausible_ratio(known, np.concatenate([rows[1], random.normal(8, 1, size=3000)]), 1.0) == 12
    far = np.concatenate([rows[1][:1000], random.normal(8, 1, size=4000)])  # and one that becomes 25 times
    assert plausible_ratio(np.concatenate([rows[0], random.normal(8, 1, size=100)]), far, 1.0) > 20


@given(st.integers(200, 5000), st.floats(1, 40))
def test_less_rows_and_more_growth_allow_more(n, growth):
    rows = np.random.default_rng(0).normal(size=(2, 5000))
    ratio = plausible_ratio(rows[0][:n], rows[1], growth)
    assert ratio >= plausible_ratio(rows[0], rows[1], 1.0) - 1.0 and ratio >= round(1.5 * growth, 1) - 0.1
    assert plausible_ratio(rows[0][:n], rows[1], growth + 1) >= ratio
    assert n > 500 or ratio >= 11.9


def test_few_rows_use_the_fixed_ratio():
    rows = np.random.default_rng(0).normal(size=(2, 199))
    assert plausible_ratio(*rows, 1.0) == MAX_DENSITY_RATIO


def test_a_ratio_that_is_given_is_used():
    assert novelty_verdict(*problem(7), max_density_ratio=7.5).test.max_density_ratio == 7.5
    rows = problem(7)
    assert novelty_verdict(*rows, growth=3.0).test.max_density_ratio == plausible_ratio(*rows, 3.0)
    assert novelty_verdict(*rows).test.max_density_ratio == MAX_DENSITY_RATIO, "nothing was looked for"


# ---------------------------------------------------------------------- codes


TEST = NoveltyTest(0.5, 12.0, Counts(0, 10, 5, 10))


@pytest.mark.parametrize(
    ("p", "tolerated", "limit", "code"),
    [(1e-9, 36.0, "", "found"), (1e-9, 35.9, "", "probable"), (0.05, 12.0, "", "probable"),
     (0.06, 11.9, "", "stands_out"), (0.06, 4.81, "", "stands_out"), (0.9, 4.7, "", "nothing"),
     (1.0, 0.0, "", "nothing"), (0.001, 15.0, "aligned", "stands_out"), (0.001, 15.0, "unmixed", "stands_out"),
     (1.0, 0.0, "unmixed", "nothing"), (0.001, 15.0, "moved", "cannot_tell"), (1.0, 0.0, "moved", "cannot_tell"),
     (0.001, 99.0, "half", "cannot_tell")],
)  # fmt: skip
def test_codes(p, tolerated, limit, code):
    assert replace(TEST, p_value=p, tolerated_ratio=tolerated, limit=limit).code == code


@given(st.floats(1, 50), st.floats(1, 50), st.floats(0, 100))
def test_a_larger_ratio_never_makes_a_stronger_word(one, other, tolerated):
    words = ("nothing", "stands_out", "probable", "found")
    low, high = (
        words.index(NoveltyTest(0.01 if tolerated >= ratio else 0.2, ratio, TEST.counts, tolerated).code)
        for ratio in sorted((one, other))
    )
    assert low >= high


def test_few_rows_prove_nothing_and_do_not_fail():
    for source, target in (([], []), ([1.0], [2.0]), ([], [1.0, 2.0]), ([1.0] * 8, [1.0] * 8)):
        verdict = novelty_verdict(source, target)
        assert verdict.test.p_value == 1 and verdict.fraction.low == 0 and verdict.test.code == "nothing"


def test_it_is_stored_as_plain_data():
    verdict = novelty_verdict(*problem(5, novel=0.1), max_density_ratio=12)
    assert decode(json.loads(json.dumps(encode(verdict, {}, "verdict"))), {}) == verdict
    assert json.loads(json.dumps(asdict(verdict)))["fraction"]["profile"]["12"] == verdict.fraction.low


def test_folders_with_the_former_names_load():
    verdict = novelty_verdict(*problem(5, novel=0.1))
    stored = json.dumps(encode(verdict, {}, "verdict"))
    former = stored.replace("NoveltyVerdict", "NoveltyEvidence").replace("ShareEstimate", "ProportionEstimate")
    assert former != stored and decode(json.loads(former), {}) == verdict


@pytest.mark.parametrize("bad", [0.5, float("nan"), None, True])
def test_a_bad_ratio_is_named(bad):
    with pytest.raises(ValueError, match="max_density_ratio"):
        novelty_verdict([1.0], [1.0], max_density_ratio=bad)
