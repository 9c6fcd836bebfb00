"""The live numbers of a review: estimates, the evidence for a new class, and how far people agree."""

from __future__ import annotations

from dataclasses import dataclass

from openset.review.agreement import mean_kappa
from openset.review.estimates import ERROR_RATE, Estimates, estimate, new_class_evidence
from openset.review.state import BULK, ReviewState, tallies
from openset.review.strata import GUESSES, Strata


@dataclass(frozen=True)
class Numbers:
    """What the answers say so far."""

    estimates: Estimates
    evidence: float
    """E-value for a new class; 20 or more rejects "there is none" at .05."""
    error_rate: float
    """Known rows taken for new by mistake, as assumed by that."""
    answers: int
    new: int
    skipped: int
    bulk: int
    kappa: float | None
    common: int
    disputed: int


def count_numbers(state: ReviewState, strata: Strata, error_rate: float = ERROR_RATE) -> Numbers:
    """The numbers that a state says."""
    by_hand = {row: answer for row, answer in state.rows.items() if answer.by_hand}
    # the test bets on rows of the list and on those chosen to tell; the rest of Estimate is expected to be known
    bets = [
        answer.is_new
        for row, answer in by_hand.items()
        if answer.is_new is not None
        and (strata.listed[row] or any(given.queue != "estimate" for given in state.answers[row]))
    ]
    kappa, common = mean_kappa(
        {
            row: {a.annotator: a.is_new for a in found if a.is_new is not None and a.queue != BULK}
            for row, found in state.answers.items()
        }
    )
    return Numbers(
        estimates=estimate(*tallies(state, strata.order, strata.listed, GUESSES)),
        evidence=new_class_evidence(sum(bets), len(bets) - sum(bets), error_rate),
        error_rate=error_rate,
        answers=len(by_hand),
        new=sum(answer.is_new is True for answer in by_hand.values()),
        skipped=sum(answer.is_new is None and not answer.disputed for answer in by_hand.values()),
        bulk=len(state.rows) - len(by_hand),
        kappa=kappa,
        common=common,
        disputed=len(state.disputed()),
    )
