"""Pages of results: what they contain, and that the smallest committed page is reproduced cell by cell."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.made_up import fill
from openset.bench.results_page import results_page
from openset.bench.spec import FigureSpec, built_in_specs, parse_spec
from openset.bench.tables import main_table
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


@pytest.mark.slow
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
    assert len(cells(text)) == 2 * 2 * 8 + 2 * 5 and cells(again) == cells(text)


def test_every_page_names_a_spec_and_its_own_path():
    pages = [page for page in COMMITTED.parent.glob("*.md") if page.name not in ("README.md", "summary.md")]
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


@pytest.fixture
def results(tmp_path):
    found = fill(tmp_path / "runs.sqlite", environment={"python": "3.11", "torch": "2.4"})
    return replace(found, spec=replace(found.spec, figure=None))


def test_a_note_of_the_spec_stands_on_its_page(results):
    noted = replace(results, spec=replace(results.spec, note="One seed only."))
    assert "**Note**: One seed only.\n\n" in results_page(noted, Path("a.md"), None)
    assert "**Note**" not in results_page(results, Path("a.md"), None)
    text = 'note = "Small."\n[[problem]]\ndataset = "digits"\n[[method]]\nname = "dd"'
    assert parse_spec(text, "mine").note == "Small."


def test_a_page_has_commands_versions_date_and_times(results):
    own = replace(results, spec=replace(results.spec, path=Path("my spec.toml")))
    page = results_page(own, Path("docs/results/it.md"), Path("my data"))
    assert "    openset bench run 'my spec.toml' --data 'my data' --jobs 2\n" in page
    assert "    openset bench table 'my spec.toml' --data 'my data' --out docs/results/it.md\n" in page
    assert f"with openset {results.code} (python 3.11, torch 2.4)." in page
    assert re.search(r"^on \d{4}-\d\d-\d\d", page, re.M)
    assert "## Time" in page and "| k_NN | 6 | 2.5 | 15 |" in page
    assert "### 45 CPU seconds in total, one thread per run" in page
    assert "stand-in" not in page and "share one training" not in page


def test_a_page_says_once_what_its_runs_share_and_names_all_processors(results):
    kinds = iter(["an abacus", "a slide rule"] * len(results.plan))
    plan = [
        (
            planned,
            replace(run, result=replace(run.result, environment={"torch": "2.4", "processor": next(kinds)})),
        )
        for planned, run in results.plan
    ]
    page = results_page(replace(results, plan=plan), Path("it.md"), None)
    assert "(torch 2.4; processor an abacus; processor a slide rule)." in page


def test_a_page_with_a_figure_shows_it_and_how_to_draw_it(results):
    drawn = replace(results, spec=replace(results.spec, figure=FigureSpec("bars", ("auroc",), "novel class")))
    page = results_page(drawn, Path("docs/it.md"), None)
    assert "    openset bench figure made-up --out docs/it.svg\n" in page and "![Made up](it.svg)" in page


def test_a_page_says_which_methods_share_their_training(results):
    names = iter(["msp", "energy"] * len(results.plan))
    plan = [
        (replace(planned, run=replace(planned.run, method=next(names))), run) for planned, run in results.plan
    ]
    page = results_page(replace(results, plan=plan), Path("it.md"), None)
    assert "msp, energy share one training, which counts in full for each of them." in page


def test_a_page_names_store_and_code_as_they_were_given(results):
    page = results_page(results, Path("it.md"), None)
    assert "    openset bench run made-up --jobs 2\n    openset bench table made-up --out it.md\n" in page
    page = results_page(results, Path("it.md"), None, Path("my runs.sqlite"), "0.1+abc")
    assert "    openset bench run made-up --store 'my runs.sqlite' --jobs 2\n" in page
    assert "    openset bench table made-up --store 'my runs.sqlite' --code 0.1+abc --out it.md\n" in page


def test_a_page_on_a_stand_in_says_so(results):
    replaced = replace(results, blocks=[replace(block, stand_in_for="SUN397") for block in results.blocks])
    page = results_page(replaced, Path("it.md"), None)
    assert page.startswith("# Made up (on stand-in data)\n")
    assert "**Stand-in data**: synthetic is not SUN397" in page and page.count("(stand-in for SUN397)") == 1
    assert "(on stand-in data)" in main_table(replaced).title
    again = [replace(block, problem="large") for block in replaced.blocks]
    page = results_page(replace(replaced, blocks=[*replaced.blocks, *again]), Path("it.md"), None)
    assert (
        "**Stand-in data**: synthetic and large are not SUN397" in page and page.count("**Stand-in data**") == 1
    )
