from __future__ import annotations

import numpy as np
import pytest

from openset.stats.validation_scores import ValidationScores

random = np.random.default_rng(0)


def test_several_members_are_their_own_parts():
    scores = ValidationScores(tuple(random.normal(size=(3, 4, 2))), tuple(random.normal(size=(3, 5, 2))))
    assert (scores.n_members, scores.n_heads, scores.n_source, scores.n_target) == (3, 2, 12, 15)
    assert scores.in_parts() is scores


def test_one_member_is_split_into_five_parts_that_hold_every_row_once():
    source, target = random.normal(size=23), random.normal(size=11)
    parts = ValidationScores.of_one_score(source, target).in_parts(seed=4)
    assert parts.n_members == 5
    for whole, split in ((source, parts.source), (target, parts.target)):
        sizes = [len(part) for part in split]
        assert max(sizes) - min(sizes) <= 1
        np.testing.assert_array_equal(np.sort(np.concatenate(split)[:, 0]), np.sort(whole))
    again = ValidationScores.of_one_score(source, target).in_parts(seed=4)
    assert all(np.array_equal(a, b) for a, b in zip(parts.source, again.source, strict=True))


def test_without_a_part_are_the_rows_of_the_others():
    scores = ValidationScores(([[1.0]], [[2.0]], [[3.0]]), ([[4.0]], [[5.0]], [[6.0]]))
    source, target = scores.without(1)
    assert source.tolist() == [[1.0], [3.0]] and target.tolist() == [[4.0], [6.0]]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ((), (), "at least one member is needed"),
        (([[1.0]],), (), "every member needs both"),
        (([[1.0, 2.0]],), ([[1.0]],), "different numbers of heads"),
        (([[np.nan]],), ([[1.0]],), "source scores contain NaN or infinity"),
        ((np.zeros((2, 2, 2)),), ([[1.0]],), "expected \\(rows, heads\\)"),
    ],
)
def test_bad_scores_are_named(source, target, message):
    with pytest.raises(ValueError, match=message):
        ValidationScores(source, target)
