from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openset.align import choose_alignment
from openset.methods._color_decision import (
    _some,
    called_threshold,
    feature_diagnostics,
    limited,
    move_diagnostic,
    separating_features,
    verdict_diagnostics,
    voice_diagnostics,
)
from openset.methods._scores_to_test import ScoresToTest
from openset.methods._voices import weigh
from openset.problem import Problem, Split
from openset.stats.bounded_shift import Counts
from openset.stats.folds import Fold
from openset.stats.novelty import NoveltyTest, novelty_verdict
from openset.stats.scaling import moments
from openset.stats.thresholds import threshold_after_choice

RANDOM = np.random.default_rng(0)
X, TARGET = RANDOM.normal(size=(60, 3)), RANDOM.normal(size=(40, 3))
FOLDS = [Fold(np.arange(30, 60), np.arange(30)), Fold(np.arange(30), np.arange(30, 60))]
TARGET_FOLDS = [Fold(np.arange(20, 40), np.arange(20)), Fold(np.arange(20), np.arange(20, 40))]


def problem(rows=X, target=TARGET, folds=FOLDS):
    split = Split(folds, TARGET_FOLDS, folds[0].validation)
    return Problem(
        rows, np.arange(60) % 2, target, 2, np.random.SeedSequence(0), split, moments(rows), moments(target)
    )


def test_all_diagnostics_of_a_verdict_are_returned():
    """Those of the heads, "constraint kept" and "agreement of members", are in test_color.py."""
    tested = ScoresToTest(RANDOM.normal(size=60), RANDOM.normal(size=40), by_heads=True)
    verdict = novelty_verdict(tested.source, tested.target)
    given = {"called_novel": np.zeros(40, bool), "fpr": 0.05}
    names = [entry.name for entry in verdict_diagnostics(tested, verdict, problem(), **given)]
    assert len(set(names)) == len(names) and {"separability achieved", "known rows far from source"} <= set(names)
    images = problem(X.reshape(60, 3, 1, 1), TARGET.reshape(40, 3, 1, 1))
    without = [entry.name for entry in verdict_diagnostics(tested, verdict, images, **given)]
    assert set(names) - set(without) == {"known rows far from source"}


def found_verdict(new=0.1):
    random = np.random.default_rng(0)
    target = random.normal(size=1000) + 9 * (np.arange(1000) < 1000 * new)
    return novelty_verdict(random.normal(size=1000), target, max_density_ratio=4)


@pytest.mark.parametrize(
    ("new", "move", "align", "trust", "limit"),
    [(0.1, 0, "auto", weigh(0.0, 0.5), ""), (0.1, 0, "auto", weigh(0.0, 0.5, mixing=0.7), "unmixed"),
     (0.1, 9, "auto", weigh(0.0, 0.5, moved=True, undone=True), "aligned"), (0.1, 0, "auto", None, ""),
     (0.1, 9, "none", weigh(0.0, 0.5, moved=True), "moved"), (0.7, 0, "auto", weigh(0.0, 0.5), "half"),
     (0.7, 9, "none", None, "moved")],
)  # fmt: skip
def test_what_limits_a_verdict_takes_its_proof_away(new, move, align, trust, limit):
    found = found_verdict(new)
    verdict = limited(found, chosen_alignment(move, align), trust, n_source=1000)
    assert found.test.code == "found" and verdict.test.limit == limit
    assert (verdict == found) if not limit else (verdict.fraction.low == 0 and not verdict.fraction.profile)
    assert verdict.test.code == {"": "found", "moved": "cannot_tell", "half": "cannot_tell"}.get(
        limit, "stands_out"
    )


def test_rows_that_were_trained_on_prove_nothing():
    """With one class for each row, every row is in every training set, and validation rows are training rows."""
    verdict = limited(found_verdict(), None, None, n_source=60)
    assert verdict.test.limit == "seen" and verdict.test.code == "cannot_tell"


@pytest.mark.parametrize(
    ("times", "plus", "limit"), [(1, 0, ""), ([1, 1000, 1], 0, "column"), (1, [0, 0, 9], "column")]
)
def test_a_feature_that_alone_tells_the_domains_apart_takes_the_proof_away_and_is_named(times, plus, limit):
    separating = separating_features(problem(target=TARGET * times + plus))
    verdict = limited(found_verdict(), None, weigh(0.0, 0.5), n_source=1000, separating=separating)
    assert verdict.test.limit == limit and verdict.test.code == ("cannot_tell" if limit else "found")
    named = feature_diagnostics(verdict.test, separating)
    assert [entry.ok for entry in named] == ([False] if limit else [])
    assert all(": 1." in entry.sentence or ": 2." in entry.sentence for entry in named)


def test_images_have_no_feature_that_tells_domains_apart():
    images = problem(X.reshape(60, 3, 1, 1), 99 + TARGET.reshape(40, 3, 1, 1))
    assert separating_features(images) == []


def test_rows_are_called_where_the_evidence_is_strongest_within_the_budget():
    source = np.arange(1000.0)
    budget = threshold_after_choice(source, 0.01)
    test = NoveltyTest(0.001, 12.0, Counts(2, 1000, 80, 500), 14.0)
    assert called_threshold(budget, source, test) == 997 > budget.value
    many = replace(test, counts=Counts(33, 1000, 80, 500))
    assert called_threshold(budget, source, many) == budget.value, "never more than the budget"
    nothing = replace(test, p_value=1.0, tolerated_ratio=0.0)
    assert called_threshold(budget, source, nothing) == budget.value


