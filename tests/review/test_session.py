from __future__ import annotations

import numpy as np
import pytest

from openset.review.session import AGREE, AUDIT, ESTIMATE, EXPLORE, PURE, REFIT_EVERY, Session
from openset.review.strata import estimates_from_log


def answer(session, row, truth, **more):
    session.new(row, **more) if truth[row] == "new" else session.known(row, truth[row], **more)


def test_a_review_of_a_folder_goes_on_where_it_was(run_folder, truth):
    first = Session(run_folder, annotator="ann")
    for _ in range(12):
        row = first.next(ESTIMATE).row
        answer(first, row, truth, queue=ESTIMATE)
    before = first.numbers()
    again = Session(run_folder, annotator="ann")
    assert again.numbers() == before and before.estimates.labelled == 12
    assert again.next(ESTIMATE) == first.next(ESTIMATE)
    assert estimates_from_log(run_folder / "review.sqlite") == before.estimates


def test_the_estimate_closes_in_on_the_truth(session, truth):
    for _ in range(60):
        row = session.next(ESTIMATE).row
        answer(session, row, truth, queue=ESTIMATE)
    share = session.numbers().estimates.share
    assert share.low <= 60 / 500 <= share.high and share.low > 0.03
    assert session.numbers().evidence > 20


def test_rows_answered_in_explore_count_when_their_turn_has_come(session, truth):
    ahead = int(session.strata.order[1])
    answer(session, ahead, truth, queue=EXPLORE)
    assert session.numbers().estimates.labelled == 0
    first = session.next(ESTIMATE).row
    assert first == session.strata.order[0]
    answer(session, first, truth, queue=ESTIMATE)
    assert session.numbers().estimates.labelled == 2


def test_explore_follows_the_answers(session, truth, is_new):
    asked = []
    for _ in range(20):
        row = session.next(EXPLORE).row
        asked.append(row)
        answer(session, row, truth, queue=EXPLORE)
        if session.due:
            assert session.refit()
    assert len(set(asked)) == 20 and session.learnt_from == 20
    assert np.mean(is_new[asked]) > 0.5
    assert not session.refit()


def test_undo_goes_back_step_by_step_and_gives_the_row_again(session, truth):
    rows = []
    for _ in range(3):
        rows.append(session.next(ESTIMATE).row)
        answer(session, rows[-1], truth, queue=ESTIMATE)
    assert session.undo() == [rows[2]] and session.next(ESTIMATE).row == rows[2]
    assert session.undo() == [rows[1]] and session.undo() == [rows[0]]
    assert session.undo() is None and session.numbers().answers == 0


def test_undo_takes_back_ones_own_answers_only(session):
    session.new(1, annotator="ann")
    session.new(2, annotator="ben")
    assert session.undo(annotator="ann") == [1]
    assert session.undo(annotator="ann") is None and 2 in session.state.rows


def test_two_people_are_asked_for_different_rows(session):
    ann, ben = (session.next(ESTIMATE, annotator=name).row for name in ("ann", "ben"))
    assert ann != ben
    assert session.next(ESTIMATE, annotator="ann").row == ann
    assert session.next(EXPLORE, annotator="cleo").row not in (ann, ben)


def test_a_group_is_accepted_only_after_its_audit(session, truth):
    group = int(np.argmax([g.size for g in session.groups.groups]))
    with pytest.raises(ValueError, match="cannot be accepted yet: 0 of 12"):
        session.accept_group(group)
    while not session.audit(group).ready:
        answer(session, session.audit(group).open[0], truth, queue="audit")
    audit = session.audit(group)
    assert audit.audited >= AUDIT and audit.purity >= PURE
    before = session.numbers()
    accepted = session.accept_group(group, "kettle")
    after = session.numbers()
    assert accepted == len(audit.rows) - audit.audited == after.bulk
    assert after.estimates == before.estimates and after.answers == before.answers
    assert session.state.names["kettle"] == accepted
    assert len(session.undo()) == accepted and session.numbers().bulk == 0


def test_an_impure_group_is_not_accepted(session):
    for row in session.audit(0).open:
        session.known(row, queue="audit")
    audit = session.audit(0)
    assert audit.audited == AUDIT and not audit.ready and audit.purity < 0.3
    assert len(audit.open) == AUDIT // 2  # looking further is offered


def test_names_are_given_renamed_and_merged(session):
    session.new(1, "kettle")
    session.new(2, "teapot")
    session.rename("teapot", "kettle")
    assert session.state.names == {"kettle": 2}
    assert session.labels() == {1: ("kettle", True), 2: ("kettle", True)}
    session.undo()
    assert session.state.names == {"kettle": 1, "teapot": 1}
    with pytest.raises(ValueError, match="Did you mean 'kettle'"):
        session.rename("ketle", "pot")


def test_disagreements_are_a_queue_of_their_own(session):
    session.new(5, annotator="ann")
    session.new(6, annotator="ann")
    assert session.next(AGREE, annotator="ann") is None
    assert session.next(AGREE, annotator="ben").row == 5
    session.known(5, annotator="ben")
    session.new(6, annotator="ben")
    numbers = session.numbers()
    assert numbers.disputed == 1 and numbers.common == 2 and numbers.kappa is not None
    assert session.next(AGREE, annotator="cleo").row == 5
    session.known(5, annotator="ann", queue=AGREE)
    assert session.numbers().disputed == 0 and session.numbers().kappa == 1


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (lambda s: s.new(500), "no row 500: the target has 500"),
        (lambda s: s.new(-1), "no row -1"),
        (lambda s: s.known(1, "bat"), "'bat' is no known class. Did you mean 'cat'"),
        (lambda s: s.new(1, "cat"), "'cat' is a known class"),
        (lambda s: s.new(1, "  "), "1 to 80 characters; got 0"),
        (lambda s: s.new(1, "x" * 81), "got 81"),
        (lambda s: s.next("random"), "queue"),
        (lambda s: s.audit(9), "no group 9"),
        (lambda s: s.new(1, annotator=" "), "an annotator needs a name"),
    ],
)
def test_a_wrong_move_says_what_is_wrong_and_saves_nothing(session, move, message):
    with pytest.raises(ValueError, match=message):
        move(session)
    assert session.numbers().answers == 0


def test_the_ranking_is_due_after_a_few_answers(session):
    for row in range(REFIT_EVERY):
        assert not session.due or row == REFIT_EVERY
        session.known(row)
    assert session.due


def test_a_session_is_found_without_an_import_of_its_own():
    import openset

    assert openset.review.Session is Session


def test_known_takes_the_suggested_class(session, truth):
    row = int(np.flatnonzero(truth == "cat")[0])
    session.known(row)
    assert session.labels()[row] == (session.suggested(row), False) == ("cat", False)
