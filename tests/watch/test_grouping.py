from __future__ import annotations

import numpy as np
import pytest

from openset.methods.mahalanobis import Mahalanobis
from openset.stats.groups import FEWEST_ROWS
from openset.watch.fits import WatchedRun
from openset.watch.grouping import CalledRows, find_groups

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def watched_run(run):
    return WatchedRun(run)


def called(*centres, size=40, of=400):
    X = np.concatenate([RANDOM.normal(centre, 0.5, (size, 3)) for centre in centres])
    return CalledRows(X, np.array([f"r{i}" for i in range(len(X))]), np.ones(len(X)), of, len(X))


def test_groups_are_numbered_over_batches(watched_run):
    ((first, points),) = find_groups(watched_run, Mahalanobis(), called((0, 9, 9)), {})
    assert (first.number, first.again, first.size) == (1, False, 40) and first.share.value == 0.1
    assert first.share.low < 0.1 < first.share.high and first.examples[0].startswith("r")
    ((again, _),) = find_groups(watched_run, Mahalanobis(), called((0, 9, 9)), {7: points})
    assert (again.number, again.again) == (7, True)
    ((other, _),) = find_groups(watched_run, Mahalanobis(), called((0, -9, 9)), {7: points})
    assert (other.number, other.again) == (8, False)


def test_an_old_group_and_a_new_one_in_one_batch(watched_run):
    ((_, points),) = find_groups(watched_run, Mahalanobis(), called((0, 9, 9)), {})
    found = find_groups(watched_run, Mahalanobis(), called((0, 9, 9), (30, 0, 0)), {1: points})
    assert sorted((record.number, record.again) for record, _ in found) == [(1, True), (2, False)]


def test_of_very_many_rows_called_new_those_of_the_highest_scores_are_held(monkeypatch):
    monkeypatch.setattr("openset.watch.grouping.MOST_CALLED", 5)
    scores = RANDOM.permutation(12).astype(float)
    parts = [
        CalledRows(scores[cut, None], np.arange(12)[cut], scores[cut], 100, 4)
        for cut in (slice(0, 4), slice(4, 8), slice(8, 12))
    ]
    found = parts[0].joined(parts[1]).joined(parts[2])
    assert (found.of, found.number) == (300, 12) and sorted(found.scores) == [7, 8, 9, 10, 11]
    assert (
        found.ids.tolist() == np.flatnonzero(scores >= 7).tolist()
        and found.X.ravel().tolist() == found.scores.tolist()
    )


def test_few_rows_are_no_group(watched_run):
    assert find_groups(watched_run, Mahalanobis(), called((0, 9, 9), size=FEWEST_ROWS - 1), {}) == []


def test_a_model_groups_by_its_own_representation(watched_run):
    class Flat(Mahalanobis):
        def representation(self, X):
            return np.zeros((len(X), 2))

    found = find_groups(watched_run, Flat(), called((0, 9, 9), (30, 0, 0)), {})
    assert [record.size for record, _ in found] == [80]
