from __future__ import annotations

from openset.review.estimates import new_class_evidence
from openset.review.numbers import count_numbers


def test_the_test_for_a_new_class_bets_on_the_list_and_on_explore(session):
    listed, rest = (
        int(next(r for r in session.strata.order if session.strata.listed[r] == side)) for side in (1, 0)
    )
    session.new(listed, queue="estimate")
    assert session.numbers().evidence == new_class_evidence(1, 0)
    session.known(rest, queue="estimate")
    assert session.numbers().evidence == new_class_evidence(1, 0)
    session.known(rest, queue="explore")
    assert session.numbers().evidence == new_class_evidence(1, 1)
    careless = count_numbers(session.state, session.strata, error_rate=0.3)
    assert careless.evidence < session.numbers().evidence and careless.error_rate == 0.3


def test_counts_of_answers(session):
    session.new(1)
    session.known(2)
    session.skip(3)
    found = session.numbers()
    assert (found.answers, found.new, found.skipped, found.bulk, found.disputed) == (3, 1, 1, 0, 0)
