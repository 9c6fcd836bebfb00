from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openset.review.state import BULK, reduce_events, tallies
from openset.review.store import Event


class Log:
    """Events numbered as the store numbers them."""

    def __init__(self):
        self.events = []

    def add(self, kind, annotator="ann", action=None, **more):
        detail = {"action": action or str(len(self.events)), **more.pop("detail", {})}
        self.events.append(Event(kind, "b", annotator, detail=detail, number=len(self.events) + 1, **more))
        return detail["action"]

    def label(self, row, is_new=True, label="x", queue="explore", **more):
        return self.add("label", row=row, is_new=is_new, label=label, queue=queue, **more)

    def state(self):
        return reduce_events(self.events)


def test_the_last_answer_of_a_person_counts():
    log = Log()
    log.label(3, True)
    log.label(3, False, "cat")
    assert (log.state().rows[3].is_new, log.state().rows[3].label) == (False, "cat")


def test_an_undo_brings_back_what_was_before():
    log = Log()
    log.label(3, False, "cat")
    action = log.label(3, True)
    log.add("undo", detail={"action": action})
    # the undo event's own detail names the action that it undoes
    assert log.state().rows[3].label == "cat"
    assert log.state().actions == (("ann", "0"),)


def test_an_undo_takes_back_a_whole_group():
    log = Log()
    for row in range(5):
        log.label(row, queue=BULK, action="group")
    assert len(log.state().rows) == 5 and len(log.state().actions) == 1
    log.add("undo", action="group")
    assert log.state().rows == {} and log.state().names == {}


def test_a_group_replaces_no_answer_given_by_hand():
    log = Log()
    log.label(1, False, "cat")
    log.label(1, True, queue=BULK)
    log.label(2, True, queue=BULK)
    state = log.state()
    assert not state.rows[1].is_new and state.rows[2].is_new
    assert state.by_hand(1) and not state.by_hand(2)
    log.label(2, False, "cat")
    assert not log.state().rows[2].is_new and log.state().by_hand(2)


def test_people_who_disagree_leave_a_row_open():
    log = Log()
    log.label(1, True)
    log.label(1, False, "cat", annotator="ben")
    assert log.state().disputed() == [1] and log.state().rows[1].is_new is None
    log.label(1, False, "cat", annotator="cleo")
    assert log.state().rows[1].is_new is False and log.state().disputed() == [1]
    log.label(1, False, "cat")
    assert log.state().disputed() == []


def test_names_are_renamed_merged_and_brought_back():
    log = Log()
    log.label(1, True, "a")
    log.label(2, True, "b")
    log.add("rename", detail={"from": "a", "to": "kettle"})
    assert log.state().names == {"kettle": 1, "b": 1}
    merge = log.add("rename", detail={"from": "b", "to": "kettle"})
    assert log.state().names == {"kettle": 2} and log.state().rows[2].label == "kettle"
    log.add("undo", detail={"action": merge})
    assert log.state().names == {"kettle": 1, "b": 1}


def test_the_tallies_are_of_the_rows_that_came_up_without_a_gap():
    log = Log()
    listed = np.array([True, False, False, True, False])
    order = np.array([3, 1, 2, 0, 4])
    log.label(3, True)
    log.label(1, False, "cat")
    log.label(0, True)  # its turn has not come: row 2 has no answer
    first, rest = tallies(log.state(), order, listed, (0.8, 0.01))
    assert (first.new, first.known, rest.new, rest.known) == (1, 0, 0, 1)
    log.label(2, None, None)  # skipped
    first, rest = tallies(log.state(), order, listed, (0.8, 0.01))
    assert (first.size, first.new, rest.size, rest.known, rest.unclear) == (2, 2, 3, 1, 1)


def test_labels_of_a_group_never_enter_the_tallies():
    log = Log()
    log.label(0, True, queue=BULK)
    first, _ = tallies(log.state(), np.arange(2), np.array([True, False]), (0.8, 0.01))
    assert first.labelled == 0 and len(log.state().training()[0]) == 1


moves = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([True, False, None]), st.sampled_from("ab"), st.booleans()),
    max_size=25,
)


@given(moves)
def test_undoing_everything_leaves_nothing(done):
    log = Log()
    for row, is_new, annotator, bulk in done:
        log.label(row, is_new, annotator=annotator, queue=BULK if bulk else "explore")
    for _, action in reversed(log.state().actions):
        log.add("undo", action=action)
    assert log.state().rows == {} and log.state().actions == ()
