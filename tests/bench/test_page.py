"""Pages of results: what they say, and that the smallest one committed comes out again cell by cell."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from openset.bench.heads_table import heads_table
from openset.bench.page import results_page
from openset.bench.tables import main_table, results_of
from openset.cli import app

COMMITTED = Path(__file__).parents[2] / "docs" / "results" / "tiny.md"


def cells(page, *, timed=("s",)):
    """Every cell of every table below its section, without times, which no two machines share."""
    found, section, headings = {}, "", []
    for line in page.partition("\n## Time\n")[0].splitlines():
        if line.startswith("#"):
            section, headings = line, []
        elif line.startswith("| "):
            row = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if not headings:
                headings = row
                continue
            for i, (heading, cell) in enumerate(zip(headings, row, strict=True)):
                if heading not in timed:
                    found[section, row[0], i] = cell
    return found


def test_the_smallest_page_regenerates_cell_by_cell(tmp_path, monkeypatch):
    text = COMMITTED.read_text("utf-8")
    commands = re.findall(r"^    openset (.*)$", text, flags=re.MULTILINE)
    assert len(commands) == 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "results").mkdir(parents=True)
    for command in commands:
        ended = CliRunner().invoke(app, command.replace("--jobs 2", "--jobs 1").split())
        assert ended.exit_code == 0, ended.output
    again = (tmp_path / "docs" / "results" / "tiny.md").read_text("utf-8")
    assert len(cells(text)) == 2 * 2 * 8 and cells(again) == cells(text)


def test_every_page_names_a_spec_and_its_own_path():
    from openset.bench.spec import built_in_specs

    pages = [page for page in COMMITTED.parent.glob("*.md") if page.name != "README.md"]
    assert COMMITTED in pages
    for page in pages:
        text = page.read_text("utf-8")
        run, table, *figure = re.findall(r"^    openset bench (.*)$", text, flags=re.MULTILINE)
        assert len({command.split()[1] for command in (run, table, *figure)}) == 1
        assert table.endswith(f"--out docs/results/{page.name}")
        spec = built_in_specs()[run.split()[1]]
        assert len(figure) == (spec.figure is not None)
        for command in figure:
            drawn = page.with_suffix(".svg")
            assert command.endswith(f"--out docs/results/{drawn.name}")
            assert f"]({drawn.name})" in text and drawn.read_text("utf-8").startswith("<?xml")


@pytest.fixture(scope="module")
def results(tiny, finished):
    return results_of(tiny, finished)


def test_a_page_has_commands_versions_date_and_times(results, tiny_path):
    page = results_page(results, Path("docs/results/it.md"), Path("my data"))
    assert f"    openset bench run {tiny_path} --data 'my data' --jobs 2\n" in page
    assert f"    openset bench table {tiny_path} --data 'my data' --out docs/results/it.md\n" in page
    assert f"with openset {results.code} (python 3." in page and re.search(r"^on \d{4}-\d\d-\d\d", page, re.M)
    assert "## Time" in page and re.search(r"\| knn \| 4 \| \d+\.\d \| \d+ \|", page)
    assert "stand-in" not in page and "share one training" not in page


def test_a_page_says_which_methods_share_their_training(results):
    names = iter(["msp", "energy"] * len(results.plan))
    plan = [
        (replace(planned, run=replace(planned.run, method=next(names))), run) for planned, run in results.plan
    ]
    page = results_page(replace(results, plan=plan), Path("it.md"), None)
    assert "msp, energy share one training; each is charged for all of it." in page


def test_a_page_names_spec_store_and_code_as_they_were_given(results):
    shipped = replace(results, spec=replace(results.spec, path=None))
    page = results_page(shipped, Path("it.md"), None)
    assert "    openset bench run tiny --jobs 2\n    openset bench table tiny --out it.md\n" in page
    page = results_page(shipped, Path("it.md"), None, Path("my runs.sqlite"), "0.1+abc")
    assert "    openset bench run tiny --store 'my runs.sqlite' --jobs 2\n" in page
    assert "    openset bench table tiny --store 'my runs.sqlite' --code 0.1+abc --out it.md\n" in page


def test_a_page_on_a_stand_in_says_so(results):
    replaced = replace(results, blocks=[replace(block, stand_in_for="SUN397") for block in results.blocks])
    page = results_page(replaced, Path("it.md"), None)
    assert page.startswith("# A tiny experiment (on stand-in data)\n")
    assert "**A stand-in**: small is no SUN397" in page and page.count("(stand-in for SUN397)") >= 2
    assert "(on stand-in data)" in main_table(replaced).title
    again = [replace(block, problem="large") for block in replaced.blocks]
    page = results_page(replace(replaced, blocks=[*replaced.blocks, *again]), Path("it.md"), None)
    assert "**A stand-in**: small and large are no SUN397" in page and page.count("**A stand-in**") == 1


def test_all_heads_stand_in_a_table_and_the_selected_ones_are_marked(results):
    table = heads_table(results)
    assert table.headings == ("α̂", "seed 0", "seed 1")
    assert len(table.sections) == 2 * 2 * 5  # settings, variants of CoLOR, quantities
    for section in table.sections:
        assert [row[0].text for row in section.rows] == ["0.05", "0.10"]
        for column in list(zip(*section.rows, strict=True))[1:]:
            assert sum(cell.bold for cell in column) == 1
    stored = {(p.run, p.label): s for p, s in results.plan if p.label == "CoLOR"}
    run = next(s for s in stored.values() if s is not None)
    (selected,) = [head for head in run.result.heads if head["selected"]]
    for metric in ("auroc", "auprc", "oscr"):
        assert selected[metric] == pytest.approx(run.result.metrics[metric])


def test_the_paper_s_heads_stand_below_ours_unless_the_data_is_a_stand_in(results):
    beside = [(replace(planned, paper="target-recall"), stored) for planned, stored in results.plan]
    table = heads_table(replace(results, plan=beside))
    recall, fpr, auroc, *_ = table.sections  # the first: with shift
    assert [row[0].text for row in recall.rows] == ["0.05", "  in the paper", "0.10", "  in the paper"]
    assert [cell.text for cell in recall.rows[1]] == ["  in the paper", "0.18", ""]  # it has no seed 1
    assert [cell.text for cell in auroc.rows[3]] == ["  in the paper", "0.98", ""]
    assert len(fpr.rows) == 2  # which it does not print
    others = [(p, s and replace(s, result=replace(s.result, stand_in_for="SUN397"))) for p, s in beside]
    assert all(len(section.rows) == 2 for section in heads_table(replace(results, plan=others)).sections)
