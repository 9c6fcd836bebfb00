"""The page of claims: figures are read from pages, and a verdict follows from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from openset.bench.summary import Evidence, Pages, headline_table, judge, load_summary, summary_page
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
"""


@pytest.fixture
def pages(tmp_path):
    (tmp_path / "toys.md").write_text(PAGE)
    return Pages(tmp_path)


ABOVE = Evidence("stand-in", "toys", "AUROC", left="color", right=("dd", "upu"))


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
            Evidence("stand-in", "toys", "AUROC", rows=("dd", "upu"), spread=0.05),
            True,
            "dd to upu lie within 0.05 (0.80 to 0.85); 0.05 asked for",
        ),
        (Evidence("stand-in", "toys", "AUPRC", rows=("dd", "upu"), spread=0.05), False, "lie within 0.42"),
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
    summary, pages = load_summary(), Pages(RESULTS)
    for claim in summary.claim:
        assert claim.evidence and all(judge(evidence, pages).text for evidence in claim.evidence)
    table = headline_table(summary, pages)
    assert len(table.headings) == 8
    for section in table.sections[:2]:
        by_name = {row[0].text: [cell.text for cell in row[1:]] for row in section.rows}
        assert "–" not in by_name["CoLOR, Algorithm 1"] and by_name["DD"].count("–") == 0
        assert by_name["CoLOR, the library's"].count("–") == 3  # the paper has none


def test_the_page_is_what_the_command_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(RESULTS.parents[1])
    command = "openset bench summary --results docs/results --out docs/results/summary.md"
    page = summary_page(Path("docs/results"), command)
    assert page == (RESULTS / "summary.md").read_text("utf-8")
    written = tmp_path / "summary.md"
    ran = CliRunner().invoke(app, ["bench", "summary", "--results", "docs/results", "--out", str(written)])
    assert ran.exit_code == 0 and written.read_text("utf-8").splitlines()[10:] == page.splitlines()[10:]
    assert CliRunner().invoke(app, ["bench", "summary", "--results", ".", "--out", "page.txt"]).exit_code != 0
