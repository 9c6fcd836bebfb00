from __future__ import annotations

import numpy as np
import pytest

from openset.align import choose_alignment
from openset.methods._color_decision import _some, validation_scores, verdict_diagnostics, voice_diagnostics
from openset.methods._heads import FitHeads, RowOutputs
from openset.methods._voices import weigh
from openset.problem import Problem, Split
from openset.stats.folds import Fold
from openset.stats.neighbours import distance_score
from openset.stats.novelty import novelty_verdict
from openset.stats.scaling import moments

RANDOM = np.random.default_rng(0)
X, TARGET = RANDOM.normal(size=(60, 3)), RANDOM.normal(size=(40, 3))
FOLDS = [Fold(np.arange(30, 60), np.arange(30)), Fold(np.arange(30), np.arange(30, 60))]
TARGET_FOLDS = [Fold(np.arange(20, 40), np.arange(20)), Fold(np.arange(20), np.arange(20, 40))]
NOVELTY, TARGET_NOVELTY = RANDOM.normal(size=(2, 60, 4)), RANDOM.normal(size=(2, 40, 4))


def problem(rows=X, target=TARGET, folds=FOLDS):
    split = Split(folds, TARGET_FOLDS, folds[0].validation)
    return Problem(
        rows, np.arange(60) % 2, target, 2, np.random.SeedSequence(0), split, moments(rows), moments(target)
    )


@pytest.fixture
def heads():
    return FitHeads(RowOutputs(np.arange(60), {"novelty": NOVELTY}), {"novelty": TARGET_NOVELTY})


def test_each_members_validation_rows_are_scored_by_its_heads_and_by_distance(heads):
    scores = validation_scores(heads, problem())
    assert len(scores.source) == len(scores.target) == 2
    for member, (fold, of_target) in enumerate(zip(FOLDS, TARGET_FOLDS, strict=True)):
        np.testing.assert_array_equal(scores.source[member][:, :4], NOVELTY[member, fold.validation])
        np.testing.assert_array_equal(scores.target[member][:, :4], TARGET_NOVELTY[member, of_target.validation])
        own = X[fold.train]
        np.testing.assert_array_equal(scores.source[member][:, 4], distance_score(own, X[fold.validation]))
        np.testing.assert_array_equal(
            scores.target[member][:, 4], distance_score(own, TARGET[of_target.validation])
        )


def test_rows_that_are_no_vectors_and_few_rows_have_no_distance(heads):
    images, target_images = X.reshape(60, 3, 1, 1), TARGET.reshape(40, 3, 1, 1)
    assert validation_scores(heads, problem(images, target_images)).source[0].shape == (30, 4)
    few = [Fold(np.arange(4), FOLDS[0].validation), Fold(np.arange(5), FOLDS[1].validation)]
    scores = validation_scores(heads, problem(folds=few))
    assert {part.shape[1] for part in (*scores.source, *scores.target)} == {4}, "no member or all"


def test_all_diagnostics_of_a_verdict_are_returned(heads):
    """Those of the heads, "constraint kept" and "agreement of members", are in test_color.py."""
    scores = validation_scores(heads, problem())
    verdict = novelty_verdict(scores, max_density_ratio=12)
    given = {"called_novel": np.zeros(40, bool), "fpr": 0.05}
    names = [entry.name for entry in verdict_diagnostics(scores, verdict, problem(), **given)]
    assert len(set(names)) == len(names) and {"separability achieved", "known rows far from source"} <= set(names)
    images = problem(X.reshape(60, 3, 1, 1), TARGET.reshape(40, 3, 1, 1))
    without = [entry.name for entry in verdict_diagnostics(scores, verdict, images, **given)]
    assert set(names) - set(without) == {"known rows far from source"}


def chosen_alignment(move, align="auto"):
    rows = np.random.default_rng(1).normal(size=(600, 4))
    return choose_alignment(rows[:300], np.arange(300) % 2, rows[300:] + move, align)


@pytest.mark.parametrize(
    ("move", "align", "passed", "words"),
    [(0, "auto", True, "the whole batch moved."), (9, "auto", False, "It was aligned with source"),
     (9, "none", False, "Aligning it did not undo this")],
)  # fmt: skip
def test_a_moved_batch_is_stated_with_its_overlap(move, align, passed, words):
    alignment = chosen_alignment(move, align)
    moved = voice_diagnostics(alignment, weigh(0.0, 0.5, moved=bool(move)), proved_by_heads=not move)[0]
    assert moved.name == "batch that moved" and moved.ok is passed and words in moved.sentence
    assert (moved.value, moved.threshold) == (alignment.before.overlap, alignment.before.limit)
    assert f"at most {100 * alignment.before.overlap:.0f} %" in moved.sentence


@pytest.mark.parametrize(
    ("trust", "lead"),
    [(weigh(0.0, 0.5), "the novelty heads"), (weigh(9.0, 0.0), "distances to source"),
     (weigh(9.0, 1.0), "the novelty heads"), (weigh(0.0, 0.5, moved=True), "distances to source")],
)  # fmt: skip
@pytest.mark.parametrize(("by_heads", "test"), [(True, "by the heads."), (False, "by distances, because")])
def test_it_is_stated_what_the_score_follows_and_what_is_tested(trust, lead, by_heads, test):
    voices = voice_diagnostics(chosen_alignment(0), trust, by_heads)[1]
    assert voices.name == "voices" and voices.value == trust.coherence and voices.ok is True
    assert f"The score follows {lead}" in voices.sentence and f"{100 * trust.agreement:.0f} %" in voices.sentence
    assert f"The test is {test}" in voices.sentence


def test_many_rows_are_thinned_evenly_from_first_to_last():
    rows = np.arange(5000)[:, None]
    kept = _some(rows)
    assert len(kept) == 2000 and kept[0] == 0 and kept[-1] == 4999 and np.diff(kept[:, 0]).max() <= 3
    assert kept.dtype == np.float64 and len(_some(rows[:2000])) == 2000
