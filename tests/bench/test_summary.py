"""The page of claims: figures are read from pages, and a verdict follows from them."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from openset.bench.claims import judge
from openset.bench.result_pages import Pages
from openset.bench.spec import built_in_specs
from openset.bench.summary import headline_table, load_summary, summary_page
from openset.cli import app

RESULTS = Path(__file__).parents[2] / "docs" / "results"


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
