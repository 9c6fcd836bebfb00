"""The page of claims: figures are read from pages, and a verdict follows from them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from openset.bench.claims import Claim, Comparisons, Evidence, judge, verdict_of
from openset.bench.result_pages import Pages
from openset.bench.spec import built_in_specs
from openset.bench.summary import headline_table, load_summary, summary_page
from openset.cli import app

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGE = """# A page

## Table

### toys, with shift: 2 splits

| method | AUROC | wins | AUPRC |
|---|---:|---:|---:|
| color | **0.90±0.10** | 2 | 0.50 |
|   in the paper | 0.80 | | |
| dd | 0.80±0.10 | 0 | 0.52 |
| upu | 0.85 | 0 | 0.10 |

### toys, without shift: 2 splits

| method | AUROC |
|---|---:|
| dd | 0.95 |

## color against every method

### toys, with shift

| against | Δ AUROC | p | Δ AUPRC | p |
|---|---:|---:|---:|---:|
| dd | +0.10 | .006 | -0.02 | **.001** |
| upu | +0.05 | .200 | +0.40 | **<.001** |
"""


@pytest.fixture
def pages(tmp_path):
    (tmp_path / "toys.md").write_text(PAGE)
    return Pages(tmp_path)


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


def test_what_a_page_lacks_is_told(pages, tmp_path):
    with pytest.raises(ValueError, match="toys.md has no row 'pulse' with AUROC in a section 'with shift'"):
        judge(replace(ABOVE, left="pulse"), pages)
    with pytest.raises(ValueError, match="has no page balls.md"):
        judge(replace(ABOVE, page="balls"), pages)


def test_every_claim_has_its_cells_on_the_pages_of_this_repository():
    summary = load_summary()
    pages = Pages(RESULTS, summary.old_labels)
    for claim in summary.claim:
        found = [judge(evidence, pages) for evidence in claim.each()]
        assert found and all(finding.text for finding in found)
    table = headline_table(summary, pages)
    assert len(table.headings) == 9
    assert "CIFAR-100, ResNet18 of width 8 from scratch (paper's rows, 5 splits)" in table.headings[5]
    assert [section.title for section in table.sections[:2]] == ["AUROC", "AUROC wins"]
    wins = {row[0].text: row[1].text for row in table.sections[1].rows}
    assert wins["DD"] == "1/15" and wins["CoLOR, Algorithm 1"] == "14/15"  # as the paper prints them
    for section in table.sections[0:4:2]:
        by_name = {row[0].text: [cell.text for cell in row[1:]] for row in section.rows}
        assert "–" not in by_name["CoLOR, Algorithm 1"] and by_name["DD"].count("–") == 0
        assert by_name["CoLOR, the library's"][0] == "–"  # the paper has none


def test_the_first_claim_is_judged_on_every_natural_problem_of_the_headline_table():
    summary = load_summary()
    (natural,) = [column for column in summary.column if column.page == "natural"]
    judged = [evidence.section for evidence in summary.claim[0].each() if evidence.page == "natural"]
    assert judged == [f"{section}, with shift" for section in natural.sections]


def test_what_no_page_has_yet_is_not_measured(pages):
    absent = replace(ABOVE, page="balls", run="results-balls")
    found = judge(absent, pages)
    assert found.holds is None and found.text == (
        "AUROC, balls.md (stand-in): `openset bench run results-balls` measures it"
    )
    there = judge(ABOVE, pages)
    assert verdict_of([found]) == "is not measured"
    assert verdict_of([found, there]) == "holds (1 of 1; 1 not measured)"


def test_an_old_label_counts_until_the_page_is_made_again(tmp_path):
    (tmp_path / "toys.md").write_text(PAGE)
    evidence = replace(ABOVE, left="color_paper")
    old = {"toys": {"color_paper": "color", "color": ""}}
    assert "color_paper 0.90" in judge(evidence, Pages(tmp_path, old)).text
    new = PAGE.replace("| color |", "| color | 0.99 | 2 | 0.50 |\n| color_paper |")
    (tmp_path / "toys.md").write_text(new)
    again = Pages(tmp_path, old)
    assert "color_paper 0.90" in judge(evidence, again).text and "color 0.99" in judge(ABOVE, again).text


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


def test_a_claim_names_only_data_that_was_measured():
    page = summary_page(RESULTS, "a command")
    (line,) = [line for line in page.splitlines() if line.startswith("| Background shift does not touch ZOC")]
    assert "not measured" in line and line.endswith("| not the paper's, stand-in |")


def test_what_is_not_measured_yet_would_be_found_on_the_page_of_its_experiment():
    """Else a claim would stay "not measured" for ever: rows and sections have the names of the spec."""
    waiting = [evidence for claim in load_summary().claim for evidence in claim.each() if evidence.run]
    assert len(waiting) > 20
    for evidence in waiting:
        spec = built_in_specs()[evidence.run]
        labels = tuple(f"{method.label} " for method in spec.methods)
        for row in filter(None, (evidence.left, *evidence.right, *evidence.rows)):
            assert f"{row} ".startswith(labels), (evidence.run, row)
        settings = {"shift": "with shift", "no-shift": "without shift"}
        titles = [f"{problem.title}, {settings[name]}" for problem in spec.problems for name in problem.settings]
        used = evidence.across or (evidence.left_section, evidence.right_section)
        for section in {name or evidence.section for name in used}:
            name = re.sub(r" \(stand-in for [^)]*\)", "", section)
            assert any(name in title for title in titles), (evidence.run, section)


def test_the_page_is_what_the_command_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(RESULTS.parents[1])
    command = "openset bench summary --results docs/results --out docs/results/summary.md"
    page = summary_page(Path("docs/results"), command)
    assert page == (RESULTS / "summary.md").read_text("utf-8")
    written = tmp_path / "summary.md"
    ran = CliRunner().invoke(app, ["bench", "summary", "--results", "docs/results", "--out", str(written)])
    assert ran.exit_code == 0 and written.read_text("utf-8").splitlines()[10:] == page.splitlines()[10:]
    assert CliRunner().invoke(app, ["bench", "summary", "--results", ".", "--out", "page.txt"]).exit_code != 0
