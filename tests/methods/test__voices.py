from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_problems import make_classes
from openset.methods import _voices
from openset.methods._distances import Views
from openset.methods._voices import (
    _AGREEING,
    _CONTAINED,
    _GROWN,
    _MORE_COHERENT,
    _MUCH_GROWN,
    COHERENT,
    FEWEST_ROWS,
    MIXED,
    fit_voices,
    has_voices,
    number_of_neighbours,
    weigh,
)
from openset.stats.metrics import auprc
from openset.stats.scaling import fit_scaling, moments
from openset.stats.tail_ranks import fit_tail_rank

N, NEW = 150, 15
SHARES = st.floats(0, 1)


def as_given(rows):
    return Views(rows, rows)


def fit(X, y, target, heads, *, aligned=None, moved=False):
    views = as_given(target) if aligned is None else Views(target, aligned)
    scaling = fit_scaling(moments(X), moments(target), "auto")
    return fit_voices(as_given(X), y, views, scaling, heads, np.random.SeedSequence(0), moved=moved)


@pytest.fixture(scope="module")
def group():
    """A target with a small new group far from source, and heads that hear nothing of it."""
    random = np.random.default_rng(0)
    X, y = make_classes(200)
    target = make_classes(N, seed=2)[0]
    target[:NEW] = 8 * np.eye(12)[7] + 0.5 * random.normal(size=(NEW, 12))
    heads = random.normal(size=N)
    return SimpleNamespace(
        X=X, y=y, target=target, heads=heads, is_new=np.arange(N) < NEW, fitted=fit(X, y, target, heads)
    )


# ---------------------------------------------------------------------- trust


def test_heads_are_followed_alone_if_the_far_rows_form_no_group():
    for agreement in (0.0, 0.5, 1.0):
        trust = weigh(COHERENT[0], agreement)
        assert (trust.heads, trust.distances, trust.distances_lead) == (1, 0, False)


def test_distances_are_followed_alone_if_the_batch_moved_and_alignment_did_not_undo_it():
    for coherence, agreement in ((-0.2, 0.0), (0.9, 1.0)):
        trust = weigh(coherence, agreement, moved=True)
        assert (trust.heads, trust.distances, trust.distances_lead) == (0, 1, True)
        assert not trust.heads_prove
        assert weigh(coherence, agreement, undone=True) == weigh(coherence, agreement), "there was no move"


def test_distances_lead_in_an_aligned_batch_unless_heads_agree():
    for coherence in (-0.2, 0.9):
        against, along = (weigh(coherence, agreement, moved=True, undone=True) for agreement in _AGREEING)
        assert against.distances == along.distances == 1
        assert against.distances_lead and against.heads == 0 < 1 < along.heads


def test_distances_lead_if_the_far_rows_form_a_group_and_both_count_if_they_agree():
    against, along = (weigh(COHERENT[1], agreement) for agreement in _AGREEING)
    assert against.distances == along.distances == 1
    assert against.distances_lead and against.heads == 0
    assert along.heads > 1 and not along.distances_lead


def test_heads_count_beside_distances_if_their_highest_rows_all_lie_far_from_source():
    """Rows of a class larger than those looked at: both are right, and overlap little."""
    apart, within = (weigh(COHERENT[1], 0.2, containment) for containment in _CONTAINED)
    assert apart.heads == 0 and within.heads == within.distances == 1
    assert not within.heads_prove, "only agreement lets heads prove a new class"


def test_distances_lead_if_the_domains_do_not_mix():
    for mixing, lead in ((MIXED[0], 1), (MIXED[1], 0)):
        trust = weigh(0.0, 0.0, mixing=mixing)
        assert trust.distances == lead and trust.is_mixed is not bool(lead) and trust.mixing == mixing
    assert not weigh(0.0, 0.0, mixing=MIXED[0]).heads_prove and weigh(0.0, 0.0, mixing=MIXED[1]).heads_prove


