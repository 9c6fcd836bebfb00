from __future__ import annotations

import pytest

from openset.bench.paper import paper_figures, paper_tables
from openset.bench.spec import METRICS, built_in_specs


def test_the_paper_s_wrong_figures_are_marked():
    without = paper_figures("sun397-with-without", "no-shift")
    assert without["auroc"]["shot"].endswith("?") and without["auroc"]["arpl"] == without["auroc"]["shot"][:-1]
    assert set(paper_figures("amazon", "shift")) == {"auroc", "auprc", "oscr"} <= set(METRICS)
    assert paper_figures("sun397-rn50", "no-shift")["oscr"]["dd"] == "0.86±0.00"  # the appendix's, not ViT-L/14's
    assert paper_figures("joint-sun397-rn50", "shift")["top1"]["color_paper"].endswith("?")
    assert paper_figures("cifar100", "shift")["oscr"]["zoc"] == "0.84±0.01?"
    assert paper_figures("grid-range", "shift")["auprc"]["[0.01, 0.1]"] == "0.93/0.96/0.94?"
    assert paper_figures("synthetic-r-eta", "shift")["auroc"]["color 0.5"] == "0.86"
    assert paper_figures("synthetic-theta", "shift")["auprc"]["dd 1.5708"] == "0.12?"
    assert (
        paper_figures("settings", "shift")["novel_fraction"]["cifar100"] == "0.16±0.09?"
    )  # swapped with Amazon's
    assert paper_figures("target-recall", "shift")["auprc"]["0.25"] == "0.83/0.08/0.80/0.97/0.05"
    assert paper_figures(None, "shift") == paper_figures("moon", "shift") == {}


def test_every_table_of_a_spec_is_one_of_the_paper():
    named = {problem.paper for spec in built_in_specs().values() for problem in spec.problems} - {None}
    assert named <= set(paper_tables()) and "sun397-rn50" in named


@pytest.mark.parametrize("table", ["sun397-rn50", "cifar100", "amazon", "joint-amazon"])
def test_the_paper_s_color_is_our_color_paper(table):
    figures = paper_figures(table, "shift")
    assert "color_paper" in figures["auprc"] and "color" not in figures["auprc"]
