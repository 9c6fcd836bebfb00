"""The table of settings: worked out by hand from made-up runs."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from openset.bench.runs import RunResult, expand
from openset.bench.spec import built_in_specs, parse_spec
from openset.bench.store import Store
from openset.bench.suite import tables_of
from openset.bench.tables import results_of, table_as_csv, terminal

SPEC = """
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


def filled(path, text=SPEC, *, failing=()):
    spec, store = parse_spec(text, "made-up"), Store(path)
    for planned in expand(spec):
        run = planned.run
        result = RunResult(
            {"auroc": 0.5, "novel_fraction": FRACTIONS[run.split]},
            {"cpu": 1.0},
            stand_in_for="Amazon Reviews 2018" if run.dataset == "amazon-fdu-mtl" else "",
        )
        failed = (run.setting, *run.split) in failing
        store.put(run, RunResult(failure="Traceback\nValueError: no") if failed else result, spec=spec.name)
    return tables_of(results_of(spec, store))


def texts(section):
    return [[cell.text for cell in row] for row in section.rows]


def test_a_line_a_dataset_with_the_paper_s_figure_beside_it(tmp_path):
    (table,) = filled(tmp_path / "runs.sqlite")
    with_shift, without = table.sections
    assert texts(with_shift) == [
        ["cifar100", "subtypes", "2", "4", "0.15±0.06", "0.16±0.09?"],  # sd: sqrt(4 * .05² / 3)
        ["amazon-fdu-mtl (stand-in for Amazon Reviews 2018)", "sentiment", "1", "1", "0.09", ""],
    ]
    assert texts(without) == [["cifar100", "nothing", "2", "4", "0.15±0.06", ""]]
    assert any("the other way round" in note for note in table.notes)


def test_splits_that_failed_are_not_counted_and_told(tmp_path):
    (table,) = filled(tmp_path / "runs.sqlite", failing={("shift", "man", 0), ("shift", "man", 8)})
    assert texts(table.sections[0])[0][2:5] == ["1", "2", "0.15±0.07"]
    (told,) = [note for note in table.notes if note.startswith("Failed")]
    assert told == "Failed: knn · cifar100, shift, novel man, seed 0: ValueError: no (and 1 more like it)"


def test_a_label_s_question_mark_is_no_figure_of_the_paper(tmp_path):
    text = SPEC.replace('paper = "settings"', "").replace('"cifar100"', '"cifar100"\nlabel = "really?"')
    (table,) = filled(tmp_path / "runs.sqlite", text)
    assert table.sections[0].rows[0][0].text == "really?" and not any("the paper's" in n for n in table.notes)


def test_as_csv_it_is_that_table(tmp_path):
    (table,) = filled(tmp_path / "runs.sqlite")
    first, *lines = csv.reader(io.StringIO(table_as_csv(table)))
    assert first[0] == "section" and first[1:] == list(table.headings)
    assert lines[0] == ["With shift", "cifar100", "subtypes", "2", "4", "0.15±0.06", "0.16±0.09?"]
    assert len(lines) == 3 and lines[2][0] == "Without shift"


def test_it_fits_80_columns(tmp_path):
    file = io.StringIO()
    Console(file=file, width=80).print(*map(terminal, filled(tmp_path / "runs.sqlite")))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and "0.16±0.09?" in file.getvalue() and "…" not in file.getvalue()


def test_the_paper_s_settings_are_such_a_table():
    spec = built_in_specs()["table-settings"]
    assert spec.table == "settings" and {problem.paper for problem in spec.problems} == {"settings"}
    with pytest.raises(ValueError, match="table='setting' is not valid"):
        parse_spec('table = "setting"\n[[problem]]\ndataset = "digits"\n[[method]]\nname = "dd"', "s")
