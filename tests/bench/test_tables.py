"""Tables from made-up runs, worked out by hand, and from the runs of a tiny experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.made_up import AUROC, SPEC, fill
from openset.bench.problems import get_source
from openset.bench.results import results_of
from openset.bench.runs import RunResult, expand
from openset.bench.spec import built_in_specs, parse_spec
from openset.bench.store import Store
from openset.bench.table_formats import markdown
from openset.bench.tables import comparison_table, heads_table, main_table, tables_of
from openset.stats.comparison import holm, signed_rank_test

SETTINGS = """
title = "Made up"
table = "settings"
[[problem]]
dataset = "cifar100"
novel = ["baby", "man"]
seeds = [0, 8]
paper = "settings"
[[problem]]
dataset = "amazon-fdu-mtl"
novel = ["music"]
seeds = [0]
settings = ["shift"]
paper = "settings"
[[method]]
name = "knn"
"""
FRACTIONS = {("baby", 0): 0.1, ("baby", 8): 0.2, ("man", 0): 0.1, ("man", 8): 0.2, ("music", 0): 0.09}


@pytest.fixture
def results(tmp_path):
    return fill(tmp_path / "runs.sqlite")


def test_the_paper_s_figures_are_below_ours_unless_the_data_is_a_stand_in(results, tmp_path):
    (section,) = main_table(results).sections
    beside = [row for row in section.rows if row[0].text == "  in the paper"]
    assert [cell.text for cell in beside[0]] == ["  in the paper", "0.70±0.11", "", "", "", "", ""]  # dd's
    stand_in = main_table(fill(tmp_path / "other.sqlite", stand_in_for="CIFAR-100"))
    assert "stand-in for CIFAR-100" in stand_in.sections[0].title and "in the paper" not in markdown(stand_in)


def test_tests_that_cannot_find_anything_are_noted(results, tmp_path, monkeypatch):
    table = comparison_table(results)
    assert table.notes[1:] == ("With 6 splits and 2 methods to compare with, no p can be below .062.",)
    least = 2 * signed_rank_test([1.0] * 6, [0.1 * i for i in range(6)])
    assert least == 0.0625 == min(holm([least / 2, least / 2]))
    monkeypatch.setitem(AUROC, "color_paper", [0.9, 0.8, 0.9, 0.7, 0.9, 0.6, 0.8])
    monkeypatch.setitem(AUROC, "dd", [0.8, 0.7, 0.9, 0.6, 0.8, 0.5, 0.7])
    monkeypatch.setitem(AUROC, "knn", [0.5, 0.85, 0.4, 0.3, 0.2, 0.1, 0.3])
    one_more = fill(tmp_path / "more.sqlite", SPEC.replace("4, 5]", "4, 5, 6]"))
    assert len(comparison_table(one_more).notes) == 1


def test_in_a_sweep_every_value_has_its_reference_and_the_title_names_none_of_them(tmp_path):
    swept = SPEC.replace("seeds =", "sweep = { novel_fraction = [0.1, 0.2] }\nseeds =")
    table = comparison_table(fill(tmp_path / "swept.sqlite", swept))
    assert table.title == "color against every method" and len(table.sections) == 2
    assert [row[0].text for row in table.sections[1].rows] == ["dd 0.2", "k_NN 0.2"]
    other = SPEC.replace("[[method]]", '[[method]]\nname = "color_paper"\nlabel = "another"\n[[method]]', 1)
    both = other.replace("seeds =", "sweep = { novel_fraction = [0.1, 0.2] }\nseeds =")
    table = comparison_table(fill(tmp_path / "both.sqlite", both))
    assert [row[0].text for row in table.sections[0].rows] == ["another 0.1", "dd 0.1", "k_NN 0.1"]


def test_a_metric_that_some_methods_lack_is_left_blank(tmp_path):
    results = fill(tmp_path / "runs.sqlite", SPEC.replace('"top1"]', '"top1", "best_head_auprc"]'))
    table = comparison_table(results)
    assert table is not None and [cell.text for cell in table.sections[0].rows[0]][-2:] == ["–", "–"]


def test_too_few_splits_give_no_tests(tmp_path):
    assert comparison_table(fill(tmp_path / "a.sqlite", SPEC.replace("[0, 1, 2, 3, 4, 5]", "[0, 1]"))) is None


def test_differences_and_p_values_are_printed(results):
    (section,) = comparison_table(results).sections
    assert section.title == "synthetic, with shift"
    assert [cell.text for cell in section.rows[0]][:3] == ["dd", "+0.08", ".125"]
    assert [cell.text for cell in section.rows[1]][:3] == ["k_NN", "+0.41", ".125"]


def test_failures_missing_runs_and_different_rows_are_noted(tmp_path):
    results = fill(tmp_path / "runs.sqlite", failing={("dd", 2)})
    notes = " ".join(main_table(results).notes)
    assert "Failed: dd · synthetic, shift, novel novel, seed 2: ValueError: too few rows" in notes
    store = Store(tmp_path / "runs.sqlite")
    other = RunResult({"auroc": 0.5}, {"cpu": 1.0}, manifest_checksum="other")
    store.put(results.plan[0][0].run, other, spec="made-up")
    more = parse_spec(SPEC.replace("4, 5]", "4, 5, 6]"), "made-up")
    notes = " ".join(main_table(results_of(more, store)).notes)
    assert "3 of 21 runs are not stored yet: the table shows the others." in notes
    assert "synthetic, with shift: runs of one split used different rows" in notes


HEADS = [
    {"member": 0, "step": 10, "head": 0, "candidate_recall": 0.05, "recall": 0.9, "fpr": 0.9, "selected": False},
    {"member": 0, "step": 20, "head": 0, "candidate_recall": 0.05, "recall": 0.06, "fpr": 0.004, "selected": True,
     "auroc": 0.91, "auprc": 0.61, "oscr": 0.71},
    {"member": 0, "step": 20, "head": 1, "candidate_recall": 0.1, "recall": 0.12, "fpr": 0.02, "selected": False,
     "auroc": 0.92, "auprc": 0.62, "oscr": 0.72},
]  # fmt: skip


@pytest.fixture
def with_heads(tmp_path):
    """One method on two seeds, whose kept network has two heads."""
    color = SPEC.partition("[[method]]")[0] + '[[method]]\nname = "color_paper"'
    return fill(tmp_path / "heads.sqlite", color.replace("[0, 1, 2, 3, 4, 5]", "[0, 1]"), heads=HEADS)


def test_all_heads_of_the_kept_network_are_in_a_table_and_the_selected_ones_are_bold(with_heads):
    table = heads_table(with_heads)
    assert table.headings == ("α̂", "seed 0", "seed 1")
    about = "color_paper on synthetic, with shift, novel novel"
    assert [section.title for section in table.sections] == [
        f"target recall on validation rows: {about}",
        f"source FPR on validation rows: {about}",
        f"AUROC: {about}",
        f"AUPRC: {about}",
        f"OSCR: {about}",
    ]
    assert texts(table.sections[0]) == [["0.05", "0.06", "0.06"], ["0.10", "0.12", "0.12"]]
    assert texts(table.sections[2]) == [["0.05", "0.91", "0.91"], ["0.10", "0.92", "0.92"]]
    for section in table.sections:
        assert [[cell.bold for cell in row] for row in section.rows] == [[False, True, True], [False] * 3]


def test_the_paper_s_heads_are_below_ours_unless_the_data_is_a_stand_in(with_heads):
    beside = [(replace(planned, paper="target-recall"), stored) for planned, stored in with_heads.plan]
    table = heads_table(replace(with_heads, plan=beside))
    recall, fpr, auroc, *_ = table.sections
    assert [row[0].text for row in recall.rows] == ["0.05", "  in the paper", "0.10", "  in the paper"]
    assert [cell.text for cell in recall.rows[1]] == ["  in the paper", "0.18", ""]  # it has no seed 1
    assert [cell.text for cell in auroc.rows[3]] == ["  in the paper", "0.98", ""]
    assert len(fpr.rows) == 2  # which it does not print
    others = [(p, s and replace(s, result=replace(s.result, stand_in_for="SUN397"))) for p, s in beside]
    assert all(len(section.rows) == 2 for section in heads_table(replace(with_heads, plan=others)).sections)


def test_no_heads_no_table_of_heads(tmp_path):
    text = SPEC.replace('title = "Made up"', 'title = "Made up"\ntable = "heads"')
    with_none, with_some = (fill(tmp_path / f"{len(heads)}.sqlite", text, heads=heads) for heads in ([], HEADS))
    assert heads_table(with_none) is None
    assert [table.title for table in tables_of(with_none)] == ["Made up", "color against every method"]
    assert [table.title for table in tables_of(with_some)][1] == "All heads of the network that was kept"


def filled(path, text=SETTINGS, *, failing=(), **more):
    spec, store = parse_spec(text, "made-up"), Store(path)
    for planned in expand(spec):
        run = planned.run
        result = RunResult(
            {"auroc": 0.5, "novel_fraction": FRACTIONS[run.split], **more},
            {"cpu": 1.0},
            stand_in_for="Amazon Reviews 2018" if run.dataset == "amazon-fdu-mtl" else "",
        )
        failed = (run.setting, *run.split) in failing
        store.put(run, RunResult(failure="Traceback\nValueError: no") if failed else result, spec=spec.name)
    return tables_of(results_of(spec, store))


def texts(section):
    return [[cell.text for cell in row] for row in section.rows]


def test_a_line_a_dataset_with_the_paper_s_figure_beside_it(tmp_path):
    (table,) = filled(tmp_path / "runs.sqlite", new_subtypes=4)
    with_shift, without = table.sections
    assert [row[:4] + row[5:] for row in texts(with_shift)] == [
        ["cifar100", "subtypes", "2", "8", "4", "0.15±0.06", "0.16±0.09?"],  # sd: sqrt(4 * .05² / 3)
        ["amazon-fdu-mtl (stand-in for Amazon Reviews 2018)", "sentiment", "1", "4", "1", "0.09", ""],
    ]
    assert texts(without) == [["cifar100", "nothing", "2", "8", "", "4", "0.15±0.06", ""]]
    assert any("swaps CIFAR-100 and Amazon" in note for note in table.notes)


def test_the_paper_s_number_of_new_subtypes_stands_beside_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "openset.bench.tables.paper_figures", lambda table, setting: {"new_subtypes": {"cifar100": "5"}}
    )
    (table,) = filled(tmp_path / "runs.sqlite")  # as runs were stored before subtypes were counted
    assert table.headings[3:5] == ("new subtypes", "paper's subtypes")
    assert texts(table.sections[0])[0][3:5] == ["", "5"]


def test_splits_that_failed_are_not_counted_and_told(tmp_path):
    (table,) = filled(tmp_path / "runs.sqlite", failing={("shift", "man", 0), ("shift", "man", 8)})
    line = texts(table.sections[0])[0]
    assert (line[2], *line[5:7]) == ("1", "2", "0.15±0.07")
    (told,) = [note for note in table.notes if note.startswith("Failed")]
    assert told == "Failed: knn · cifar100, shift, novel man, seed 0: ValueError: no (and 1 more like it)"


def test_a_label_s_question_mark_is_no_figure_of_the_paper(tmp_path):
    text = SETTINGS.replace('paper = "settings"', "").replace('"cifar100"', '"cifar100"\nlabel = "really?"')
    (table,) = filled(tmp_path / "runs.sqlite", text)
    assert table.sections[0].rows[0][0].text == "really?" and not any("the paper's" in n for n in table.notes)


def test_the_paper_s_settings_are_such_a_table():
    spec = built_in_specs()["table-settings"]
    assert spec.table == "settings" and {problem.paper for problem in spec.problems} == {"settings"}
    with pytest.raises(ValueError, match="table='setting' is not valid"):
        parse_spec('table = "setting"\n[[problem]]\ndataset = "digits"\n[[method]]\nname = "dd"', "s")


def test_a_page_says_why_a_dataset_has_no_oracle(results, monkeypatch):
    source = get_source("synthetic")
    assert not any("No oracle" in note for note in main_table(results).notes)
    monkeypatch.setattr(
        "openset.bench.tables.get_source", lambda name: replace(source, no_oracle="for a reason.")
    )
    assert "No oracle of synthetic: for a reason." in main_table(results).notes


def test_the_exact_problem_says_why_it_has_no_oracle(tmp_path):
    text = '[[problem]]\ndataset = "linear-gaussian"\nsettings = ["shift"]\nseeds = [0]\n[[method]]\nname = "dd"'
    notes = main_table(fill(tmp_path / "exact.sqlite", text)).notes
    assert any(note.startswith("No oracle of linear-gaussian: it need not be measured.") for note in notes)
