from __future__ import annotations

import numpy as np
import pytest

from openset.review.store import Event, Store
from openset.review.strata import begin, estimates_from_log

SCORE = np.arange(400.0)


def test_a_review_that_began_keeps_its_strata(tmp_path):
    store = Store(tmp_path / "log")
    first = begin(store, "batch", "ann", SCORE, 350.0, None)
    again = begin(store, "batch", "ben", -SCORE, 0.0, 7)
    assert first.seed == again.seed and (first.order == again.order).all()
    assert first.listed.sum() == 49 and first.is_called
    assert not begin(store, "other", "ann", SCORE, 395.0, 0).is_called


def test_if_two_begin_at_once_the_first_decides(tmp_path):
    store = Store(tmp_path / "log")
    details = [{"seed": seed, "rows": 10, "listed": [seed], "called": 1} for seed in (1, 2)]
    store.append([Event("begin", "batch", "ann", detail=detail) for detail in details])
    assert begin(store, "batch", "ben", SCORE, 350.0, None).seed == 1


def test_a_log_of_two_batches_must_be_told_which(tmp_path):
    store = Store(tmp_path / "log")
    for batch in ("a", "b"):
        begin(store, batch, "ann", SCORE, 350.0, 0)
    with pytest.raises(ValueError, match="has 2 batches"):
        estimates_from_log(tmp_path / "log")
    assert estimates_from_log(tmp_path / "log", "a").labelled == 0