def test_heads_prove_a_new_class_unless_a_group_far_from_source_contradicts_them():
    assert weigh(0.0, 0.0).heads_prove
    low, high = COHERENT
    assert weigh(low + 0.4 * (high - low), 0.0).heads_prove, "distances are heard, but the score follows heads"
    assert not weigh(low + 0.6 * (high - low), 0.0).heads_prove
    assert not weigh(0.9, 0.0).heads_prove and weigh(0.9, 1.0).heads_prove


def test_heads_of_an_aligned_batch_prove_only_what_distances_agree_with():
    assert not weigh(0.0, 0.0, moved=True, undone=True).heads_prove
    assert weigh(0.0, 1.0, moved=True, undone=True).heads_prove
    assert not weigh(0.0, 1.0, moved=True, undone=False).heads_prove


def test_growth_of_known_kinds_explains_low_mixing_and_a_far_group_in_such_a_batch():
    """Rare kinds that became common are far from source and coherent, and their neighbourhoods do not mix."""
    for growth, lead in ((_GROWN[0], 1), (_GROWN[1], 0)):
        for coherence in (0.0, COHERENT[1]):
            trust = weigh(coherence, 0.0, mixing=MIXED[0], growth=growth)
            assert trust.distances == lead and trust.growth == growth
            assert not trust.is_mixed, "the verdict stays limited: nothing can be proved there"
    assert weigh(COHERENT[1], 0.0, mixing=MIXED[1], growth=_MUCH_GROWN[0]).distances == 1, "a group counts"
    assert weigh(0.0, 0.0, growth=99.0, moved=True).heads == 0, "growth does not explain a move"


def test_where_kinds_grew_much_a_far_group_that_heads_do_not_see_must_be_more_coherent():
    unseen, seen = _AGREEING
    assert weigh(COHERENT[1], unseen, growth=_MUCH_GROWN[1]).distances == 0
    assert weigh(COHERENT[1], seen, growth=_MUCH_GROWN[1]).distances == 1
    needed = weigh(0.0, unseen, growth=_MUCH_GROWN[1]).coherence_needed
    assert needed == pytest.approx(COHERENT[1] + _MORE_COHERENT)
    assert weigh(needed, unseen, growth=_MUCH_GROWN[1]).distances == pytest.approx(1)
    assert weigh(0.0, unseen, growth=_MUCH_GROWN[0]).coherence_needed == COHERENT[1]


FLAGS = {
    "moved": st.booleans(),
    "undone": st.booleans(),
    "containment": SHARES,
    "mixing": st.floats(0, 1.2),
    "growth": st.floats(1, 20),
}


@given(st.floats(-1, 1), SHARES, st.fixed_dictionaries(FLAGS))
def test_weights_are_bounded_and_say_what_they_come_from(coherence, agreement, flags):
    trust = weigh(coherence, agreement, **flags)
    assert 0 <= trust.distances <= 1 and trust.heads >= 0 and trust.heads + trust.distances >= 1
    assert (trust.coherence, trust.agreement) == (coherence, agreement)


@given(st.floats(-1, 1), st.floats(-1, 1), SHARES, SHARES, st.fixed_dictionaries(FLAGS))
def test_more_coherence_is_more_trust_in_distances_and_more_agreement_in_heads(one, other, agree, less, flags):
    low, high = (weigh(value, agree, **flags) for value in sorted((one, other)))
    assert low.distances <= high.distances
    low, high = (weigh(one, value, **flags) for value in sorted((agree, less)))
    assert low.heads <= high.heads and low.distances == high.distances


def test_voices_need_vectors_and_some_rows_of_each_domain():
    def problem(n, n_target, shape=(3,)):
        return SimpleNamespace(X=np.zeros((n, *shape)), target=np.zeros((n_target, *shape)))

    assert has_voices(problem(FEWEST_ROWS, FEWEST_ROWS))
    assert not has_voices(problem(FEWEST_ROWS - 1, 1000)) and not has_voices(problem(1000, FEWEST_ROWS - 1))
    assert not has_voices(problem(1000, 1000, (3, 8, 8)))


