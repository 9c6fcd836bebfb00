"""The words of the answer, and what limits it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from openset.pipeline.summary import VERDICTS, Check, Verdict
from openset.pipeline.verdict import diagnose, give_verdict
from openset.stats.bounded_shift import Counts, smallest_noticed
from openset.stats.diagnostics import Diagnostic
from openset.stats.novelty import NoveltyTest
from openset.stats.shares import NOT_IDENTIFIED, ShareEstimate

ESTIMATE = ShareEstimate(
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
TEST = NoveltyTest(0.001, 12.0, Counts(0, 1000, 78, 800), tolerated_ratio=15.0)
FAILED = Check("separating column", "failed", "Column 'ticket' alone separates source and target.")


@pytest.mark.parametrize(
    ("estimate", "code"),
    [
        (NOT_IDENTIFIED, "nothing"),
        (ShareEstimate(0.02, 0.0, 0.05, 0.95, "m"), "nothing"),
        (ShareEstimate(0.02, 0.01, 0.05, 0.95, "m"), "stands_out"),
    ],
)
def test_a_method_without_a_test_proves_nothing(estimate, code):
    verdict = give_verdict(estimate, n_called=9, n_groups=1)
    assert (verdict.code, verdict.word) == (code, VERDICTS[code]) and "no test for a new class" in verdict.caveat
    assert give_verdict(estimate).code == "nothing", "no row is called new"


@pytest.mark.parametrize(
    ("p_value", "tolerated", "code"), [(1e-5, 36.0, "found"), (0.011, 15.0, "probable"), (0.05, 12.0, "probable")]
)
def test_a_proof_has_its_share_and_its_assumption(p_value, tolerated, code):
    test = replace(TEST, p_value=p_value, tolerated_ratio=tolerated)
    verdict = give_verdict(ESTIMATE, test, n_called=78, n_groups=1)
    assert verdict.code == code and "at least 1.0 % of the target; 78 rows are called new" in verdict.sentence
    assert ("probably" in verdict.sentence) is (code == "probable")
    proved = f"A new class is proved up to {tolerated:.1f} times."
    assert verdict.caveat.startswith(f"p = {p_value:.2g}. A. {proved} The least share is 1.0 % for 12 times.")


def test_a_group_that_stands_out_carries_the_number_that_matters():
    test = replace(TEST, p_value=0.2, tolerated_ratio=5.2)
    verdict = give_verdict(replace(ESTIMATE, low=0.0), test, n_called=78, n_groups=1)
    assert verdict.word == "a group stands out, not proved"
    assert verdict.sentence == (
        "78 rows stand out and form one group; they could be known rows only if some kind became 5.2 times as "
        "common."
    )
    assert "Up to 12 times is assumed possible" in verdict.caveat
    none = give_verdict(replace(ESTIMATE, low=0.0), test)
    assert none.sentence.startswith("78 rows stand out;"), "those that the test counts, if none is called new"
    one = give_verdict(replace(ESTIMATE, low=0.0), test, n_called=1)
    assert one.sentence.startswith("1 row stands out; it could be a known row only if some kind became 5.2 times")
    two = give_verdict(replace(ESTIMATE, low=0.0), test, n_called=78, n_groups=2)
    assert two.sentence.startswith("78 rows stand out, in 2 groups;")


@pytest.mark.parametrize(
    ("limit", "code", "words"),
    [("aligned", "stands_out", "was aligned with source"), ("unmixed", "stands_out", "do not mix"),
     ("moved", "cannot_tell", "The whole batch moved"), ("half", "cannot_tell", "More than half")],
)  # fmt: skip
def test_what_limits_a_verdict_is_said(limit, code, words):
    verdict = give_verdict(replace(ESTIMATE, low=0.0), replace(TEST, limit=limit), n_called=78, n_groups=1)
    assert verdict.code == code and words in f"{verdict.sentence} {verdict.caveat}"


def test_nothing_seen_says_what_could_have_been_seen():
    test = replace(TEST, p_value=1.0, tolerated_ratio=0.0)
    verdict = give_verdict(replace(ESTIMATE, low=0.0), test)
    least = smallest_noticed(1000, 800, 12.0)
    assert verdict.code == "nothing" and f"less than about {100 * least:.1f} % cannot be proved" in verdict.caveat
    assert verdict.caveat.endswith("assuming that no known kind became more than 12 times as common.")
    few = give_verdict(replace(ESTIMATE, low=0.0), replace(test, counts=Counts(0, 8, 0, 8)))
    assert "With so few rows no new class can be proved" in few.caveat


@pytest.mark.parametrize(
    ("tolerated", "called", "words"),
    [
        (1.9, 41, "41 rows are called new, but known rows that became more than 1.9 times as common would "
                  "explain them, and 12 times is assumed possible."),
        (0.0, 1, "1 row is called new, but so few that chance explains it."),
        (0.0, 0, "No rows stand out more than known rows that became more common would."),
    ],
)  # fmt: skip
def test_nothing_seen_says_how_rows_called_new_relate_to_that(tolerated, called, words):
    test = replace(TEST, p_value=1.0, tolerated_ratio=tolerated)
    verdict = give_verdict(replace(ESTIMATE, low=0.0), test, n_called=called, n_groups=1)
    assert (verdict.code, verdict.sentence) == ("nothing", words)
    without = give_verdict(ShareEstimate(0.02, 0.0, 0.05, 0.95, "m"), n_called=called)
    start = (
        f"{called} row{'s are' if called > 1 else ' is'} called new, no more than chance" if called else "No rows"
    )
    assert without.sentence.startswith(start)


@pytest.mark.parametrize("test", [None, TEST])
def test_a_failed_check_is_the_answer(test):
    caution = replace(FAILED, state="caution")
    verdict = give_verdict(ESTIMATE, test, checks=[FAILED, caution], n_called=78, n_groups=1)
    assert verdict.word == "cannot tell" and "A check failed (separating column)" in verdict.sentence
    two = give_verdict(ESTIMATE, test, checks=[FAILED, FAILED, replace(FAILED, name="copies")], n_called=78)
    assert two.sentence.startswith("Checks failed (separating column, copies): ")
    assert give_verdict(ESTIMATE, test, checks=[caution], n_called=78, n_groups=1).code != "cannot_tell"


@pytest.mark.parametrize(
    ("word", "code"), [("clear", "found"), ("likely", "probable"), ("none found", "nothing")]
)
def test_the_words_of_an_earlier_openset_have_a_code(word, code):
    assert Verdict(word, "", "").code == code


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
    ) and "2 % are called new" in above.sentence
    few, *_ = diagnose(model(calibration_scores_=np.arange(9.0)), [])
    assert not few.ok and few.sentence.endswith("Bring more source rows, or allow a larger rate (--fpr).")
    unmet = "fpr=0.01 cannot be promised from 9 source validation rows: threshold_ is their largest score."
    assert unmet not in [entry.sentence for entry in diagnose(model(calibration_scores_=np.arange(9.0)), [unmet])]
    assert unmet in [entry.sentence for entry in diagnose(model(), [unmet])], "unless nothing else says it"
    assert len(diagnose(model(threshold_=np.inf), [])) == 1  # no row is called novel: nothing to count
    own = [Diagnostic("own", np.float64(np.inf), np.float64(2.0), False, "Look.")]
    *_, steps, mine, warned = diagnose(model(stop_reason_="max_steps", diagnostics_=own), ["A warning."])
    assert steps.sentence == "Training ended after 60 steps (max steps)." and steps.value == 60
    assert (mine.value, mine.threshold, type(mine.threshold)) == (None, 2.0, float)
    assert (warned.name, warned.ok, warned.sentence) == ("warning", False, "A warning.")
