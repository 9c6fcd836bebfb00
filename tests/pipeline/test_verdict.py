"""The words of the answer, and what limits it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from openset.pipeline.verdict import diagnose, give_verdict
from openset.stats.bounded_shift import Counts
from openset.stats.diagnostics import Diagnostic
from openset.stats.novelty import NoveltyTest
from openset.stats.shares import NOT_IDENTIFIED, ShareEstimate


@pytest.mark.parametrize(
    ("estimate", "word"),
    [
        (NOT_IDENTIFIED, "none found"),
        (ShareEstimate(0.02, 0.0, 0.05, 0.95, "m"), "none found"),
        (ShareEstimate(0.02, 0.01, 0.05, 0.95, "m"), "likely"),
    ],
)
def test_an_estimate_without_a_test_is_likely_at_most(estimate, word):
    verdict = give_verdict(estimate)
    assert verdict.word == word and "sampling error only" in verdict.caveat


@pytest.mark.parametrize(
    ("p_value", "word"), [(0.01, "clear"), (0.011, "likely"), (0.05, "likely"), (0.06, "none found")]
)
def test_the_verdict_is_the_tests(p_value, word):
    estimate = ShareEstimate(
        0.02,
        0.01,
        1.0,
        0.95,
        "m",
        max_density_ratio=12,
        profile={"12": 0.01},
        assumptions="A.",
        high_identified=False,
    )
    verdict = give_verdict(estimate, NoveltyTest(p_value, 12, Counts(0, 10, 5, 10)))
    assert verdict.word == word and verdict.caveat.startswith(
        f"p = {p_value:.2g}. A. The lower end is 1.0 % for 12"
    )
    assert ("at least 1.0 %" in verdict.sentence) == (word != "none found")


def test_the_sentences_of_a_verdict():
    assert give_verdict(ShareEstimate(0.08, 0.06, 0.1, 0.95, "m")).sentence == (
        "There is likely a new class, about 8.0 % of the target (6.0 to 10.0 %)."
    )
    assert give_verdict(ShareEstimate(0.02, 0.0, 0.05, 0.95, "m")).sentence == (
        "No new class is proved: its share could be 0 (at most 5.0 %)."
    )
    assert "none could be ruled out" in give_verdict(NOT_IDENTIFIED).sentence


def model(**changes):
    fitted = {"calibration_scores_": np.arange(100.0), "threshold_": 97.5, "fpr": 0.01, "n_steps_": 60}
    return SimpleNamespace(**{**fitted, **changes})


def test_diagnostics_of_a_fit():
    rows, above = diagnose(model(), [])
    assert (rows.name, rows.value, rows.threshold, rows.ok) == ("validation rows of the source", 100, 99, True)
    assert (above.value, above.threshold, above.ok) == (
        0.02,
        0.01,
        False,
    ) and "2 % are called novel" in above.sentence
    few, *_ = diagnose(model(calibration_scores_=np.arange(9.0)), [])
    assert not few.ok and few.sentence.endswith("Bring more source rows, or allow a larger fpr.")
    assert len(diagnose(model(threshold_=np.inf), [])) == 1  # no row is called novel: nothing to count
    own = [Diagnostic("own", np.float64(np.inf), np.float64(2.0), False, "Look.")]
    *_, steps, mine, warned = diagnose(model(stop_reason_="max_steps", diagnostics_=own), ["A warning."])
    assert steps.sentence == "Training ended after 60 steps (max steps)." and steps.value == 60
    assert (mine.value, mine.threshold, type(mine.threshold)) == (None, 2.0, float)
    assert (warned.name, warned.ok, warned.sentence) == ("warning", False, "A warning.")
