"""The ledger of a training run: what it keeps, when it stops, and that its state can be stored."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from openset.learn.ledger import WINDOW, Choice, Convergence, IntervalMeans, Ledger
from openset.learn.objective import KEEP_LATEST, Judgement
from openset.learn.primal_dual import Terms
from openset.persistence.codec import decode, encode

NONE = np.empty(0)


def entered(ledger, *keys, member=0, heads=None):
    """Whether each of some judgements, one every ten steps, was the best so far."""
    found = []
    for key in keys:
        ledger.step += 10
        found.append(ledger.record(member, Judgement(key, {"recall": key}, 3, heads or {}), 0.5, NONE, NONE))
    return found


def test_the_highest_key_is_kept_and_ties_go_to_the_first():
    ledger = Ledger(1, 0, tol=0.0)
    assert entered(ledger, 0.2, 0.1, 0.5, 0.5) == [True, False, True, False]
    assert ledger.choices == [Choice(30, 3, 0.5)]
    assert [record["step"] for record in ledger.history] == [10, 20, 30, 40]
    assert ledger.history[2] == {"step": 30, "member": 0, "loss": 0.5, "recall": 0.5}


def test_a_first_point_is_kept_however_bad_and_the_latest_where_there_is_no_choice():
    assert entered(Ledger(1, 0, tol=0.0), -math.inf, -math.inf, 0.0) == [True, False, True]
    latest = Ledger(1, 0, tol=0.0)
    assert entered(latest, KEEP_LATEST, KEEP_LATEST) == [True, True] and latest.choices[0].step == 20


def test_members_choose_apart_and_may_stop_together():
    ledger = Ledger(2, 0, tol=0.0)
    entered(ledger, 0.2, member=0)
    entered(ledger, 0.3, 0.1, member=1)
    assert [choice.step for choice in ledger.choices] == [10, 20] and ledger.step == 30
    ledger.stop_together(patience=20)
    assert ledger.stopped == [False, False]
    ledger.stop_together(patience=10)
    assert ledger.stopped == [True, True]


def test_the_table_of_heads_has_a_row_for_every_point_and_head():
    ledger = Ledger(2, 0, tol=0.0)
    assert ledger.heads() == {}
    entered(ledger, 0.1, 0.2, member=1, heads={"fpr": np.array([0.5, 0.25])})
    table = {name: values.tolist() for name, values in ledger.heads().items()}
    assert table == {
        "member": [1, 1, 1, 1], "step": [10, 10, 20, 20], "head": [0, 1, 0, 1], "fpr": [0.5, 0.25, 0.5, 0.25],
    }  # fmt: skip


def test_a_stored_ledger_goes_on_as_if_it_had_not_been_stored():
    whole, first, second = (Ledger(1, 1, tol=0.1) for _ in range(3))
    heads = {"fpr": np.array([0.5])}

    def enter(ledger, points):
        for point in points:
            ledger.step += 10
            ledger.record(0, Judgement(1 / point, {}, 0, heads), 1 / point, np.array([0.1]), np.array([1.0]))

    enter(whole, range(1, 12))
    enter(first, range(1, 5))
    tensors = {}
    second.restore(decode(json.loads(json.dumps(encode(first.state(), tensors, "ledger"))), tensors))
    enter(second, range(5, 12))
    np.testing.assert_equal(second.state(), whole.state())
    assert second.stopped == [True] and second.choices == whole.choices


def test_an_interval_holds_means_since_the_last_one():
    means = IntervalMeans(2, 1)
    for loss, soft, hard in ((1.0, 9.0, 0.5), (3.0, 9.0, 0.1)):
        violations = {"proxy_violation": torch.full((2, 1), soft), "violation": torch.full((2, 1), hard)}
        means.add(Terms(torch.tensor([loss, 0.0]), **violations))
    loss, violation = means.take()
    assert loss.tolist() == [2.0, 0.0] and violation[:, 0].tolist() == pytest.approx([0.3, 0.3])
    means.add(Terms(torch.tensor([5.0, 0.0]), proxy_violation=torch.ones(2, 1)))
    loss, violation = means.take()
    assert loss.tolist() == [5.0, 0.0] and violation.tolist() == [[1.0], [1.0]], "the soft one where it is all"


def test_a_loss_with_a_new_meaning_is_watched_anew():
    ledger = Ledger(1, 0, tol=1.0)
    entered(ledger, *[0.1] * (WINDOW - 1))
    ledger.restart_watch(0)
    entered(ledger, *[0.1] * (WINDOW - 1))
    assert ledger.stopped == [False]
    entered(ledger, 0.1)
    assert ledger.stopped == [True]


def test_loss_and_multipliers_settle_relative_to_their_size_and_violations_as_rates():
    def settles(loss=(1.0, 1.0), violation=(0.0, 0.0), multiplier=(1.0, 1.0)):
        watch = Convergence(0.01)
        for half in (0, 1):
            for _ in range(WINDOW // 2):
                settled = watch.update(loss[half], np.array([violation[half]]), np.array([multiplier[half]]))
        return settled

    assert settles() and settles(loss=(100.0, 100.9)) and settles(multiplier=(100.0, 100.9))
    assert not settles(loss=(100.0, 101.1)) and not settles(multiplier=(0.1, 0.12))
    assert not settles(violation=(0.2, 0.22)) and settles(violation=(0.2, 0.205))


def test_a_tolerance_of_0_never_settles():
    watch = Convergence(0.0)
    assert not any(watch.update(1.0, NONE, NONE) for _ in range(3 * WINDOW))


def test_a_growing_multiplier_never_counts_as_settled():
    still, growing = Convergence(1e-3), Convergence(1e-3)
    for i in range(WINDOW):
        settled = still.update(0.5, np.array([0.1]), np.array([2.0]))
        moving = growing.update(0.5, np.array([0.1]), np.array([2.0 + 0.05 * i]))
    assert settled and not moving