def chosen_alignment(move, align="auto"):
    rows = np.random.default_rng(1).normal(size=(600, 4))
    return choose_alignment(rows[:300], np.arange(300) % 2, rows[300:] + move, align)


@pytest.mark.parametrize(
    ("move", "align", "passed", "words"),
    [(0, "auto", True, "the whole batch moved."), (9, "auto", False, "It was aligned with source"),
     (9, "none", False, "It was not aligned")],
)  # fmt: skip
def test_a_moved_batch_is_stated_with_its_overlap(move, align, passed, words):
    alignment = chosen_alignment(move, align)
    moved = move_diagnostic(alignment)
    assert moved.name == "batch that moved" and moved.ok is passed and words in moved.sentence
    assert (moved.value, moved.threshold) == (alignment.before.overlap, alignment.before.limit)
    assert f"at most {100 * alignment.before.overlap:.0f} %" in moved.sentence


def test_an_alignment_that_did_not_help_is_stated():
    aligned = chosen_alignment(9)
    stated = move_diagnostic(replace(aligned, after=aligned.before))
    assert "Aligning it did not undo this" in stated.sentence and not stated.ok


@pytest.mark.parametrize(
    ("trust", "lead"),
    [(weigh(0.0, 0.5), "the novelty heads"), (weigh(9.0, 0.0), "distances to source"),
     (weigh(9.0, 1.0), "the novelty heads"), (weigh(0.0, 0.5, moved=True), "distances to source")],
)  # fmt: skip
@pytest.mark.parametrize(("by_heads", "test"), [(True, "by the heads."), (False, "by distances.")])
def test_it_is_stated_what_the_score_follows_and_what_is_tested(trust, lead, by_heads, test):
    voices = voice_diagnostics(trust, by_heads, moved=False)[1]
    assert voices.name == "voices" and voices.value == trust.coherence and voices.ok is True
    assert f"The score follows {lead}" in voices.sentence and f"{100 * trust.agreement:.0f} %" in voices.sentence
    assert f"The test is {test}" in voices.sentence


@pytest.mark.parametrize(
    ("signs", "move", "reason"),
    [((0.3, 0.1), 0, "to source, because the rows far from source form a group (0.30; it does from 0.21 on)"),
     ((0.05, 0.1), 0, "heads, because the rows far from source do not form a group (0.05; it does from 0.21 on)"),
     ((0.30, 0.1, 0, 1.0, 9.0), 0, "heads, because known kinds became up to 9.0 times as common"),
     ((0.05, 0.1, 0, 0.7, 9.0), 0, "heads, because known kinds became up to 9.0 times as common"),
     ((0.05, 0.1, 0, 0.7, 1.0), 0, "to source, because source and target rows do not mix"),
     ((0.30, 0.9), 0, "heads, because distances to source agree with them"),
     ((0.30, 0.9), 9, "because the whole batch moved")],
)  # fmt: skip
def test_the_reason_is_the_sign_that_decided(signs, move, reason):
    trust = weigh(*signs, moved=bool(move))
    assert reason in voice_diagnostics(trust, True, moved=bool(move))[1].sentence


def test_the_strongest_limit_counts():
    """After "aligned" and "unmixed" a group may still stand out; after the others nothing can be told."""
    odd = separating_features(problem(target=TARGET + np.array([9, 0, 0])))
    unmixed, aligned, unmoved = weigh(0.0, 0.5, mixing=0.7), chosen_alignment(9), chosen_alignment(0)
    half, some = found_verdict(0.7), found_verdict()
    for found, alignment, n_source, separating, limit in (
        (half, unmoved, 1000, (), "half"),
        (half, aligned, 1000, (), "half"),
        (some, unmoved, 60, (), "seen"),
        (some, aligned, 60, odd, "seen"),
        (half, unmoved, 60, odd, "column"),
        (half, chosen_alignment(9, "none"), 60, odd, "moved"),
        (some, aligned, 1000, odd, "aligned"),
        (some, unmoved, 1000, (), "unmixed"),
    ):
        verdict = limited(found, alignment, unmixed, n_source=n_source, separating=separating)
        assert verdict.test.limit == limit


@pytest.mark.parametrize("mixing", [0.7, 0.95])
def test_it_is_stated_whether_the_domains_mix(mixing):
    stated = voice_diagnostics(weigh(0.0, 0.5, mixing=mixing), True, moved=False)[0]
    assert stated.name == "mixing of the domains" and stated.value == mixing and stated.ok is (mixing > 0.9)
    assert ("kinds of its own" in stated.sentence) is (mixing < 0.9)


def test_many_rows_are_thinned_evenly_from_first_to_last():
    rows = np.arange(5000)[:, None]
    kept = _some(rows)
    assert len(kept) == 1000 and kept[0] == 0 and kept[-1] == 4999 and np.diff(kept[:, 0]).max() <= 6
    assert kept.dtype == np.float64 and len(_some(rows[:1000])) == 1000