def test_scores_are_smoothed_over_more_rows_of_a_larger_target(group):
    assert number_of_neighbours(N) == group.fitted.voices.surroundings.number == 10
    assert number_of_neighbours(100_000) == 20


# ---------------------------------------------------------------------- the score


def test_a_group_far_from_source_is_followed_against_heads_that_do_not_hear_it(group):
    voices = group.fitted.voices
    assert voices.trust.distances_lead and voices.trust.coherence > COHERENT[1]
    score = voices.score(as_given(group.target), group.heads)
    assert auprc(group.is_new, group.heads) < 0.3 < 0.95 < auprc(group.is_new, score)


def test_heads_are_followed_if_no_group_is_far_from_source(group):
    known = group.target[NEW:]
    voices = fit(group.X, group.y, known, group.heads[NEW:]).voices
    assert (voices.trust.heads, voices.trust.distances) == (1, 0)
    changed = replace(voices, ranks=(), distances=())  # not needed for the score
    scores = [one.score(as_given(known), group.heads[NEW:]) for one in (voices, changed)]
    np.testing.assert_array_equal(*scores)


def test_a_moved_batch_does_not_hear_the_heads(group):
    fitted = fit(group.X, group.y, group.target + 9, group.heads, aligned=group.target, moved=True)
    voices, views = fitted.voices, Views(group.target + 9, group.target)
    assert (voices.trust.heads, voices.trust.distances) == (0, 1)
    np.testing.assert_array_equal(voices.score(views, group.heads), voices.score(views, -group.heads))
    assert auprc(group.is_new, voices.score(views, group.heads)) > 0.95


def test_the_test_hears_aligned_rows_only(group):
    """As they were, all rows of a moved batch are far from source, also the known ones."""
    np.testing.assert_array_equal(group.fitted.tested[0], group.fitted.source_distance)
    np.testing.assert_array_equal(group.fitted.tested[1], group.fitted.target_distance)
    fitted = fit(group.X, group.y, group.target + 9, group.heads, aligned=group.target, moved=True)
    source, target = fitted.tested
    assert np.median(target[NEW:]) < np.quantile(source, 0.9)
    rows = fitted.voices.distances[0]
    as_given = rows.apply(Views(group.target + 9, group.target))
    assert np.median(as_given[NEW:]) > np.quantile(rows.apply(Views(group.X, group.X)), 0.9)


def test_the_score_is_the_sum_of_both_smoothed_ranks(group):
    """Golden: each rank plus the mean rank of the nearest target rows, ranked again."""
    voices, views = group.fitted.voices, as_given(group.target)
    ranks = [fit_tail_rank(v.apply(views)).apply(v.apply(views)) for v in voices.distances]
    distance = np.sum([w * r for w, r in zip(voices.weights, ranks, strict=True)], axis=0)
    np.testing.assert_allclose(voices.distance(views), distance, rtol=1e-9)
    np.testing.assert_allclose(group.fitted.target_distance, distance, rtol=1e-9)
    place = voices.surroundings.space.apply(views)
    gaps = np.linalg.norm(place[:, None] - place, axis=2)
    nearest = np.argsort(gaps, axis=1, kind="stable")[:, :11]
    total = 0
    for weight, rank in (
        (voices.trust.heads, fit_tail_rank(group.heads).apply(group.heads)),
        (voices.trust.distances, distance),
    ):
        smooth = rank + rank[nearest].mean(axis=1)
        total = total + weight * fit_tail_rank(smooth).apply(smooth)
    np.testing.assert_allclose(voices.score(views, group.heads), total, rtol=1e-6)


@given(st.integers(0, N - 1), st.floats(0, 50))
def test_a_higher_head_score_or_distance_is_never_a_lower_score(group, row, more):
    voices = group.fitted.voices
    nearest = voices.surroundings.nearest(as_given(group.target[[row]]))
    head, distance = group.heads[[row]], group.fitted.target_distance[[row]]
    before = voices.fuse(nearest, head, distance)
    assert voices.fuse(nearest, head + more, distance) >= before
    assert voices.fuse(nearest, head, distance + more) >= before


