"""What is said of a list: its count, or at which level, with how many source rows or labels it could be one."""

from __future__ import annotations

import numpy as np
import pytest

from openset.pipeline.list_rows import largest_listed, listed_rows
from openset.stats.p_values import benjamini_hochberg, smallest_fdr

COUNTS = {"n_source": 500, "n_called": 40}


def test_the_count_is_that_of_the_rows_marked():
    random = np.random.default_rng(0)
    p = np.round(np.concatenate([random.random(300), np.full(60, 0.005)]), 3)
    seen = dict(zip(*(part.tolist() for part in np.unique(p, return_counts=True)), strict=True))
    marked = benjamini_hochberg(p, 0.1, max_density_ratio=2)
    assert listed_rows(seen, 0.1, 2.0, **COUNTS).rows == marked.sum() >= 60
    assert (p <= largest_listed(seen, 0.1, 2.0)).tolist() == marked.tolist()


def test_source_rows_are_counted_and_not_validation_rows():
    """100 validation rows of 500 source rows: the smallest p-value is 1/101, and needs twice as many rows."""
    found = listed_rows({0.01: 5, 0.9: 95}, 0.1, 1.0, **COUNTS)
    assert found.rows == 0 and found.smallest_fdr == pytest.approx(0.2) and found.source_rows_needed == 1000
    assert found.text.endswith("some could be from --fdr 0.2 on, or with about 1000 source rows")


@pytest.mark.parametrize("p", [0.97, 0.55])
def test_a_list_of_mostly_known_rows_is_not_suggested(p):
    found = listed_rows({p: 100}, 0.1, 1.0, **COUNTS)
    assert (found.smallest_fdr, found.source_rows_needed) == (None, None) and "--fdr" not in found.text


@pytest.mark.parametrize(
    ("called", "words"),
    [
        (102, "Label 29 of the 102 rows called new, drawn at random"),
        (2, "Label the 2 rows called new"),
        (1, "Label the row called new"),
        (0, ""),
    ],
)
def test_no_more_labels_are_asked_for_than_rows_are_called_new(called, words):
    step = listed_rows({0.9: 100}, 0.1, 1.0, n_source=500, n_called=called).next_step
    assert step.startswith(words) and bool(step) == bool(words)


def test_a_reason_not_to_list_rows_is_all_that_is_said():
    found = listed_rows({0.001: 50, 0.9: 50}, 0.1, 1.0, **COUNTS, why_none="the batch moved")
    assert found.rows == 0 and found.text == "no row is listed: the batch moved" and not found.next_step
    assert largest_listed({0.001: 50, 0.9: 50}, 0.1, 1.0, "the batch moved") == 0


def test_counted_p_values_have_the_smallest_rate_of_all_of_them():
    p = np.round(np.random.default_rng(1).random(200) ** 2, 2) + 0.01
    values, counts = np.unique(p, return_counts=True)
    assert smallest_fdr(values, counts, max_density_ratio=1.5) == smallest_fdr(p, max_density_ratio=1.5)
