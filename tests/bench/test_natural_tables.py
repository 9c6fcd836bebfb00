from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openset.bench.natural_tables import natural_table, null_table
from openset.bench.results import results_of
from openset.bench.runs import RunResult, expand
from openset.bench.spec import parse_spec
from openset.bench.store import Store
from openset.bench.table_formats import markdown
from openset.bench.tables import tables_of

SPEC = """
table = "natural"
metrics = ["auprc", "called", "estimated_low", "p_value"]
[[problem]]
dataset = "nsl-kdd"
label = "traffic"
settings = ["shift"]
seeds = [0, 1]
[[problem]]
dataset = "nsl-kdd"
label = "traffic, none novel"
settings = ["shift"]
seeds = [0, 1]
options = { novel_fraction = 0.0 }
[[problem]]
dataset = "ifnb-cells"
label = "cells"
settings = ["shift"]
seeds = [0, 1]
[[problem]]
dataset = "digits"
settings = ["shift"]
seeds = [0, 1]
[[method]]
name = "color"
[[method]]
name = "knn"
"""
AUPRC = {"nsl-kdd": {"color": 0.2, "knn": 0.4}, "ifnb-cells": {"color": 0.1, "knn": 0.6},
         "digits": {"color": 0.9, "knn": 0.5}}  # fmt: skip


def fill(path, text=SPEC):
    """A store in which seed 1 is .02 above seed 0 in AUPRC, and in which color finds a new class at seed 0."""
    spec, store = parse_spec(text, "made-up"), Store(path)
    for planned in expand(spec):
        run = planned.run
        said = {"called": 0.1 + run.seed / 5, "estimated_low": 0.25 if run.method == "color" else 0.0}
        if run.method == "color":
            said["p_value"] = [0.01, 0.4][run.seed]
        is_null = "0.0" in run.options
        ranked = {} if is_null else {"auprc": AUPRC[run.dataset][run.method] + run.seed / 50}
        metrics = {**ranked, **said, "novel_fraction": 0.0 if is_null else 0.05}
        store.put(run, RunResult(metrics, {"fit": 1.0, "cpu": 1.0}, manifest_checksum="x"), spec=spec.name)
    return results_of(spec, store)


@pytest.fixture
def results(tmp_path):
    return fill(tmp_path / "runs.sqlite")


def texts(section):
    return [[cell.text for cell in row] for row in section.rows]


def test_natural_and_built_problems_have_a_section_each_and_nulls_have_none(results):
    table = natural_table(results)
    assert table.headings == ("problem", "new", "color", "knn")
    assert [section.title for section in table.sections] == ["Natural", "Built"]
    natural, built = table.sections
    assert texts(natural) == [
        ["traffic", "0.05", "0.210", "0.410"],
        ["cells", "0.05", "0.110", "0.610"],
        ["mean", "", "0.160", "0.510"],
    ]
    assert texts(built) == [["digits", "0.05", "0.910", "0.510"], ["mean", "", "0.910", "0.510"]]
    assert [cell.bold for cell in built.rows[0]] == [False, False, True, False]


def test_nulls_show_what_was_said_of_them(results):
    table = null_table(results)
    assert table.headings == ("problem", "color", "knn")
    called, low, found = table.sections
    assert texts(called) == [["traffic, none novel", "0.200", "0.200"]]
    assert texts(low) == [["traffic, none novel", "0.250", "0.000"]]
    assert texts(found) == [["traffic, none novel", "1 of 2", "–"]]


def test_a_section_that_no_method_has_values_for_is_left_out(tmp_path):
    found = fill(tmp_path / "runs.sqlite", SPEC.replace('[[method]]\nname = "color"\n', ""))
    assert [section.title for section in null_table(found).sections] == [
        "Share of target rows called novel",
        "The novel share is stated to be at least",
    ]
    unasked = fill(tmp_path / "others.sqlite", SPEC.replace(', "estimated_low"', ""))
    assert len(null_table(unasked).sections) == 2


def test_a_spec_shows_both_and_the_methods_and_marks_no_share_as_the_best(results):
    tables = tables_of(results)
    assert [table.title for table in tables[:2]] == [
        "Natural and built problems",
        "The same targets without their new class",
    ]
    assert len(tables) == 3 and tables[2].headings == ("method", "AUPRC", "wins", "called", "at least", "p", "s")
    for section in tables[2].sections:
        assert not any(cell.bold for row in section.rows for cell in row[3:])
    null = next(section for section in tables[2].sections if "none novel" in section.title)
    assert null.rows[0][1].text == "–"
    assert all("nan" not in markdown(table) for table in tables)


def test_without_nulls_or_without_new_rows_a_table_is_left_out(results):
    nulls = [block for block in results.blocks if block.novel_fraction == 0]
    others = [block for block in results.blocks if block not in nulls]
    assert null_table(replace(results, blocks=others)) is None
    assert natural_table(replace(results, blocks=nulls)) is None


def test_failed_runs_are_dashes(tmp_path):
    spec, store = parse_spec(SPEC, "made-up"), Store(tmp_path / "runs.sqlite")
    for planned in expand(spec):
        store.put(planned.run, RunResult(failure="Traceback\nValueError: no"), spec=spec.name)
    found = results_of(spec, store)
    assert np.isnan(found.blocks[0].novel_fraction) and null_table(found) is None
    assert texts(natural_table(found).sections[0])[0][2:] == ["–", "–"]
