"""The list and the rest, and the order of Estimate: fixed by the event that begins a review."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from openset.review.estimates import Estimates, estimate
from openset.review.queues import LIST_GUESS, REST_GUESS, estimate_order, make_list
from openset.review.state import reduce_events, tallies
from openset.review.store import Event, Store

GUESSES = (LIST_GUESS, REST_GUESS)


@dataclass(frozen=True, eq=False)
class Strata:
    """Which rows are on the list, and in which order Estimate asks for all rows."""

    seed: int
    listed: NDArray[np.bool_]
    order: NDArray[np.intp]
    is_called: bool
    """Whether the list is the rows called new; otherwise these were too few, and it is the highest scores."""


def begin(
    store: Store, batch: str, annotator: str, score: NDArray[np.float64], threshold: float, seed: int | None
) -> Strata:
    """The strata of a review, drawn now if it has not begun. If two begin at once, who wrote first decides."""
    begun = [event for event in store.events(batch) if event.kind == "begin"]
    if not begun:
        detail = {
            "seed": secrets.randbits(32) if seed is None else int(seed),
            "rows": len(score),
            "listed": np.flatnonzero(make_list(score, threshold)).tolist(),
            "called": int((score > threshold).sum()),
        }
        store.append([Event("begin", batch, annotator, detail=detail)])
        begun = [event for event in store.events(batch) if event.kind == "begin"]
    return strata_of(begun[0])


def strata_of(event: Event) -> Strata:
    """The strata from the event that began a review."""
    detail = event.detail or {}
    seed, listed = int(detail["seed"]), np.zeros(int(detail["rows"]), dtype=bool)
    listed[detail["listed"]] = True
    return Strata(seed, listed, estimate_order(listed, seed), detail["called"] == len(detail["listed"]))


def estimates_from_log(path: str | PathLike[str], batch: str | None = None) -> Estimates:
    """The estimates of a review, from its log alone; ``batch`` is needed if the log has several."""
    store = Store(path)
    try:
        batches = store.batches()
        if batch is None and len(batches) != 1:
            raise ValueError(f"{path} has {len(batches)} batches: name the one to estimate.")
        events = store.events(batch or batches[0])
    finally:
        store.close()
    strata = strata_of(next(event for event in events if event.kind == "begin"))
    return estimate(*tallies(reduce_events(events), strata.order, strata.listed, GUESSES))