def test_rows_above_all_others_are_still_ranked(group):
    voices = replace(group.fitted.voices, trust=weigh(0.0, 0.0))
    nearest = voices.surroundings.nearest(as_given(group.target[:1]))
    heads = [voices.fuse(nearest, np.array([high]), np.zeros(1))[0] for high in (10.0, 20.0, 30.0)]
    assert np.diff(heads).min() > 0


def test_a_row_has_the_same_score_alone_and_in_company(group):
    voices = group.fitted.voices
    together = voices.score(as_given(group.target), group.heads)
    alone = [voices.score(as_given(group.target[[i]]), group.heads[[i]])[0] for i in range(20)]
    np.testing.assert_allclose(alone, together[:20], rtol=1e-9)


def test_a_missing_head_score_gives_a_missing_score(group):
    heads = group.heads.copy()
    heads[4] = np.nan
    score = group.fitted.voices.score(as_given(group.target), heads)
    assert np.flatnonzero(np.isnan(score)).tolist() == [4]


def test_voices_count_alike_and_in_a_moved_batch_those_that_hear_a_group_count_more(group):
    voices = group.fitted.voices
    assert voices.weights.sum() == pytest.approx(1) and (voices.weights > 0).all()
    assert len(voices.weights) == len(voices.ranks) == len(voices.distances)
    np.testing.assert_allclose(voices.weights, 1 / len(voices.weights))
    noise = with_columns_of_noise(group)
    assert noise.weights.sum() == pytest.approx(1)
    by_name = dict(zip([v.name for v in noise.distances], noise.weights, strict=True))
    assert by_name["rows"] > by_name["columns"]


def with_columns_of_noise(group):
    """Voices of rows with many small columns of noise, which count in columns of unit variance only."""
    random = np.random.default_rng(3)
    X, target = (
        np.column_stack([rows, 0.01 * random.standard_t(2, size=(len(rows), 150))])
        for rows in (group.X, group.target)
    )
    scaling = fit_scaling(moments(X), moments(target), "global")
    fitted = fit_voices(
        as_given(X), group.y, as_given(target), scaling, group.heads, np.random.SeedSequence(0), moved=True
    )
    return fitted.voices


def test_source_distances_are_on_the_targets_scale_and_of_unseen_rows(group):
    fitted = group.fitted
    seen = fitted.voices.distance(as_given(group.X))
    assert fitted.source_distance.shape == (200,)
    # a row that a voice has among its references is nearer than one that it has not
    assert np.mean(fitted.source_distance > seen) > 0.9 and fitted.source_distance.mean() > seen.mean()


def test_many_target_rows_are_thinned(group, monkeypatch):
    monkeypatch.setattr(_voices, "thinned", lambda n: np.arange(0, n, 2))
    fitted = fit(group.X, group.y, group.target, group.heads, moved=True)
    around = fitted.voices.surroundings
    assert [len(part) for part in fitted.tested] == [200, N], "all rows can be tested"
    assert len(around.rows) == len(around.heads) == len(around.distances) == N // 2
    np.testing.assert_array_equal(around.distances, fitted.target_distance[::2])
    assert auprc(group.is_new, fitted.target_distance) > 0.95
    assert np.isfinite(fitted.voices.score(as_given(group.target), group.heads)).all()


def test_distances_of_source_and_of_a_moved_batch_can_be_compared_by_one_threshold():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 600)
    rows = 3 * np.eye(2, 8)[y] + random.normal(size=(600, 8))
    source, target = rows[:300], rows[300:]
    fitted = fit_voices(
        Views(source, source),
        y[:300],
        Views(target + 9, target),
        fit_scaling(moments(source), moments(target + 9), "global"),
        random.normal(size=300),
        np.random.SeedSequence(0),
        moved=True,
        undone=True,
    )
    above = fitted.target_distance > np.quantile(fitted.source_distance, 0.95)
    assert above.mean() < 0.2, "as they are, all rows of the batch are farther from source than any source row"
