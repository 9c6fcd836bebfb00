"""Terminal text, Markdown, LaTeX and CSV of one table."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from bench.made_up import fill
from openset.bench.table_formats import Cell, Section, Table, latex, markdown, p_text, table_as_csv, terminal
from openset.bench.tables import comparison_table, main_table


@pytest.fixture
def results(tmp_path):
    return fill(tmp_path / "runs.sqlite")


def test_markdown_and_latex(results):
    text = markdown(main_table(results))
    assert "| color | **0.80±0.13** | 5 | 0.40±0.06 | 0 | **0.75±0.00** | 2.5 |" in text.splitlines()
    tex = latex(main_table(results))
    assert r"color & \textbf{0.80$\pm$0.13} & 5 & 0.40$\pm$0.06 & 0 & \textbf{0.75$\pm$0.00} & 2.5 \\" in tex
    assert r"k\_NN" in tex and tex.count("{") == tex.count("}")


def test_the_terminal_form_fits_80_columns(results):
    file = io.StringIO()
    for table in (main_table(results), comparison_table(results)):
        Console(file=file, width=80).print(terminal(table))
    printed = file.getvalue()
    assert max(map(len, printed.splitlines())) <= 80 and "…" not in printed
    for word in ("Made up", "0.80±0.13", "k_NN", "6 splits", "signed-rank"):
        assert word in printed


@pytest.mark.parametrize("width", [60, 80])
def test_columns_that_do_not_fit_are_printed_below(width):
    headings = ("method", "AUROC", "wins", "AUPRC", "wins", "FPR at 95 % TPR", "wins", "top-1", "s")
    ours = (
        "color, library defaults",
        "0.82±0.07",
        "12",
        "0.83±0.07",
        "11",
        "0.81±0.02",
        "10",
        "0.85±0.01",
        "90001",
    )
    paper = ("  in the paper", "0.81/0.72/0.63", "", "0.61/0.52/0.43", "", "0.41/0.32/0.23", "", "0.21", "")
    rows = tuple(tuple(map(Cell, texts)) for texts in (ours, paper))
    file = io.StringIO()
    Console(file=file, width=width).print(terminal(Table("t", headings, (Section("s", rows),)), width))
    printed = file.getvalue()
    assert max(map(len, printed.splitlines())) <= width and "…" not in printed
    assert all(text in printed for text in (*ours[1:], *paper[1:])) and printed.count("color,") > 1


def test_four_metrics_and_the_seconds_fit_80_columns_in_one_table():
    headings = ("method", "AUROC", "wins", "AUPRC", "wins", "OSCR", "wins", "top-1", "s")
    texts = ("color, paper's rule", "0.82±0.07", "12", "0.83±0.07", "11", "0.81±0.02", "10", "0.85±0.01", "54.7")
    file = io.StringIO()
    Console(file=file, width=80).print(
        terminal(Table("t", headings, (Section("s", (tuple(map(Cell, texts)),)),)))
    )
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and any(all(text in line for text in texts[1:]) for line in lines)


def test_latex_and_markdown_escape_what_they_read_as_their_own():
    table = Table("50 % {x}", ("α̂", "~n^2"), (Section("a_b", ((Cell("[0.1, 0.2]"), Cell("a|b > $1")),)),))
    tex = latex(table)
    assert r"50 \% \{x\}" in tex and r"$\hat\alpha$ & \textasciitilde{}n\textasciicircum{}2" in tex
    assert r"{[}0.1, 0.2] & a|b $>$ \$1 \\" in tex
    assert r"| [0.1, 0.2] | a\|b > $1 |" in markdown(table)


def test_headings_wider_than_their_column_wrap_and_nothing_is_cut_off():
    headings = ("cell", *(f"Δ a long heading {i}" for i in range(8)))
    table = Table("t", headings, (Section("s", ((Cell("x"), *(Cell(f"+0.{i}") for i in range(8))),)),))
    console = Console(width=80, file=io.StringIO())
    console.print(terminal(table))
    text = console.file.getvalue()
    assert all(f"+0.{i}" in text for i in range(8)) and text.count("heading") == 8 and "…" not in text


def test_csv_has_the_cells_as_printed_below_their_section(results):
    table = main_table(results)
    first, *lines = csv.reader(io.StringIO(table_as_csv(table)))
    assert first == ["section", *table.headings]
    assert lines == [[s.title, *(cell.text for cell in row)] for s in table.sections for row in s.rows]


def test_a_table_of_settings_fits_80_columns():
    texts = (
        "amazon-fdu-mtl (stand-in for Amazon Reviews 2018)",
        "sentiment",
        "1",
        "1",
        "0.15±0.06",
        "0.16±0.09?",
    )
    headings = ("dataset", "shift of", "new classes", "splits", "novel fraction", "in the paper")
    file = io.StringIO()
    Console(file=file, width=80).print(
        terminal(Table("t", headings, (Section("s", (tuple(map(Cell, texts)),)),)))
    )
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and "0.16±0.09?" in file.getvalue() and "…" not in file.getvalue()


@pytest.mark.parametrize(("p", "text"), [(0.0004, "<.001"), (0.001, ".001"), (0.0625, ".062"), (1.0, "1.000")])
def test_p_values_as_papers_print_them(p, text):
    assert p_text(p) == text
