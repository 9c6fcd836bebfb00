"""Evidence for a claim: cells of a page are compared as they are printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openset.bench.claims import Claim, Comparisons, Evidence, judge, verdict_of

ABOVE = Evidence(data="stand-in", page="toys", metric="AUROC", left="color", right=("dd", "upu"))
WITHIN = Evidence(data="stand-in", page="toys", metric="AUROC")
TESTED = replace(ABOVE, metric="AUPRC", section="with shift", tested=True)


@pytest.mark.parametrize(
    ("evidence", "holds", "text"),
    [
        (ABOVE, True, "AUROC, [toys](toys.md) (stand-in): color 0.90, upu 0.85, the best of 2"),
        (replace(ABOVE, metric="AUPRC"), False, "color 0.50, dd 0.52, the best of 2"),
        (replace(ABOVE, metric="AUPRC", margin=0.03), True, "color 0.50, dd 0.52, the best of 2, 0.03 allowed"),
        (replace(ABOVE, left="dd", right=("dd",)), False, "dd 0.80, dd 0.80"),
        (
            replace(ABOVE, left="dd", left_section="without shift", right=("dd",), right_section="with shift"),
            True,
            "dd without shift 0.95, dd with shift 0.80",
        ),
        (
            replace(WITHIN, rows=("dd", "upu"), spread=0.05),
            True,
            "dd to upu lie within 0.05 (0.80 to 0.85); 0.05 asked for",
        ),
        (replace(WITHIN, metric="AUPRC", rows=("dd", "upu"), spread=0.05), False, "lie within 0.42"),
    ],
)
def test_cells_are_compared_as_they_are_printed(pages, evidence, holds, text):
    found = judge(evidence, pages)
    assert found.holds is holds and text in found.text


def test_what_no_page_has_yet_is_not_measured(pages):
    absent = replace(ABOVE, page="balls", run="results-balls")
    found = judge(absent, pages)
    assert found.holds is None and found.text == (
        "AUROC, balls.md (stand-in): `openset bench run results-balls` measures it"
    )
    there = judge(ABOVE, pages)
    assert verdict_of([found]) == "is not measured"
    assert verdict_of([found, there]) == "holds (1 of 1; 1 not measured)"


def test_rows_may_lie_in_two_sections_and_an_oracle_below_a_value(pages):
    sections = ("with shift", "without shift")
    both = replace(WITHIN, rows=("dd",), across=sections, spread=0.02)
    assert judge(both, pages).holds is False and "dd in 2 sections lies within 0.15" in judge(both, pages).text
    below = replace(WITHIN, rows=("dd", "upu"), below=0.81)
    assert judge(below, pages).holds is True and judge(replace(below, below=0.8), pages).holds is False


def test_a_margin_is_allowed_to_the_last_digit(pages):
    """.03 below is within a margin of .03, whatever binary fractions say."""
    assert judge(replace(ABOVE, left="upu", right=("dd",), metric="AUPRC", margin=0.42), pages).holds is True
    assert judge(replace(ABOVE, left="upu", right=("dd",), metric="AUPRC", margin=0.41), pages).holds is False


def test_significant_is_what_the_page_s_paired_test_finds(pages):
    of_upu = judge(replace(TESTED, right=("upu",)), pages)
    assert of_upu.holds is True and of_upu.text.endswith("color +0.40 to upu, p <.001")
    assert judge(replace(TESTED, right=("dd",)), pages).holds is False  # significant, and the other way round
    by_auroc = judge(replace(TESTED, metric="AUROC", right=("upu",)), pages)
    assert by_auroc.holds is False and by_auroc.text.endswith("color +0.05 to upu, p = .200")


def test_above_asks_all_rows(pages):
    assert judge(replace(WITHIN, rows=("dd",), above=0.79), pages).holds is True
    found = judge(replace(WITHIN, rows=("dd", "upu"), above=0.8), pages)
    assert found.holds is False and found.text.endswith("dd to upu go from 0.80 to 0.85; above 0.80 asked for")


def test_one_entry_of_the_file_is_a_comparison_for_each_page_section_metric_and_pair():
    shared = {"pages": {"sun": "stand-in", "cifar100": "paper's rows"}, "metrics": ("AUROC", "AUPRC")}
    best = Comparisons(**shared, left=("a", "b"), right=("c", "d"), margin=0.1)
    assert len(list(best.each())) == 8
    first = next(best.each())
    assert (first.data, first.page, first.metric, first.left, first.right) == (
        "stand-in", "sun", "AUROC", "a", ("c", "d"),
    )  # fmt: skip
    assert first.margin == 0.1
    pairs = Comparisons(**shared, pairs={"a": "c", "b": "d"}, run="results-sun")
    assert [(one.left, one.right) for one in pairs.each()][:2] == [("a", ("c",)), ("b", ("d",))]
    tested = Comparisons(**shared, left=("a",), right=("c", "d"), tested=True)
    assert [one.right for one in tested.each()][:2] == [("c",), ("d",)]
    assert len(list(Claim("text", "where", (best, pairs, tested)).each())) == 8 + 8 + 8
