"""Tables and figures from made-up results whose every figure can be worked out by hand."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from openset.bench.figures import draw
from openset.bench.runs import RunResult, expand
from openset.bench.spec import METRICS, parse_spec
from openset.bench.store import Store
from openset.bench.summary import compare, paper_figures
from openset.bench.tables import (
    Cell,
    Section,
    Table,
    comma_separated,
    comparison_table,
    latex,
    main_table,
    markdown,
    results_of,
    terminal,
)
from openset.errors import MissingExtraError
from openset.stats.comparison import holm, signed_rank_test

SPEC = """
title = "Made up"
metrics = ["auroc", "fpr_at_95_tpr", "top1"]
[[problem]]
dataset = "synthetic"
settings = ["shift"]
seeds = [0, 1, 2, 3, 4, 5]
paper = "cifar100"
[[method]]
name = "color"
[[method]]
name = "dd"
[[method]]
name = "knn"
label = "k_NN"
[figure]
kind = "bars"
metrics = ["auroc"]
"""
AUROC = {
    "color": [0.9, 0.8, 0.9, 0.7, 0.9, 0.6],
    "dd": [0.8, 0.7, 0.9, 0.6, 0.8, 0.5],
    "knn": [0.5, 0.85, 0.4, 0.3, 0.2, 0.1],
}


def fill(path, text=SPEC, *, failing=(), **changes):
    """A store in which seed i of a method has the i-th AUROC above, and half of it as FPR."""
    spec, store = parse_spec(text, "made-up"), Store(path)
    for planned in expand(spec):
        run = planned.run
        value = AUROC[run.method][run.seed]
        metrics = {"auroc": value, "fpr_at_95_tpr": value / 2, "top1": 0.75, "novel_fraction": 0.1}
        result = RunResult(metrics, {"fit": 2.0, "score": 0.9, "cpu": 2.5}, manifest_checksum=f"split {run.seed}")
        if (run.method, run.seed) in failing:
            result = RunResult(failure="Traceback\nValueError: too few rows")
        store.put(run, replace(result, **changes), spec=spec.name)
    return results_of(spec, store)


@pytest.fixture
def results(tmp_path):
    return fill(tmp_path / "runs.sqlite")


def test_means_spread_wins_and_best(results):
    (block,) = results.blocks
    color, dd, knn = block.rows
    assert color.cells["auroc"].mean == pytest.approx(0.8)
    assert color.cells["auroc"].sd == pytest.approx((0.08 / 5) ** 0.5)
    assert [row.cells["auroc"].wins for row in block.rows] == [5, 1, 1]  # seed 2 is shared by two
    assert [row.cells["auroc"].is_best for row in block.rows] == [True, False, False]
    assert [row.cells["fpr_at_95_tpr"].is_best for row in block.rows] == [False, False, True]  # lower is better
    assert [row.cells["fpr_at_95_tpr"].wins for row in block.rows] == [0, 1, 5]
    assert all(row.cells["top1"].is_best for row in block.rows)
    assert (dd.label, knn.label, color.seconds) == ("dd", "k_NN", 2.5)
    assert (len(block.splits), block.novel_fraction, block.same_data) == (6, pytest.approx(0.1), True)


def test_comparisons_are_paired_and_corrected(results):
    of_auroc = [c for c in results.comparisons if c.metric == "auroc"]
    p = [signed_rank_test(AUROC["color"], AUROC[name]) for name in ("dd", "knn")]
    assert [c.other for c in of_auroc] == ["dd", "k_NN"]
    assert [c.p for c in of_auroc] == p and [c.p_holm for c in of_auroc] == holm(p).tolist()
    assert of_auroc[0].difference == pytest.approx(0.5 / 6) and of_auroc[0].n == 6
    table = comparison_table(results)
    assert table is not None and "+0.08" in markdown(table)


def test_the_paper_s_figures_stand_beside_ours_unless_the_data_is_a_stand_in(results, tmp_path):
    assert results.blocks[0].rows[0].paper == {"auroc": "0.77±0.09"}
    assert "in the paper" in markdown(main_table(results))
    stand_in = fill(tmp_path / "other.sqlite", stand_in_for="CIFAR-100")
    assert stand_in.blocks[0].rows[0].paper == {}
    assert "stand-in for CIFAR-100" in markdown(main_table(stand_in))


def test_the_paper_s_wrong_figures_are_marked():
    without = paper_figures("sun397-with-without", "no-shift")
    assert without["auroc"]["shot"].endswith("?") and without["auroc"]["arpl"] == without["auroc"]["shot"][:-1]
    assert set(paper_figures("amazon", "shift")) == {"auroc", "auprc", "oscr"} <= set(METRICS)
    assert paper_figures("sun397-rn50", "no-shift")["oscr"]["dd"] == "0.86±0.00"  # the appendix's, not ViT-L/14's
    assert paper_figures("joint-sun397-rn50", "shift")["top1"]["color"].endswith("?")
    assert paper_figures("cifar100", "shift")["oscr"]["zoc"] == "0.84±0.01?"
    assert paper_figures("grid-range", "shift")["auprc"]["[0.01, 0.1]"] == "0.93/0.96/0.94?"
    assert paper_figures("synthetic-r-eta", "shift")["auroc"]["color 0.5"] == "0.86"
    assert paper_figures("synthetic-theta", "shift")["auprc"]["dd 1.5708"] == "0.12?"
    assert (
        paper_figures("settings", "shift")["novel_fraction"]["cifar100"] == "0.16±0.09?"
    )  # swapped with Amazon's
    assert paper_figures("target-recall", "shift")["auprc"]["0.25"] == "0.83/0.08/0.80/0.97/0.05"
    assert paper_figures(None, "shift") == paper_figures("moon", "shift") == {}


def test_markdown_and_latex(results):
    text = markdown(main_table(results))
    assert "| color | **0.80±0.13** | 5 | 0.40±0.06 | 0 | **0.75±0.00** | 2.5 |" in text.splitlines()
    tex = latex(main_table(results))
    assert r"color & \textbf{0.80$\pm$0.13} & 5 & 0.40$\pm$0.06 & 0 & \textbf{0.75$\pm$0.00} & 2.5 \\" in tex
    assert r"k\_NN" in tex and tex.count("{") == tex.count("}")


def test_csv_has_full_precision(results):
    rows = list(csv.DictReader(io.StringIO(comma_separated(results))))
    assert len(rows) == 3 * 3
    first = rows[0]
    assert float(first["mean"]) == results.blocks[0].rows[0].cells["auroc"].mean
    assert (first["method"], first["wins"], first["splits"], first["paper"]) == ("color", "5", "6", "0.77±0.09")
    assert float(rows[3]["p_holm"]) == results.comparisons[0].p_holm


def test_the_terminal_form_fits_80_columns(results):
    file = io.StringIO()
    for table in (main_table(results), comparison_table(results)):
        Console(file=file, width=80).print(terminal(table))
    printed = file.getvalue()
    assert max(map(len, printed.splitlines())) <= 80 and "…" not in printed
    for word in ("Made up", "0.80±0.13", "k_NN", "6 splits", "signed-rank"):
        assert word in printed


@pytest.mark.parametrize("width", [60, 80])
def test_columns_that_do_not_fit_stand_below(width):
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


@pytest.mark.parametrize(
    ("labels", "reference"),
    [({"conop": "color", "color": "color"}, "color"), ({"mine": "color", "dd": "dd"}, "mine"),
     ({"grid 1": "color", "grid 2": "color"}, None)],
)  # fmt: skip
def test_color_is_what_others_are_compared_with(results, labels, reference):
    (block,) = results.blocks
    rows = [
        replace(block.rows[i], label=label, method=method) for i, (label, method) in enumerate(labels.items())
    ]
    found = compare([replace(block, rows=tuple(rows))], ["auroc"])
    assert {c.reference for c in found} == ({reference} if reference else set())


def test_tests_that_cannot_find_anything_say_so(results, tmp_path, monkeypatch):
    table = comparison_table(results)
    assert table.notes[1:] == ("With 6 splits and 2 methods to compare with, no p can fall below .062.",)
    least = 2 * signed_rank_test([1.0] * 6, [0.1 * i for i in range(6)])
    assert least == 0.0625 == min(holm([least / 2, least / 2]))
    monkeypatch.setitem(AUROC, "color", [0.9, 0.8, 0.9, 0.7, 0.9, 0.6, 0.8])
    monkeypatch.setitem(AUROC, "dd", [0.8, 0.7, 0.9, 0.6, 0.8, 0.5, 0.7])
    monkeypatch.setitem(AUROC, "knn", [0.5, 0.85, 0.4, 0.3, 0.2, 0.1, 0.3])
    one_more = fill(tmp_path / "more.sqlite", SPEC.replace("4, 5]", "4, 5, 6]"))
    assert len(comparison_table(one_more).notes) == 1


def test_in_a_sweep_every_value_has_its_reference_and_the_title_names_none_of_them(tmp_path):
    swept = SPEC.replace("seeds =", "sweep = { novel_fraction = [0.1, 0.2] }\nseeds =")
    table = comparison_table(fill(tmp_path / "swept.sqlite", swept))
    assert table.title == "color against every method" and len(table.sections) == 2
    assert [row[0].text for row in table.sections[1].rows] == ["dd 0.2", "k_NN 0.2"]
    other = SPEC.replace("[[method]]", '[[method]]\nname = "color"\nlabel = "another"\n[[method]]', 1)
    both = other.replace("seeds =", "sweep = { novel_fraction = [0.1, 0.2] }\nseeds =")
    table = comparison_table(fill(tmp_path / "both.sqlite", both))
    assert [row[0].text for row in table.sections[0].rows] == ["another 0.1", "dd 0.1", "k_NN 0.1"]


def test_a_metric_that_some_methods_lack_is_left_blank(tmp_path):
    results = fill(tmp_path / "runs.sqlite", SPEC.replace('"top1"]', '"top1", "best_head_auprc"]'))
    table = comparison_table(results)
    assert table is not None and [cell.text for cell in table.sections[0].rows[0]][-2:] == ["–", "–"]


def test_latex_and_markdown_escape_what_they_read_as_their_own():
    table = Table("50 % {x}", ("α̂", "~n^2"), (Section("a_b", ((Cell("[0.1, 0.2]"), Cell("a|b > $1")),)),))
    tex = latex(table)
    assert r"50 \% \{x\}" in tex and r"$\hat\alpha$ & \textasciitilde{}n\textasciicircum{}2" in tex
    assert r"{[}0.1, 0.2] & a|b $>$ \$1 \\" in tex
    assert r"| [0.1, 0.2] | a\|b > $1 |" in markdown(table)


def test_failures_and_missing_runs_are_told(tmp_path):
    results = fill(tmp_path / "runs.sqlite", failing={("dd", 2)})
    (block,) = results.blocks
    assert block.rows[1].n_failed == 1 and block.rows[0].cells["auroc"].wins == 5
    notes = " ".join(main_table(results).notes)
    assert "Failed: dd · synthetic, shift, novel novel, seed 2: ValueError: too few rows" in notes
    more = parse_spec(SPEC.replace("4, 5]", "4, 5, 6]"), "made-up")
    assert "3 of 21 runs are not stored yet" in " ".join(
        main_table(results_of(more, Store(tmp_path / "runs.sqlite"))).notes
    )
    assert [c.n for c in results.comparisons[:2]] == [5, 6]
    both = parse_spec(SPEC.replace('["shift"]', '["shift", "no-shift"]'), "made-up")
    assert len(results_of(both, Store(tmp_path / "runs.sqlite")).blocks) == 1  # nothing stored without shift


def test_runs_of_one_split_that_saw_different_rows_are_told(tmp_path):
    results = fill(tmp_path / "runs.sqlite")
    run = results.plan[0][0].run
    store = Store(tmp_path / "runs.sqlite")
    store.put(run, RunResult({"auroc": 0.5}, {"cpu": 1.0}, manifest_checksum="other"), spec="made-up")
    assert "saw different rows" in " ".join(main_table(results_of(results.spec, store)).notes)


def test_an_empty_store_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="run `openset bench run made-up` first"):
        results_of(parse_spec(SPEC, "made-up"), Store(tmp_path / "empty.sqlite"))


def test_too_few_splits_give_no_tests(tmp_path):
    assert comparison_table(fill(tmp_path / "a.sqlite", SPEC.replace("[0, 1, 2, 3, 4, 5]", "[0, 1]"))) is None


def test_bars_and_lines_are_drawn_alike_twice(results, tmp_path):
    for name in ("a.svg", "b.svg", "c.png"):
        draw(results, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    lines = SPEC.replace('"bars"', '"lines"\nx_label = "FPR budget"').replace(
        'name = "dd"', 'name = "dd"\nsweep = { fpr = [0.01, 0.05] }'
    )
    swept = fill(tmp_path / "lines.sqlite", lines)
    assert [row.label for row in swept.blocks[0].rows] == ["color", "dd 0.01", "dd 0.05", "k_NN"]
    draw(swept, tmp_path / "lines.svg")
    assert (tmp_path / "lines.svg").stat().st_size > 5000


def test_figures_that_cannot_be_drawn(results, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        draw(results, tmp_path / "a.gif")
    with pytest.raises(ValueError, match="sweeps nothing"):
        draw(fill(tmp_path / "x.sqlite", SPEC.replace('"bars"', '"lines"')), tmp_path / "a.svg")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"openset\[plot\]"):
        draw(results, tmp_path / "a.svg")


def test_headings_wider_than_their_column_wrap_and_nothing_is_cut_off():
    headings = ("cell", *(f"Δ a long heading {i}" for i in range(8)))
    table = Table("t", headings, (Section("s", ((Cell("x"), *(Cell(f"+0.{i}") for i in range(8))),)),))
    console = Console(width=80, file=io.StringIO())
    console.print(terminal(table))
    text = console.file.getvalue()
    assert all(f"+0.{i}" in text for i in range(8)) and text.count("heading") == 8 and "…" not in text
